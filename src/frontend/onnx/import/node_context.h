// What an operator's function sees: the node, its operands as graph values, attributes by name, and a builder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/model.h"
#include "graph/builder.h"

namespace weft::onnx {

class Importer;
using graph::ValueId;

// A sequence, or an optional value. No graph value stands for it: its length is known while importing, and it is gone
// when everything that takes it has been imported.
struct Sequence {
  std::vector<ValueId> items;
  bool absent = false;  // an optional value that holds nothing
};

class NodeContext {
 public:
  NodeContext(Importer& importer, const Node& node, graph::Builder& builder, std::int64_t opset)
      : b(builder), importer_(importer), node_(node), opset_(opset) {}

  graph::Builder& b;

  const Node& node() const { return node_; }
  std::int64_t opset() const { return opset_; }  // of the node's domain, as the model states it

  // Operands. An omitted optional one (or one beyond the end) is not there.
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  bool has(int i) const;
  ValueId in(int i) const;  // WEFT_CHECKs has(i): the registry has seen to the required ones
  const graph::Type& type(int i) const { return b.type(in(i)); }
  const Shape& shape(int i) const { return b.shape(in(i)); }
  DType dtype(int i) const { return b.dtype(in(i)); }
  int rank(int i) const { return b.type(in(i)).rank(); }
  const Tensor* constant(int i) const;  // the operand's elements when they are known

  const Sequence* sequence(int i) const;  // null when the operand is a tensor; only for operators that take sequences

  // An integer operand (rank 0 or 1) as size expressions; nothing when it is not known.
  std::optional<Shape> dims(int i) const;
  // The same; an operand known only at run time is bound to new symbols (`count` of them, -1: from its static shape).
  // Beyond the range is an error of the run, or, where operators say so, as good as its ends.
  enum class Beyond : std::uint8_t { Wrong, End };
  Result<Shape> dims_or_bind(int i, const char* what, SymbolRange range = kAnyInteger, Beyond beyond = Beyond::Wrong);
  static constexpr SymbolRange kAnyInteger{-(std::int64_t{1} << 40), std::int64_t{1} << 40, 1};
  // As plain integers; not known: unsupported ("axes known only at run time").
  Result<std::vector<std::int64_t>> ints(int i, const char* what) const;

  // Attributes; `fallback` when absent. A wrong type is the user's error, remembered in the builder.
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> fallback = {}) const;
  std::vector<float> reals(std::string_view name, std::vector<float> fallback = {}) const;
  std::vector<std::string> texts(std::string_view name) const;
  const Tensor* tensor(std::string_view name) const;
  GraphPtr subgraph(std::string_view name) const;

  // Results.
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool wants(int i) const { return i < output_count() && !node_.outputs[i].empty(); }
  void out(int i, ValueId value);
  void out(int i, Sequence sequence);

  // Negative axes count from the end; out of range is the user's error.
  Result<std::int64_t> axis(std::int64_t value, int rank) const;
  Result<std::vector<std::int64_t>> axes(std::vector<std::int64_t> values, int rank) const;

  Error bad(std::string message) const;          // the model is wrong at this node
  Error missing(std::string what) const;         // unsupported: what, at this node
  Dim fresh_symbol(std::string_view hint, SymbolRange range = {});
  Importer& importer() { return importer_; }

 private:
  const Attribute* find(std::string_view name) const;
  template <class T>
  const T* get(std::string_view name) const;
  Importer& importer_;
  const Node& node_;
  std::int64_t opset_;
};

using Convert = Result<void> (*)(NodeContext&);

// One operator over a range of opsets. Several entries of one name must not overlap.
struct OpEntry {
  const char* op;
  std::int64_t first, last;     // opsets handled (kOpsetMax for "to the newest")
  int min_inputs, max_inputs;   // required ones; the most (-1: any number)
  const char* attributes;       // names handled, separated by spaces; others are refused
  Convert convert;
  const char* domain = "";
  bool takes_sequences = false;
};

// Each family's table; ops/registry.cpp lists them.
struct OpTable {
  const OpEntry* entries;
  std::size_t count;
};
const OpEntry* find_op(std::string_view domain, std::string_view op, std::int64_t opset);
bool knows_op(std::string_view domain, std::string_view op);  // at any opset
const std::vector<OpTable>& op_tables();

}  // namespace weft::onnx
