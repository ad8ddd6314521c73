// Graph IR: SSA over tensors. A graph is a list of nodes in topological order; a value is an input of the graph or a
// result of one node. Values have value semantics: nothing aliases, nothing is written twice. Shapes hold symbolic
// sizes (Dim); `facts` says what is known of the symbols. Regions are graphs of their own and are closed: whatever
// they use from outside is passed as an operand.
//
// A graph only grows. A pass builds a new graph (see transform/), so ids never dangle.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/tensor.h"

namespace weft::graph {

enum class Op : std::uint16_t {
#define OP(id, name, family, operands, results, flags, dtypes, drule, srule, attrs, doc) id,
#include "graph/ops.def"
#undef OP
};

enum class Family : std::uint8_t {
  Unary, Binary, Select, Cast, Movement, Source, Gather, Scatter, Reduce, Scan, Sort, Dot, Conv, Window, Control, Host,
};
enum class DTypeRule : std::uint8_t { Same, Bool, Attr, Own };
enum class ShapeRule : std::uint8_t { Same, Own };

enum class Attr : std::uint8_t {
#define ATTR(id, name, type) id,
#include "graph/attrs.def"
#undef ATTR
};
enum class AttrType : std::uint8_t { Int, Bool, Str, DType, Ints, Dims, Data };

struct AttrInfo {
  const char* name;
  AttrType type;
};

struct AttrUse {
  Attr attr;
  bool optional;
};

struct OpInfo {
  const char* name;
  Family family;
  const char* family_name;
  int min_operands;
  bool variadic;        // more operands than min_operands are fine
  int results;          // -1: the attributes or regions decide
  bool pure, commutative, elementwise, host, regions;
  const char* dtypes;   // classes that operand 0 may have
  DTypeRule dtype_rule;
  ShapeRule shape_rule;
  std::vector<AttrUse> attrs;
  const char* doc;
};

int op_count();
const OpInfo& info(Op op);
const AttrInfo& info(Attr attr);
std::optional<Op> parse_op(std::string_view name);
std::optional<Attr> parse_attr(std::string_view name);

using AttrValue = std::variant<std::int64_t, bool, std::string, DType, std::vector<std::int64_t>, Shape, Tensor>;

// Attributes by key, kept sorted; copies share them until one is set. The getters WEFT_CHECK that the attribute is there
// with its type from attrs.def: the verifier has seen to that for every node in a graph.
class Attrs {
 public:
  Attrs& set(Attr key, AttrValue value);
  bool has(Attr key) const { return find(key) != nullptr; }
  std::int64_t integer(Attr key) const;
  bool flag(Attr key) const;  // false when absent
  const std::string& str(Attr key) const;
  DType dtype(Attr key) const;
  const std::vector<std::int64_t>& ints(Attr key) const;
  const Shape& dims(Attr key) const;
  const Tensor& data(Attr key) const;
  using Items = std::vector<std::pair<Attr, AttrValue>>;
  const Items& all() const { return items_ ? *items_ : kNone; }
  friend bool operator==(const Attrs& a, const Attrs& b);  // tensors by content
  std::uint64_t hash() const;

 private:
  const AttrValue* find(Attr key) const;
  static const Items kNone;
  std::shared_ptr<Items> items_;  // null: none
};

struct Type {
  DType dtype = DType::F32;
  Shape shape;
  int rank() const { return static_cast<int>(shape.size()); }
  friend bool operator==(const Type&, const Type&) = default;
};
std::string str(const Type& type);  // "f32[n, 768]"
Result<Type> parse_type(std::string_view text);
Result<std::vector<Type>> parse_types(std::string_view text);  // "f32[n]; i64[2]"; the attribute `types`

using ValueId = std::int32_t;
using NodeId = std::int32_t;
constexpr NodeId kGraphInput = -1;

class Graph;

struct Value {
  Type type;
  NodeId def = kGraphInput;  // the node that produces it
  int result = 0;            // which of that node's results, or which of the graph's inputs
  std::string name;          // the user's name for it, may be empty; not part of the graph's meaning
};

// Where a node comes from: what errors, profiles and explanations show.
struct Origin {
  std::string node;  // the user's node, e.g. "/encoder/layer.0/MatMul"
  std::string op;    // the user's operator, e.g. "MatMul"
};
std::string str(const Origin& origin);  // "/encoder/layer.0/MatMul (MatMul)"

struct Node {
  Op op;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  Attrs attrs;
  std::vector<std::shared_ptr<const Graph>> regions;
  std::shared_ptr<const Origin> origin;  // may be null
};

// No effect but its results: table flag P, or all nodes of its regions are pure.
bool is_pure(const Node& node);
// The symbols that the node binds: their values are known once it has run (regions not included).
std::vector<std::string> bound_symbols(const Node& node);

class Graph {
 public:
  std::string name = "main";
  DimFacts facts;  // of every symbol used here; add_input and add_node declare those that are new

  ValueId add_input(Type type, std::string name = "");
  // Infers the result types from the op table and checks the node; an error names the origin.
  Result<NodeId> add_node(Op op, std::vector<ValueId> operands, Attrs attrs,
                          std::vector<std::shared_ptr<const Graph>> regions = {},
                          std::shared_ptr<const Origin> origin = nullptr);
  // A node of another graph, of whose symbols this one knows as much. Its results keep their types where operands and
  // regions are what they were: inferring would find the same, and verify() says if not. Else they are inferred.
  Result<NodeId> copy_node(const Graph& from, const Node& node, std::vector<ValueId> operands,
                           std::vector<std::shared_ptr<const Graph>> regions);
  void reserve(std::size_t nodes, std::size_t values) { nodes_.reserve(nodes), values_.reserve(values); }
  void set_outputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }
  // Another spelling of the value's shape: sizes that the facts make equal to the inferred ones.
  void set_shape(ValueId value, Shape shape) { values_[value].type.shape = std::move(shape); }
  void set_name(ValueId value, std::string name) { values_[value].name = std::move(name); }

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& values() const { return values_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const Value& value(ValueId id) const { return values_[id]; }
  const Type& type(ValueId id) const { return values_[id].type; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const Node* def(ValueId id) const { return values_[id].def < 0 ? nullptr : &nodes_[values_[id].def]; }
  const Tensor* constant(ValueId id) const;  // the tensor when a constant node defines the value, else null

 private:
  NodeId append(Node node, std::vector<Type> types);  // its results are made here
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_, outputs_;
};

// infer/: types of a node's results, one function per family. Errors are of the user's kind (a model with such a node
// is wrong) and name expected and found.
struct InferInput {
  Op op;
  std::vector<Type> operands;
  const Attrs& attrs;
  const std::vector<std::shared_ptr<const Graph>>& regions;
  const DimFacts& facts;
};
Result<std::vector<Type>> infer(const InferInput& in);

// verify.cpp: everything a graph must satisfy, regions included (ids in range, topological order, types as inferred,
// attribute schema, outputs set).
Result<void> verify(const Graph& graph);

// print.cpp, parse.cpp (the syntax stands in text.h): print(parse(print(g))) == print(g). Constants print as dtype, shape and content hash; small ones (up to
// 16 elements) print their elements. `sidecar` supplies the bytes of the others by hash when parsing.
std::string print(const Graph& graph);
using Sidecar = std::map<std::uint64_t, Tensor>;
void collect_constants(const Graph& graph, Sidecar& into);
Result<Graph> parse(std::string_view text, const Sidecar& sidecar = {});

// interpret/: evaluates plainly, with wide accumulation; the oracle. Inputs in order; binds symbols from input shapes.
Result<std::vector<Tensor>> interpret(const Graph& graph, const std::vector<Tensor>& inputs);
// The same for one node of known operands (constant folding, weft diff); `bindings` may gain symbols (host ops).
Result<std::vector<Tensor>> interpret_node(const Graph& graph, const Node& node, const std::vector<Tensor>& operands,
                                           Bindings& bindings);
// Matches concrete input shapes against the graph's input types.
Result<Bindings> bind_inputs(const Graph& graph, const std::vector<std::vector<std::int64_t>>& shapes);

}  // namespace weft::graph
