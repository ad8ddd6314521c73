// AttributeProto.
#include <fmt/format.h>

#include "frontend/onnx/fields.h"
#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {
namespace {

constexpr int kTypes = static_cast<int>(std::size(AttributeProto::kValue));

AttributeType type_of_field(std::uint32_t field) {
  for (int i = 1; i < kTypes; ++i) {
    if (AttributeProto::kValue[i] == field) return static_cast<AttributeType>(i);
  }
  return AttributeType::Undefined;
}

// What an attribute holds when its field is absent: proto3 leaves out zeros, empty strings and empty lists.
template <int I = 1>
AttributeValue default_value(AttributeType type) {
  if constexpr (I < kTypes) {
    if (static_cast<int>(type) == I) return AttributeValue(std::in_place_index<I>);
    return default_value<I + 1>(type);
  } else {
    return {};
  }
}

bool is_message(AttributeType type) {
  return type == AttributeType::Tensor || type == AttributeType::Graph || type == AttributeType::SparseTensor ||
         type == AttributeType::TypeProto;
}

Error bad_attribute(std::string message) { return user_error("attribute-invalid", std::move(message)); }

}  // namespace

// Reads a value into `into`, whose alternative is already chosen for a list.
Result<AttributeType> Decoder::attribute_field(const Field& f, int depth, Attribute& into) {
  const AttributeType type = type_of_field(f.number);
  if (type == AttributeType::Undefined) return type;
  if (into.type() != AttributeType::Undefined && (into.type() != type || is_message(type))) {
    return bad_attribute("an attribute has two values");
  }
  AttributeValue& value = into.value;
  if (into.type() == AttributeType::Undefined) value = default_value(type);
  const char* what = "AttributeProto";
  const auto sparse = [&]() -> Result<std::shared_ptr<const SparseTensor>> {
    WEFT_TRY(charge(sizeof(SparseTensor) + 2 * kAllocation));
    return std::shared_ptr<const SparseTensor>(
        std::make_shared<SparseTensor>(WEFT_TRY(sparse_tensor(WEFT_TRY(view(f, what))))));
  };
  const auto put = [&]<class T>(std::vector<T>& list, Result<T> item) -> Result<void> {
    return item ? push(list, std::move(item).value()) : Result<void>(item.error());
  };
  Result<void> done;
  switch (type) {
    case AttributeType::Float: value = WEFT_TRY(real(f, "f")); break;
    case AttributeType::Int: value = WEFT_TRY(integer(f, "i")); break;
    case AttributeType::String: value = WEFT_TRY(text(f, "s")); break;
    case AttributeType::Tensor: value = WEFT_TRY(tensor(WEFT_TRY(view(f, "t")))).tensor; break;
    case AttributeType::Graph: value = WEFT_TRY(graph(WEFT_TRY(view(f, "g")), depth + 1)); break;
    case AttributeType::SparseTensor: value = WEFT_TRY(sparse()); break;
    case AttributeType::TypeProto: value = WEFT_TRY(this->type(WEFT_TRY(view(f, "tp")), 1)); break;
    case AttributeType::Floats: done = push_reals(f, "floats", std::get<std::vector<float>>(value)); break;
    case AttributeType::Ints:
      done = push_integers(f, "ints", std::get<std::vector<std::int64_t>>(value), SIZE_MAX);
      break;
    case AttributeType::Strings: done = push_text(f, "strings", std::get<std::vector<std::string>>(value)); break;
    case AttributeType::Tensors:
      done = push(std::get<std::vector<weft::Tensor>>(value), WEFT_TRY(tensor(WEFT_TRY(view(f, "tensors")))).tensor);
      break;
    case AttributeType::Graphs:
      done = put(std::get<std::vector<GraphPtr>>(value), graph(WEFT_TRY(view(f, "graphs")), depth + 1));
      break;
    case AttributeType::SparseTensors:
      done = put(std::get<std::vector<std::shared_ptr<const SparseTensor>>>(value), sparse());
      break;
    case AttributeType::TypeProtos:
      done = put(std::get<std::vector<std::shared_ptr<const Type>>>(value),
                 this->type(WEFT_TRY(view(f, "type_protos")), 1));
      break;
    case AttributeType::Undefined: break;
  }
  if (!done) return done.error();
  return type;
}

Result<Attribute> Decoder::attribute(std::string_view message, int depth) {
  Attribute out;
  std::int64_t declared = 0;
  Result<void> done = each(message, "AttributeProto", [&](const Field& f) -> Result<void> {
    if (f.number == AttributeProto::Name) return text_into(f, "name", out.name);
    if (f.number == AttributeProto::RefAttrName) return text_into(f, "ref_attr_name", out.ref_attr_name);
    if (f.number == AttributeProto::Type) {
      declared = WEFT_TRY(integer(f, "type"));
      return {};
    }
    Result<AttributeType> read = attribute_field(f, depth, out);
    return read ? Result<void>() : Result<void>(read.error());
  });
  const std::string shown = printable(out.name);
  if (!done) return within(done.error(), "attribute " + shown);
  if (declared < 0 || declared >= kTypes) {
    return unsupported("attribute-type-unsupported", fmt::format("attribute '{}' is of type {}", shown, declared))
        .expected(fmt::format("0 to {}", kTypes - 1));
  }
  out.declared = static_cast<AttributeType>(declared);
  if (out.is_reference()) {
    if (out.type() != AttributeType::Undefined) {
      return bad_attribute(fmt::format("attribute '{}' has both a value and a reference", shown));
    }
    return out;
  }
  if (out.type() == AttributeType::Undefined) {
    if (out.declared == AttributeType::Undefined || is_message(out.declared)) {
      return bad_attribute(fmt::format("attribute '{}' has no value", shown));
    }
    out.value = default_value(out.declared);
  }
  if (out.declared == AttributeType::Undefined) out.declared = out.type();  // files before IR version 2
  if (out.declared != out.type()) {
    return bad_attribute(fmt::format("attribute '{}' has a value of another type than declared", shown))
        .expected(name(out.declared))
        .found(name(out.type()));
  }
  return out;
}

Result<void> Decoder::push_attribute(const Field& field, const char* name, int depth, std::vector<Attribute>& into) {
  return push(into, WEFT_TRY(attribute(WEFT_TRY(view(field, name)), depth)));
}

}  // namespace weft::onnx
