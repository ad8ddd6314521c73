// From protobuf messages to the structs of model.h; one method per message, in decode_*.cpp by family. Everything is
// allocated through a budget, so that a small file cannot ask for much memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/reader/external.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/wire.h"

namespace weft::onnx {

// A name for messages: control characters escaped, cut after 80 bytes.
std::string printable(std::string_view text);

class Decoder {
 public:
  // `external` may be null: then external data is refused.
  Decoder(std::string_view file, std::shared_ptr<const void> owner, const Limits& limits, ExternalData* external);

  Result<Model> model(std::string_view message);
  Result<GraphPtr> graph(std::string_view message, int depth);
  Result<Function> function(std::string_view message);
  Result<Node> node(std::string_view message, int depth);
  Result<Attribute> attribute(std::string_view message, int depth);
  Result<ValueInfo> value_info(std::string_view message);
  Result<std::shared_ptr<const Type>> type(std::string_view message, int depth);
  Result<NamedTensor> tensor(std::string_view message);
  Result<SparseTensor> sparse_tensor(std::string_view message);
  Result<DataValue> data_tensor(std::string_view message);
  Result<DataValue> data_sequence(std::string_view message, int depth);
  Result<DataValue> data_optional(std::string_view message, int depth);

 private:
  using Counts = std::array<std::size_t, 32>;  // of the fields 0 to 31 in a message
  struct TensorFields;

  // Calls f(field) for each field, in order.
  template <class F>
  Result<void> each(std::string_view message, const char* what, F&& f) {
    FieldCursor cursor(message);
    Field field;
    while (cursor.next(field)) {
      Result<void> done = f(field);
      if (!done) return done;
    }
    if (cursor.failure() != nullptr) return malformed(what, cursor.failure(), cursor.position());
    return {};
  }
  Error malformed(const char* what, const std::string& problem, const char* position) const;
  Error wrong_type(const Field& field, const char* name) const;
  std::size_t offset(const char* position) const { return static_cast<std::size_t>(position - file_.data()); }

  // Memory. What is charged is never given back, except by vectors that grow.
  Result<void> charge(std::size_t bytes);
  template <class T>
  Result<void> reserve(std::vector<T>& v, std::size_t count) {
    if (count <= v.capacity()) return {};
    if (count > SIZE_MAX / 4 / sizeof(T)) return charge(SIZE_MAX);
    Result<void> charged = charge(count * sizeof(T) + kAllocation);
    if (!charged) return charged;
    const std::size_t freed = v.capacity() * sizeof(T);
    v.reserve(count);
    budget_ += freed;
    return {};
  }
  template <class T>
  Result<void> push(std::vector<T>& v, T value) {
    if (v.size() == v.capacity()) {
      Result<void> grown = reserve(v, v.size() + v.size() / 2 + 4);
      if (!grown) return grown;
    }
    v.push_back(std::move(value));
    return {};
  }
  // Counts[n] fields of number n; numbers from 32 on are not counted.
  Counts count(std::string_view message) const;

  // Fields. `name` is the field's, for messages.
  Result<std::string_view> view(const Field& field, const char* name) const;  // bytes or a message
  Result<std::string> text(const Field& field, const char* name);
  Result<void> text_into(const Field& field, const char* name, std::string& into);
  Result<void> domain_into(const Field& field, std::string& into);
  Result<void> push_text(const Field& field, const char* name, std::vector<std::string>& into);
  Result<std::int64_t> integer(const Field& field, const char* name) const;
  Result<float> real(const Field& field, const char* name) const;
  Result<void> push_integers(const Field& field, const char* name, std::vector<std::int64_t>& into, std::size_t limit);
  Result<void> push_reals(const Field& field, const char* name, std::vector<float>& into);
  Result<std::optional<DType>> element_type(std::int64_t number) const;  // nullopt for 0
  Result<void> check_depth(int depth, const char* what) const;

  // Small messages.
  Result<void> property(const Field& field, const char* name, Properties& into);
  Result<void> opset_import(const Field& field, OpsetImports& into);
  Result<void> dimension(std::string_view message, std::vector<DimSpec>& into);
  Result<void> shape(std::string_view message, std::vector<DimSpec>& into);
  Result<void> tensor_type(std::string_view message, Type& into);
  Result<void> nested_type(std::string_view message, int depth, Type& into);
  Result<void> push_node(const Field& field, int depth, std::vector<Node>& into);
  Result<void> push_value_info(const Field& field, const char* name, std::vector<ValueInfo>& into);
  Result<void> push_attribute(const Field& field, const char* name, int depth, std::vector<Attribute>& into);
  Result<void> graph_field(const Field& field, int depth, Graph& into);
  Result<void> model_field(const Field& field, Model& into);
  Result<void> function_field(const Field& field, Function& into);
  Result<void> node_field(const Field& field, int depth, Node& into);
  Result<AttributeType> attribute_field(const Field& field, int depth, Attribute& into);

  // Tensors: collect the fields, then turn them into a tensor.
  Result<TensorFields> tensor_fields(std::string_view message);
  Result<void> tensor_field(const Field& field, TensorFields& into);
  Result<weft::Tensor> tensor_value(const TensorFields& fields);
  Result<std::int64_t> element_count(const std::vector<std::int64_t>& dims) const;
  Result<weft::Tensor> from_bytes(const TensorFields& fields, DType dtype, std::string_view bytes,
                                  std::shared_ptr<const void> owner);
  Result<weft::Tensor> from_entries(const TensorFields& fields, DType dtype);
  Result<weft::Tensor> from_strings(const TensorFields& fields, std::int64_t elements);
  Result<void> check_sparse(const SparseTensor& sparse) const;

  static constexpr std::size_t kAllocation = 32;  // what one allocation costs beside its bytes

  std::string_view file_;
  std::shared_ptr<const void> owner_;
  const Limits& limits_;
  ExternalData* external_;
  std::size_t budget_;
  std::size_t nodes_ = 0;
};

// Adds where it happened, in front of what the error says already: "If a, attribute then_branch, weights".
Error within(Error error, const std::string& where);

}  // namespace weft::onnx
