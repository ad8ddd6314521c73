// TensorProto and SparseTensorProto.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "frontend/onnx/fields.h"
#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {
namespace {

// The typed field that holds elements of this type, and its name.
std::pair<std::uint32_t, const char*> typed_field(DType dtype) {
  switch (dtype) {
    case DType::Str: return {TensorProto::StringData, "string_data"};
    case DType::F32:
    case DType::C64: return {TensorProto::FloatData, "float_data"};
    case DType::F64:
    case DType::C128: return {TensorProto::DoubleData, "double_data"};
    case DType::I64: return {TensorProto::Int64Data, "int64_data"};
    case DType::U32:
    case DType::U64: return {TensorProto::Uint64Data, "uint64_data"};
    default: return {TensorProto::Int32Data, "int32_data"};
  }
}

// Entries of one typed field are copied with this width; sub-byte types hold a whole byte of elements per entry.
std::size_t entry_bytes(DType dtype) {
  if (is_complex(dtype)) return static_cast<std::size_t>(bits(dtype)) / 16;
  return std::max<std::size_t>(1, static_cast<std::size_t>(bits(dtype)) / 8);
}

bool fits(std::int64_t value, DType dtype) {
  if (dtype == DType::I64 || dtype == DType::U64) return true;
  if (dtype == DType::U32) return value >= 0 && value <= std::int64_t{UINT32_MAX};
  if (dtype == DType::I32) return value >= INT32_MIN && value <= INT32_MAX;
  // Narrow types travel as their bits, with or without sign.
  return bits(dtype) == 16 ? value >= INT16_MIN && value <= UINT16_MAX : value >= INT8_MIN && value <= UINT8_MAX;
}

Error bad_tensor(std::string message) { return user_error("tensor-invalid", std::move(message)); }

}  // namespace

struct Decoder::TensorFields {
  std::string_view message;
  std::string name;
  std::vector<std::int64_t> dims;
  std::int64_t data_type = 0;
  std::optional<std::string_view> raw;
  std::uint32_t typed = 0;  // the typed field that is in use; 0: none
  std::size_t entries = 0;  // in it
  bool external = false;
  Properties external_data;
};

Result<void> Decoder::tensor_field(const Field& f, TensorFields& into) {
  const auto use_typed = [&](std::size_t count) -> Result<void> {
    if (into.typed != 0 && into.typed != f.number) return bad_tensor("a tensor has values in two fields");
    into.typed = f.number;
    into.entries += count;
    return {};
  };
  const bool packed = f.type == WireType::Bytes;
  switch (f.number) {
    case TensorProto::Dims: return push_integers(f, "dims", into.dims, static_cast<std::size_t>(limits_.rank));
    case TensorProto::DataType: into.data_type = WEFT_TRY(integer(f, "data_type")); return {};
    case TensorProto::Segment: return unsupported("tensor-segment", "tensors in segments are not supported");
    case TensorProto::Name: return text_into(f, "name", into.name);
    case TensorProto::RawData: into.raw = WEFT_TRY(view(f, "raw_data")); return {};
    case TensorProto::StringData: WEFT_TRY(view(f, "string_data")); return use_typed(1);
    case TensorProto::FloatData:
    case TensorProto::DoubleData: {
      const std::size_t width = f.number == TensorProto::FloatData ? 4 : 8;
      if (packed && f.bytes.size() % width == 0) return use_typed(f.bytes.size() / width);
      if (f.type == (width == 4 ? WireType::Fixed32 : WireType::Fixed64)) return use_typed(1);
      return wrong_type(f, "float_data or double_data");
    }
    case TensorProto::Int32Data:
    case TensorProto::Int64Data:
    case TensorProto::Uint64Data: {
      if (f.type == WireType::Varint) return use_typed(1);
      if (!packed) return wrong_type(f, "int32_data, int64_data or uint64_data");
      // Each varint ends in a byte without the top bit.
      return use_typed(static_cast<std::size_t>(std::count_if(
          f.bytes.begin(), f.bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0x80) == 0; })));
    }
    case TensorProto::ExternalData: return property(f, "external_data", into.external_data);
    case TensorProto::DataLocation: into.external = WEFT_TRY(integer(f, "data_location")) == 1; return {};
    default: return {};
  }
}

Result<Decoder::TensorFields> Decoder::tensor_fields(std::string_view message) {
  TensorFields out;
  out.message = message;
  Result<void> done = each(message, "TensorProto", [&](const Field& f) { return tensor_field(f, out); });
  if (!done) return within(done.error(), printable(out.name));
  return out;
}

// The product of the non-zero dims is bounded too, so that strides never overflow.
Result<std::int64_t> Decoder::element_count(const std::vector<std::int64_t>& dims) const {
  std::int64_t count = 1;
  bool zero = false;
  for (const std::int64_t d : dims) {
    if (d < 0) return bad_tensor(fmt::format("a tensor has the negative dimension {}", d));
    if (d == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(count, d, &count) || count > limits_.elements) {
      return bad_tensor(fmt::format("a tensor of shape {} has too many elements", shape_str(dims)))
          .expected(fmt::format("at most {}", limits_.elements));
    }
  }
  return zero ? 0 : count;
}

Result<weft::Tensor> Decoder::from_bytes(const TensorFields& fields, DType dtype, std::string_view bytes,
                                         std::shared_ptr<const void> owner) {
  const auto is_truth = [](char c) { return static_cast<unsigned char>(c) <= 1; };
  const bool clean = dtype != DType::Bool || std::all_of(bytes.begin(), bytes.end(), is_truth);
  constexpr std::size_t kFew = 4096;  // bytes that are copied at once rather than when they are asked for
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment(dtype) == 0;
  if (clean && (aligned || bytes.size() > kFew) && !bytes.empty()) {
    WEFT_TRY(charge(fields.dims.size() * sizeof(std::int64_t) + kAllocation));
    return weft::Tensor::view_anywhere(dtype, fields.dims, bytes.data(), std::move(owner));
  }
  constexpr std::size_t kOwned = 256;  // padding, the owner's block, the dims
  WEFT_TRY(charge(bytes.size() + fields.dims.size() * sizeof(std::int64_t) + kOwned));
  weft::Tensor out = WEFT_TRY(weft::Tensor::empty(dtype, fields.dims));
  if (!bytes.empty()) std::memcpy(out.mutable_data(), bytes.data(), bytes.size());
  MappedFile::release(bytes.data(), bytes.size());  // nobody reads it again
  if (!clean) {
    auto* truth = out.as_mutable<std::uint8_t>();
    std::transform(truth, truth + bytes.size(), truth, [](std::uint8_t b) { return std::uint8_t{b != 0}; });
  }
  return out;
}

Result<weft::Tensor> Decoder::from_entries(const TensorFields& fields, DType dtype) {
  constexpr std::size_t kOwned = 256;
  const std::size_t width = entry_bytes(dtype);
  WEFT_TRY(charge(fields.entries * width + fields.dims.size() * sizeof(std::int64_t) + kOwned));
  weft::Tensor out = WEFT_TRY(weft::Tensor::empty(dtype, fields.dims));
  auto* to = out.as_mutable<char>();
  const auto store = [&](std::uint64_t value) -> Result<void> {
    if (fields.typed == TensorProto::Int32Data) value = static_cast<std::uint64_t>(static_cast<std::int32_t>(value));
    if (!is_float(dtype) && !fits(static_cast<std::int64_t>(value), dtype)) {
      return bad_tensor(fmt::format("the value {} does not fit {}", static_cast<std::int64_t>(value), name(dtype)));
    }
    if (dtype == DType::Bool) value = value != 0;
    std::memcpy(to, &value, width);
    to += width;
    return {};
  };
  WEFT_TRY(each(fields.message, "TensorProto", [&](const Field& f) -> Result<void> {
    if (f.number != fields.typed) return {};
    if (f.type != WireType::Bytes) return store(f.bits);
    if (f.number == TensorProto::FloatData || f.number == TensorProto::DoubleData) {
      if (!f.bytes.empty()) std::memcpy(to, f.bytes.data(), f.bytes.size());
      to += f.bytes.size();
      return {};
    }
    const char* at = f.bytes.data();
    const char* end = at + f.bytes.size();
    while (at != end) {
      std::uint64_t value = 0;
      if (!decode_varint(at, end, value)) return malformed("TensorProto", "a value is cut off or too long", f.start);
      Result<void> stored = store(value);
      if (!stored) return stored;
    }
    return {};
  }));
  return out;
}

Result<weft::Tensor> Decoder::from_strings(const TensorFields& fields, std::int64_t elements) {
  if (fields.raw || fields.external) return bad_tensor("a tensor of strings has its values outside string_data");
  if (fields.entries != static_cast<std::size_t>(elements)) {
    return bad_tensor(fmt::format("a tensor of shape {} has a wrong number of strings", shape_str(fields.dims)))
        .expected(fmt::format("{}", elements))
        .found(fmt::format("{}", fields.entries));
  }
  std::vector<std::string> values;
  WEFT_TRY(reserve(values, fields.entries));
  WEFT_TRY(charge(8 * kAllocation));
  WEFT_TRY(each(fields.message, "TensorProto", [&](const Field& f) -> Result<void> {
    return f.number == TensorProto::StringData ? push_text(f, "string_data", values) : Result<void>();
  }));
  return weft::Tensor::strings(fields.dims, std::move(values));
}

Result<weft::Tensor> Decoder::tensor_value(const TensorFields& fields) {
  const std::optional<DType> dtype = WEFT_TRY(element_type(fields.data_type));
  if (!dtype) return bad_tensor("a tensor has no element type");
  const std::int64_t elements = WEFT_TRY(element_count(fields.dims));
  const auto [expected_field, field_name] = typed_field(*dtype);
  if (fields.typed != 0 && fields.typed != expected_field && fields.entries != 0) {
    return bad_tensor(fmt::format("a tensor of {} has its values in the wrong field", name(*dtype)))
        .expected(field_name);
  }
  if (is_string(*dtype)) return from_strings(fields, elements);
  const std::optional<std::size_t> size = storage_bytes(*dtype, elements);
  if (!size) return bad_tensor(fmt::format("a tensor of shape {} is too large", shape_str(fields.dims)));
  const bool has_raw = fields.raw && !fields.raw->empty();
  if (int{has_raw} + int{fields.entries != 0} + int{fields.external} > 1) {
    return bad_tensor("a tensor has values in two places").expected("one of raw_data, a typed field or external data");
  }
  if (fields.external) {
    if (external_ == nullptr) return user_error("external-data", "external data needs a model that is read from a file");
    ExternalBytes found = WEFT_TRY(external_->find(fields.external_data, *size));
    return from_bytes(fields, *dtype, found.bytes, std::move(found.owner));
  }
  const std::size_t given = has_raw ? fields.raw->size() : fields.entries * entry_bytes(*dtype);
  if (given != *size) {
    return bad_tensor(fmt::format("the values of a tensor of {}{} do not fit its shape", name(*dtype),
                                  shape_str(fields.dims)))
        .expected(fmt::format("{} bytes", *size))
        .found(fmt::format("{} in {}", given, fields.entries != 0 ? field_name : "raw_data"));
  }
  if (fields.entries != 0) return from_entries(fields, *dtype);
  return from_bytes(fields, *dtype, fields.raw.value_or(std::string_view()), owner_);
}

Result<NamedTensor> Decoder::tensor(std::string_view message) {
  TensorFields fields = WEFT_TRY(tensor_fields(message));
  Result<weft::Tensor> value = tensor_value(fields);
  if (!value) return within(value.error(), printable(fields.name));
  return NamedTensor{std::move(fields.name), std::move(value).value()};
}

namespace {

// The indices must be inside the shape and ascend.
Result<void> check_indices(const SparseTensor& sparse, std::int64_t elements) {
  const std::int64_t rank = sparse.indices.rank() == 2 ? sparse.indices.shape()[1] : 0;
  std::int64_t previous = -1;
  for (std::int64_t i = 0; i < sparse.values.size(); ++i) {
    std::int64_t linear = rank == 0 ? sparse.indices.i64(i) : 0;
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      const std::int64_t extent = sparse.shape[static_cast<std::size_t>(axis)];
      const std::int64_t index = sparse.indices.i64(i * rank + axis);
      if (index < 0 || index >= extent) return bad_tensor(fmt::format("sparse index {} is out of range", index));
      linear = linear * extent + index;
    }
    if (linear < 0 || linear >= elements) return bad_tensor(fmt::format("sparse index {} is out of range", linear));
    if (linear <= previous) return bad_tensor("sparse indices do not ascend");
    previous = linear;
  }
  return {};
}

}  // namespace

Result<void> Decoder::check_sparse(const SparseTensor& sparse) const {
  const std::int64_t elements = WEFT_TRY(element_count(sparse.shape));
  const std::vector<std::int64_t>& indices = sparse.indices.shape();
  const auto rank = static_cast<std::int64_t>(sparse.shape.size());
  if (sparse.values.rank() != 1) return bad_tensor("sparse values are not of rank 1");
  const bool fits = !indices.empty() && indices[0] == sparse.values.size() &&
                    (indices.size() == 1 || (indices.size() == 2 && indices[1] == rank && rank > 0));
  if (sparse.indices.dtype() != DType::I64 || !fits) {
    return bad_tensor("sparse indices do not fit their values")
        .expected(fmt::format("i64[{}] or i64[{}, {}]", sparse.values.size(), sparse.values.size(), rank))
        .found(fmt::format("{}{}", name(sparse.indices.dtype()), shape_str(indices)));
  }
  return check_indices(sparse, elements);
}

Result<SparseTensor> Decoder::sparse_tensor(std::string_view message) {
  SparseTensor out;
  WEFT_TRY(each(message, "SparseTensorProto", [&](const Field& f) -> Result<void> {
    if (f.number == SparseTensorProto::Values) {
      NamedTensor values = WEFT_TRY(tensor(WEFT_TRY(view(f, "values"))));
      out.name = std::move(values.name);
      out.values = std::move(values.tensor);
    } else if (f.number == SparseTensorProto::Indices) {
      out.indices = WEFT_TRY(tensor(WEFT_TRY(view(f, "indices")))).tensor;
    } else if (f.number == SparseTensorProto::Dims) {
      return push_integers(f, "dims", out.shape, static_cast<std::size_t>(limits_.rank));
    }
    return {};
  }));
  Result<void> checked = check_sparse(out);
  if (!checked) return within(checked.error(), printable(out.name));
  return out;
}

}  // namespace weft::onnx
