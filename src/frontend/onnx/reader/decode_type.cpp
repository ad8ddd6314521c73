// TypeProto, TensorShapeProto, ValueInfoProto.
#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {
namespace {

// TypeProto's fields.
enum : std::uint32_t { kTensor = 1, kSequence = 4, kMap = 5, kOpaque = 7, kSparseTensor = 8, kOptional = 9 };

Type::Kind kind_of(std::uint32_t field) {
  switch (field) {
    case kTensor: return Type::Kind::Tensor;
    case kSequence: return Type::Kind::Sequence;
    case kMap: return Type::Kind::Map;
    case kSparseTensor: return Type::Kind::SparseTensor;
    case kOptional: return Type::Kind::Optional;
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
    if (f.number == 1) {
      const std::int64_t value = WEFT_TRY(integer(f, "dim_value"));
      dim.value = value >= 0 ? std::optional(value) : std::nullopt;
    } else if (f.number == 2) {
      return text_into(f, "dim_param", dim.param);
    }
    return {};
  }));
  if (dim.value) dim.param.clear();
  return push(into, std::move(dim));
}

Result<void> Decoder::shape(std::string_view message, std::vector<DimSpec>& into) {
  return each(message, "TensorShapeProto", [&](const Field& f) -> Result<void> {
    if (f.number != 1) return {};
    return dimension(WEFT_TRY(view(f, "dim")), into);
  });
}

Result<void> Decoder::tensor_type(std::string_view message, Type& into) {
  return each(message, "TypeProto.Tensor", [&](const Field& f) -> Result<void> {
    if (f.number == 1) {
      into.elem = WEFT_TRY(element_type(WEFT_TRY(integer(f, "elem_type"))));
    } else if (f.number == 2) {
      if (!into.shape) into.shape.emplace();
      return shape(WEFT_TRY(view(f, "shape")), *into.shape);
    }
    return {};
  });
}

// Sequence and Optional hold their element's type as field 1; Map its key's number as 1 and its value's type as 2.
Result<void> Decoder::nested_type(std::string_view message, int depth, Type& into) {
  const bool map = into.kind == Type::Kind::Map;
  return each(message, "TypeProto", [&](const Field& f) -> Result<void> {
    if (map && f.number == 1) {
      into.elem = WEFT_TRY(element_type(WEFT_TRY(integer(f, "key_type"))));
    } else if (f.number == (map ? 2u : 1u)) {
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
    if (f.number == kOpaque) return unsupported("type-unsupported", "opaque types are not supported");
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
    if (f.number == 1) return text_into(f, "name", out.name);
    if (f.number == 2) out.type = *WEFT_TRY(type(WEFT_TRY(view(f, "type")), 1));
    return {};
  });
  if (!done) return within(done.error(), printable(out.name));
  return out;
}

Result<void> Decoder::push_value_info(const Field& field, const char* name, std::vector<ValueInfo>& into) {
  return push(into, WEFT_TRY(value_info(WEFT_TRY(view(field, name)))));
}

}  // namespace weft::onnx
