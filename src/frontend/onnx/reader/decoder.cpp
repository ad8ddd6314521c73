#include "frontend/onnx/reader/decoder.h"

#include <fmt/format.h>

#include <bit>

namespace weft::onnx {

static_assert(std::endian::native == std::endian::little, "fixed-width fields are copied as they are");

std::string printable(std::string_view text) {
  constexpr std::size_t kLimit = 80;
  std::string out;
  for (const char c : text.substr(0, kLimit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return text.size() > kLimit ? out + "..." : out;
}

Error within(Error error, const std::string& where) {
  if (where.empty()) return error;
  error.at(error.where().empty() ? where : fmt::format("{}, {}", where, error.where()));
  return error;
}

Decoder::Decoder(std::string_view file, std::shared_ptr<const void> owner, const Limits& limits, ExternalData* external)
    : file_(file), owner_(std::move(owner)), limits_(limits), external_(external) {
  std::size_t scaled = 0;
  if (__builtin_mul_overflow(file.size(), limits.memory_factor, &scaled) ||
      __builtin_add_overflow(scaled, limits.memory_base, &budget_)) {
    budget_ = SIZE_MAX;
  }
}

Error Decoder::malformed(const char* what, const std::string& problem, const char* position) const {
  return user_error("malformed-protobuf", fmt::format("{} in {} at byte {}", problem, what, offset(position)))
      .suggest("the file is damaged, cut off, or not an ONNX file");
}

Error Decoder::wrong_type(const Field& field, const char* name) const {
  return malformed(name, fmt::format("field {} has wire type {}", field.number, static_cast<int>(field.type)),
                   field.start);
}

Result<void> Decoder::charge(std::size_t bytes) {
  if (bytes > budget_) {
    return unsupported("model-too-complex", "reading this file takes more memory than its size explains")
        .suggest("raise Limits::memory_base if the file is to be trusted");
  }
  budget_ -= bytes;
  return {};
}

Decoder::Counts Decoder::count(std::string_view message) const {
  Counts counts{};
  FieldCursor cursor(message);
  Field field;
  while (cursor.next(field)) {
    if (field.number < counts.size()) ++counts[field.number];
  }
  return counts;
}

Result<std::string_view> Decoder::view(const Field& field, const char* name) const {
  if (field.type != WireType::Bytes) return wrong_type(field, name);
  return field.bytes;
}

Result<std::string> Decoder::text(const Field& field, const char* name) {
  if (field.type != WireType::Bytes) return wrong_type(field, name);
  if (field.bytes.size() > limits_.string_bytes) {
    return unsupported("limit-exceeded", fmt::format("a string of {} bytes in {} at byte {}", field.bytes.size(), name,
                                                     offset(field.start)))
        .expected(fmt::format("at most {} bytes", limits_.string_bytes));
  }
  constexpr std::size_t kInline = 15;  // bytes that std::string holds without allocating
  if (field.bytes.size() > kInline) {
    Result<void> charged = charge(field.bytes.size() + kAllocation);
    if (!charged) return charged.error();
  }
  return std::string(field.bytes);
}

Result<void> Decoder::text_into(const Field& field, const char* name, std::string& into) {
  into = WEFT_TRY(text(field, name));
  return {};
}

Result<void> Decoder::domain_into(const Field& field, std::string& into) {
  into = WEFT_TRY(text(field, "domain"));
  if (into == "ai.onnx") into.clear();
  return {};
}

Result<void> Decoder::push_text(const Field& field, const char* name, std::vector<std::string>& into) {
  return push(into, WEFT_TRY(text(field, name)));
}

Result<std::int64_t> Decoder::integer(const Field& field, const char* name) const {
  if (field.type != WireType::Varint) return wrong_type(field, name);
  return static_cast<std::int64_t>(field.bits);
}

Result<float> Decoder::real(const Field& field, const char* name) const {
  if (field.type != WireType::Fixed32) return wrong_type(field, name);
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.bits));
}

Result<void> Decoder::push_integers(const Field& field, const char* name, std::vector<std::int64_t>& into,
                                    std::size_t limit) {
  const char* at = field.bytes.data();
  const char* end = at + field.bytes.size();
  if (field.type == WireType::Varint) {
    if (into.size() >= limit) return malformed(name, fmt::format("more than {} numbers", limit), field.start);
    return push(into, static_cast<std::int64_t>(field.bits));
  }
  if (field.type != WireType::Bytes) return wrong_type(field, name);
  while (at != end) {
    std::uint64_t value = 0;
    if (!decode_varint(at, end, value)) return malformed(name, "a number is cut off or too long", field.start);
    if (into.size() >= limit) return malformed(name, fmt::format("more than {} numbers", limit), field.start);
    Result<void> pushed = push(into, static_cast<std::int64_t>(value));
    if (!pushed) return pushed;
  }
  return {};
}

Result<void> Decoder::push_reals(const Field& field, const char* name, std::vector<float>& into) {
  if (field.type == WireType::Fixed32) return push(into, WEFT_TRY(real(field, name)));
  if (field.type != WireType::Bytes) return wrong_type(field, name);
  if (field.bytes.size() % 4 != 0) return malformed(name, "a list of floats is cut off", field.start);
  for (std::size_t i = 0; i < field.bytes.size(); i += 4) {
    float value;
    field.bytes.copy(reinterpret_cast<char*>(&value), 4, i);
    Result<void> pushed = push(into, value);
    if (!pushed) return pushed;
  }
  return {};
}

Result<std::optional<DType>> Decoder::element_type(std::int64_t number) const {
  if (number == 0) return std::optional<DType>();
  const std::optional<DType> dtype = dtype_from_onnx(number);
  if (!dtype) return unsupported("element-type-unsupported", fmt::format("element type {} is not known", number));
  return dtype;
}

Result<void> Decoder::check_depth(int depth, const char* what) const {
  if (depth <= limits_.nesting) return {};
  return unsupported("limit-exceeded", fmt::format("{} are nested more than {} deep", what, limits_.nesting));
}

Result<void> Decoder::property(const Field& field, const char* name, Properties& into) {
  std::pair<std::string, std::string> entry;
  WEFT_TRY(each(WEFT_TRY(view(field, name)), name, [&](const Field& f) -> Result<void> {
    if (f.number == 1) return text_into(f, name, entry.first);
    if (f.number == 2) return text_into(f, name, entry.second);
    return {};
  }));
  return push(into, std::move(entry));
}

}  // namespace weft::onnx
