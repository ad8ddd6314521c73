// The elements of constants as text. Numbers keep their bits: what no decimal gives back is written
// as 0x and its bits.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "graph/text.h"

namespace weft::graph {
namespace {

// Complex elements are read and written as pairs of floats.
DType part_dtype(DType dtype) {
  if (!is_complex(dtype)) return dtype;
  return bits(dtype) == 64 ? DType::F32 : DType::F64;
}

std::int64_t part_count(const Tensor& t) { return t.size() * (is_complex(t.dtype()) ? 2 : 1); }

std::uint64_t load_bits(DType dtype, const void* data, std::int64_t index) {
  std::uint64_t word = 0;
  const auto bytes = static_cast<std::size_t>(bits(dtype) / 8);
  std::memcpy(&word, static_cast<const char*>(data) + index * static_cast<std::int64_t>(bytes),
              bytes);
  return word;
}

void store_bits(DType dtype, void* data, std::int64_t index, std::uint64_t word) {
  const auto bytes = static_cast<std::size_t>(bits(dtype) / 8);
  std::memcpy(static_cast<char*>(data) + index * static_cast<std::int64_t>(bytes), &word, bytes);
}

std::string float_element(DType dtype, const void* data, std::int64_t index) {
  const double value = load_f64(dtype, data, index);
  if (bits(dtype) < 8) return fmt::format("{}", value);
  std::string text =
      bits(dtype) <= 32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  double back = 0;
  std::uint64_t word = 0;
  std::from_chars(text.data(), text.data() + text.size(), back);
  if (!std::isnan(value)) store_f64(dtype, &word, 0, back);
  const std::uint64_t wanted = load_bits(dtype, data, index);
  return !std::isnan(value) && word == wanted ? text : fmt::format("{:#x}", wanted);
}

Result<void> parse_element(Lexer& lexer, DType dtype, void* data, std::int64_t index) {
  const Token at = lexer.peek();
  if (is_bool(dtype)) {
    if (!at.is("true") && !at.is("false")) return lexer.error("expected true or false");
    store_i64(dtype, data, index, lexer.next().is("true"));
  } else if (is_float(dtype) && bits(dtype) >= 8 && at.kind == Token::Kind::Integer &&
             at.text.substr(0, 2) == "0x") {
    const std::uint64_t word = WEFT_TRY(lexer.unsigned_integer());
    if (bits(dtype) < 64 && (word >> bits(dtype)) != 0)
      return lexer.error_at(at, "more bits than the dtype has");
    store_bits(dtype, data, index, word);
  } else if (is_float(dtype)) {
    store_f64(dtype, data, index, WEFT_TRY(lexer.number()));
  } else if (is_unsigned_int(dtype)) {
    const std::uint64_t value = WEFT_TRY(lexer.unsigned_integer());
    if (bits(dtype) < 64 && (value >> bits(dtype)) != 0)
      return lexer.error_at(at, "a number out of the dtype's range");
    store_i64(dtype, data, index, static_cast<std::int64_t>(value));
  } else {
    const std::int64_t value = WEFT_TRY(lexer.integer());
    const std::int64_t limit = std::int64_t{1} << (std::min(bits(dtype), 63) - 1);
    if (bits(dtype) < 64 && (value < -limit || value >= limit)) {
      return lexer.error_at(at, "a number out of the dtype's range");
    }
    store_i64(dtype, data, index, value);
  }
  return {};
}

std::string print_element(const Tensor& t, std::int64_t i) {
  const DType dtype = part_dtype(t.dtype());
  if (is_string(dtype)) return quote(t.string_values()[static_cast<std::size_t>(i)]);
  if (is_bool(dtype)) return t.i64(i) != 0 ? "true" : "false";
  if (is_float(dtype)) return float_element(dtype, t.data(), i);
  if (is_unsigned_int(dtype)) return fmt::format("{}", static_cast<std::uint64_t>(t.i64(i)));
  return fmt::format("{}", t.i64(i));
}

}  // namespace

std::string print_elements(const Tensor& t) {
  std::string out;
  for (std::int64_t i = 0; i < part_count(t); ++i) out += (i > 0 ? ", " : "") + print_element(t, i);
  return out;
}

Result<Tensor> parse_elements(Lexer& lexer, DType dtype, std::vector<std::int64_t> shape) {
  const Token at = lexer.peek();
  std::int64_t size = 1;
  constexpr std::int64_t kTooMany = kMaxPrintedElements + 1;
  for (std::int64_t d : shape) size = std::min(size * std::min(d, kTooMany), kTooMany);
  if (size == kTooMany) {
    return lexer.error_at(
        at, fmt::format("a list of more than {} elements; name the constant by its hash",
                        kMaxPrintedElements));
  }
  Tensor t = WEFT_TRY(Tensor::zeros(dtype, std::move(shape)));
  for (std::int64_t i = 0; i < part_count(t); ++i) {
    if (i > 0) WEFT_TRY(lexer.expect(","));
    if (is_string(dtype)) {
      t.mutable_strings()[static_cast<std::size_t>(i)] = WEFT_TRY(lexer.string());
    } else {
      WEFT_TRY(parse_element(lexer, part_dtype(dtype), t.mutable_data(), i));
    }
  }
  WEFT_TRY(lexer.expect(")"));
  return t;
}

}  // namespace weft::graph
