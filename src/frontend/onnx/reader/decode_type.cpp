// TypeProto, TensorShapeProto, ValueInfoProto.
#include "frontend/onnx/fields.h"
#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {
namespace {

Type::Kind kind_of(std::uint32_t field) {
  switch (field) {
    case TypeProto::Tensor: return Type::Kind::Tensor;
    case TypeProto::Sequence: return Type::Kind::Sequence;
    case TypeProto::Map: return Type::Kind::Map;
    case TypeProto::SparseTensor: return Type::Kind::SparseTensor;
    case TypeProto::Optional: return Type::Kind::Optional;
    default: return Type::Kind::Unset;
  }
}

}  // namespace

// A negative size means unknown: old exporters write -1.
Result<void> Decoder::dimension(std::string_view message, std::vector<DimSpec>& into) {
  if (into.size() >= static_cast<std::size_t>(limits_.rank)) {
    return malformed("TensorShapeProto", "too many dimensions", message.data());
  }
  DimSpec dim;
  WEFT_TRY(each(message, "TensorShapeProto.Dimension", [&](const Field& f) -> Result<void> {
    if (f.number == TensorShapeProto::DimValue) {
      const std::int64_t value = WEFT_TRY(integer(f, "dim_value"));
      dim.value = value >= 0 ? std::optional(value) : std::nullopt;
    } else if (f.number == TensorShapeProto::DimParam) {
      return text_into(f, "dim_param", dim.param);
    }
    return {};
  }));
  if (dim.value) dim.param.clear();
  return push(into, std::move(dim));
}

Result<void> Decoder::shape(std::string_view message, std::vector<DimSpec>& into) {
  return each(message, "TensorShapeProto", [&](const Field& f) -> Result<void> {
    if (f.number != TensorShapeProto::Dim) return {};
    return dimension(WEFT_TRY(view(f, "dim")), into);
  });
}

Result<void> Decoder::tensor_type(std::string_view message, Type& into) {
  return each(message, "TypeProto.Tensor", [&](const Field& f) -> Result<void> {
    if (f.number == TypeProto::ElemType) {
      into.elem = WEFT_TRY(element_type(WEFT_TRY(integer(f, "elem_type"))));
    } else if (f.number == TypeProto::Shape) {
      if (!into.shape) into.shape.emplace();
      return shape(WEFT_TRY(view(f, "shape")), *into.shape);
    }
    return {};
  });
}

Result<void> Decoder::nested_type(std::string_view message, int depth, Type& into) {
  const bool map = into.kind == Type::Kind::Map;
  return each(message, "TypeProto", [&](const Field& f) -> Result<void> {
    if (map && f.number == TypeProto::KeyType) {
      into.elem = WEFT_TRY(element_type(WEFT_TRY(integer(f, "key_type"))));
    } else if (f.number == (map ? TypeProto::MapValue : TypeProto::Element)) {
      into.element = WEFT_TRY(type(WEFT_TRY(view(f, "elem_type")), depth + 1));
    }
    return {};
  });
}

Result<std::shared_ptr<const Type>> Decoder::type(std::string_view message, int depth) {
  WEFT_TRY(check_depth(depth, "types"));
  WEFT_TRY(charge(sizeof(Type) + 2 * kAllocation));
  auto out = std::make_shared<Type>();
  WEFT_TRY(each(message, "TypeProto", [&](const Field& f) -> Result<void> {
    if (f.number == TypeProto::Opaque) return unsupported("type-unsupported", "opaque types are not supported");
    const Type::Kind kind = kind_of(f.number);
    if (kind == Type::Kind::Unset) return {};
    const std::string_view content = WEFT_TRY(view(f, "type"));
    if (out->kind != Type::Kind::Unset) return malformed("TypeProto", "a type is given twice", f.start);
    out->kind = kind;
    const bool tensor = kind == Type::Kind::Tensor || kind == Type::Kind::SparseTensor;
    return tensor ? tensor_type(content, *out) : nested_type(content, depth, *out);
  }));
  return std::shared_ptr<const Type>(std::move(out));
}

Result<ValueInfo> Decoder::value_info(std::string_view message) {
  ValueInfo out;
  Result<void> done = each(message, "ValueInfoProto", [&](const Field& f) -> Result<void> {
    if (f.number == ValueInfoProto::Name) return text_into(f, "name", out.name);
    if (f.number == ValueInfoProto::Type) out.type = *WEFT_TRY(type(WEFT_TRY(view(f, "type")), 1));
    return {};
  });
  if (!done) return within(done.error(), printable(out.name));
  return out;
}

Result<void> Decoder::push_value_info(const Field& field, const char* name, std::vector<ValueInfo>& into) {
  return push(into, WEFT_TRY(value_info(WEFT_TRY(view(field, name)))));
}

}  // namespace weft::onnx
