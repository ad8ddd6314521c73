// The importer's state: scopes of names, the graph being built, symbols, gaps. Private to import/ and ops/control.cpp.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "frontend/onnx/import/import.h"
#include "frontend/onnx/import/node_context.h"
#include "graph/content.h"
#include "runtime/custom.h"

namespace weft::onnx {

constexpr int kMaxDepth = 64;  // of inlined functions and subgraphs

// Names of one graph or function body; `outer` is searched when allowed (subgraphs inlined into the same graph).
struct Scope {
  std::map<std::string, ValueId, std::less<>> values;
  std::map<std::string, Sequence, std::less<>> sequences;
  const Scope* outer = nullptr;
  ValueId find(std::string_view name) const;  // -1 when not defined, or a sequence
  const Sequence* find_sequence(std::string_view name) const;
};

// One graph under construction (the main graph or a region).
struct Target {
  graph::Graph graph;
  graph::Builder builder{graph};
  graph::Contents contents{graph};
};

// The model's functions by domain, name and overload.
class Functions {
 public:
  explicit Functions(const Model& model);
  const Function* find(const Node& node) const;  // that the node calls, or null
  // Functions may call functions that call functions ...: how many nodes that makes is known before any is made.
  Result<void> check_inlining(const Model& model) const;

 private:
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<Key, const Function*> functions_;
};

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options) : model_(model), options_(options), functions_(model) {}

  Result<Imported> run();
  const std::vector<Gap>& gaps() const { return gaps_; }

  // For operators with subgraphs.
  // Imports the nodes of `subgraph` into the graph under construction, as if they stood in place of the node; gives
  // the values of its outputs. `arguments` are its inputs.
  Result<std::vector<ValueId>> inline_subgraph(const Graph& subgraph, const std::vector<ValueId>& arguments);
  // Names that subgraphs use from outside, resolved here: captures, in order of first use. Constants and known sizes
  // are not captured but made again inside.
  Result<std::vector<ValueId>> captures(const std::vector<GraphPtr>& subgraphs);
  // A region whose inputs are `inputs` (types) and then the captures. Its outputs are the subgraph's.
  Result<std::shared_ptr<const graph::Graph>> region(const Graph& subgraph, const std::vector<graph::Type>& inputs,
                                                     const std::vector<ValueId>& captured);

  Scope& scope() { return *scope_; }
  Target& target() { return *target_; }
  Dim fresh_symbol(std::string_view hint, SymbolRange range);
  void add_gap(const std::string& op, const std::string& reason, const std::string& node);
  const std::optional<Shape>& contents(ValueId v) { return target_->contents.of(v); }

 private:
  Result<void> declare_inputs(const Graph& graph);
  Result<graph::Type> input_type(const ValueInfo& info);
  Dim dimension(const DimSpec& spec, const std::string& input, std::size_t axis);
  Result<void> add_initializers(const Graph& graph);
  Result<void> import_nodes(const std::vector<Node>& nodes, const OpsetImports& opsets);
  Result<void> import_node(const Node& node, const OpsetImports& opsets);
  Result<void> convert(const Node& node, const OpEntry& entry, std::int64_t opset);
  Result<void> import_custom(const Node& node, const runtime::CustomOp& op);
  Result<void> call_function(const Node& node, const Function& function);
  bool poison_if_needed(const Node& node);
  bool is_defined(const std::string& name) const { return scope_->find(name) >= 0 || scope_->find_sequence(name); }
  void poison(const Node& node);

  const Model& model_;
  const ImportOptions& options_;
  const Functions functions_;
  Scope* scope_ = nullptr;
  Target* target_ = nullptr;
  const OpsetImports* opsets_ = nullptr;
  std::map<std::string, Dim> symbols_;         // dim_param -> size
  std::set<std::string> symbol_names_;
  std::set<std::string> poisoned_;             // values that follow from something missing
  std::vector<Gap> gaps_;
  std::map<std::pair<std::string, std::string>, std::size_t> gap_of_;  // by operator and reason
  int depth_ = 0;
};

}  // namespace weft::onnx
