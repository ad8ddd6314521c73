// An ONNX model as plain structs that mirror onnx.proto3: what the file says, checked for form but not for meaning
// (reader/validate.h does that). Documentation strings and quantisation annotations are not kept.
//
// Domains are normalised: "ai.onnx" is read as "". Tensors are views into the mapped file (or its external data
// file) where alignment allows, and keep the mapping alive.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/tensor.h"

namespace weft::onnx {

using Properties = std::vector<std::pair<std::string, std::string>>;  // in file order
using OpsetImports = std::map<std::string, std::int64_t>;             // domain ("" is ai.onnx) -> version

// A dimension of a declared shape: a number, a named size, or unknown (neither).
struct DimSpec {
  std::optional<std::int64_t> value;
  std::string param;
  bool known() const { return value.has_value() || !param.empty(); }
};

struct Type {
  enum class Kind : std::uint8_t { Unset, Tensor, SparseTensor, Sequence, Optional, Map };
  Kind kind = Kind::Unset;
  std::optional<DType> elem;                   // Tensor, SparseTensor; Map: of the keys. Absent: not declared
  std::optional<std::vector<DimSpec>> shape;   // Tensor, SparseTensor; absent: rank unknown
  std::shared_ptr<const Type> element;         // Sequence, Optional, Map (of the values); may be null (not declared)
};

struct ValueInfo {
  std::string name;
  Type type;
};

struct NamedTensor {
  std::string name;
  weft::Tensor tensor;
};

// values: [nnz]; indices: i64, [nnz] (linearised) or [nnz, rank]; sorted and in range.
struct SparseTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  weft::Tensor values;
  weft::Tensor indices;
};

struct Graph;
using GraphPtr = std::shared_ptr<const Graph>;

// The numbers of AttributeProto.AttributeType.
enum class AttributeType : std::uint8_t {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  TypeProto = 13,
  TypeProtos = 14,
};

// The alternatives stand in the order of AttributeType: value.index() is its number.
using AttributeValue =
    std::variant<std::monostate, float, std::int64_t, std::string, weft::Tensor, GraphPtr, std::vector<float>,
                 std::vector<std::int64_t>, std::vector<std::string>, std::vector<weft::Tensor>, std::vector<GraphPtr>,
                 std::shared_ptr<const SparseTensor>, std::vector<std::shared_ptr<const SparseTensor>>,
                 std::shared_ptr<const Type>, std::vector<std::shared_ptr<const Type>>>;

struct Attribute {
  std::string name;
  std::string ref_attr_name;  // in a function's body: the value is that of the caller's attribute of this name
  AttributeType declared = AttributeType::Undefined;  // of a reference too; otherwise the type of `value`
  AttributeValue value;                               // monostate for a reference

  AttributeType type() const { return static_cast<AttributeType>(value.index()); }
  bool is_reference() const { return !ref_attr_name.empty(); }
  template <class T>
  const T* as() const { return std::get_if<T>(&value); }  // null if of another type
};

const char* name(AttributeType type);  // "float", "ints", ...

struct Node {
  std::string name;  // often empty or not unique
  std::string op_type;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;  // "" is an omitted optional input
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;
  Properties metadata_props;

  const Attribute* find_attribute(std::string_view attribute_name) const;  // null if absent
  // How messages name the node: its name, or "Add producing 'y'" when it has none.
  std::string label() const;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<NamedTensor> initializers;
  std::vector<SparseTensor> sparse_initializers;
  std::vector<ValueInfo> inputs;  // those that are also initializers have a default
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_infos;
  Properties metadata_props;
};

// The names that a subgraph takes from outside, in order of first use.
std::vector<std::string> free_names(const Graph& graph);

struct Function {
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;          // names without a default
  std::vector<Attribute> attribute_defaults;
  std::vector<Node> nodes;
  OpsetImports opset_imports;
  std::vector<ValueInfo> value_infos;
  Properties metadata_props;
};

struct Model {
  std::int64_t ir_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::int64_t model_version = 0;
  OpsetImports opset_imports;
  GraphPtr graph;  // never null once validated
  std::vector<Function> functions;
  Properties metadata_props;
  bool has_external_data = false;   // in other files
  bool has_training_info = false;  // its content is not kept
};

}  // namespace weft::onnx
