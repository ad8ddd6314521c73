#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/wide.h"
#include "runtime/hostops/hostops.h"

namespace weft::runtime {
namespace {

// "d.ddde+XX" with the fewest digits that read back as the same value of the dtype.
std::string shortest_scientific(DType t, double value) {
  char buffer[64];
  const auto digits = [&](auto v) {
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific).ptr;
    return std::string(buffer, end);
  };
  if (t == DType::F64) return digits(value);
  if (t == DType::F32) return digits(static_cast<float>(value));
  for (int precision = 0; precision < 17; ++precision) {
    std::string text = fmt::format("{:.{}e}", value, precision);
    if (decode_float(t, encode_float(t, std::strtod(text.c_str(), nullptr))) == value) return text;
  }
  return digits(value);
}

std::string float_text(DType t, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = shortest_scientific(t, value);
  std::string sign;
  if (text[0] == '-') {
    sign = "-";
    text.erase(0, 1);
  }
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  std::string digits = text.substr(0, 1) + (e > 2 ? text.substr(2, e - 2) : "");
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction = count > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], fraction, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (exponent >= count - 1) {
    return sign + digits + std::string(static_cast<std::size_t>(exponent - count + 1), '0') + ".0";
  }
  return sign + digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
}

std::string element_text(const Tensor& x, std::int64_t i) {
  const DType t = x.dtype();
  if (is_float(t)) return float_text(t, x.f64(i));
  if (is_bool(t)) return x.i64(i) ? "True" : "False";
  if (is_unsigned_int(t)) return fmt::to_string(static_cast<std::uint64_t>(x.i64(i)));
  return fmt::to_string(x.i64(i));
}

std::string_view trimmed(std::string_view s) {
  const char* blanks = " \t\r\n";
  const std::size_t first = s.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  s = s.substr(first, s.find_last_not_of(blanks) - first + 1);
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  return s;
}

template <class T>
bool read_whole(std::string_view s, T& value) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (end != s.data() + s.size()) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {  // too large or too small: strtod tells which, by its limits
      value = static_cast<T>(std::strtod(std::string(s).c_str(), nullptr));
      return true;
    }
  }
  return error == std::errc();
}

bool read_float(std::string_view s, DType t, double& value) {
  if (t != DType::F32) return read_whole(s, value);
  float narrow = 0;  // straight to f32, to round once
  if (!read_whole(s, narrow)) return false;
  value = narrow;
  return true;
}

bool read_bool(std::string_view s, bool& value) {
  std::string lower(s);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  double number = 0;
  if (lower == "true" || lower == "false") {
    value = lower == "true";
    return true;
  }
  if (!read_whole(s, number)) return false;
  value = number != 0;
  return true;
}

bool read_int(std::string_view s, DType t, std::int64_t& value) {
  std::uint64_t large = 0;
  if (read_whole(s, value)) return true;
  if (is_unsigned_int(t) && read_whole(s, large)) {
    value = static_cast<std::int64_t>(large);
    return true;
  }
  double number = 0;
  if (!read_whole(s, number)) return false;
  value = clamp_to_int(t, number);
  return true;
}

bool read_element(std::string_view s, bool saturate, Tensor& out, std::int64_t i) {
  const DType t = out.dtype();
  if (is_float(t)) {
    double value = 0;
    if (!read_float(s, t, value)) return false;
    out.set_f64(i, saturate && bits(t) <= 8 ? decode_float(t, encode_float(t, value, true)) : value);
    return true;
  }
  if (is_bool(t)) {
    bool value = false;
    if (!read_bool(s, value)) return false;
    out.set_i64(i, value);
    return true;
  }
  std::int64_t value = 0;
  if (!read_int(s, t, value)) return false;
  out.set_i64(i, value);
  return true;
}

}  // namespace

Result<Tensor> to_strings(const Tensor& x) {
  Tensor out = WEFT_TRY(Tensor::empty(DType::Str, x.shape()));
  std::vector<std::string>& texts = out.mutable_strings();
  for (std::int64_t i = 0; i < x.size(); ++i) texts[i] = element_text(x, i);
  return out;
}

Result<Tensor> from_strings(const Tensor& x, DType dtype, bool saturate) {
  WEFT_CHECK(!is_complex(dtype), "complex numbers are not read from strings");
  Tensor out = WEFT_TRY(result_tensor(dtype, x.shape()));
  const std::vector<std::string>& texts = x.string_values();
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (!read_element(trimmed(texts[i]), saturate, out, i)) {
      return user_error("not-a-number", fmt::format("element {} of the strings is no number", i))
          .expected(std::string("a value of ") + name(dtype))
          .found("'" + texts[i].substr(0, 40) + "'");
    }
  }
  return out;
}

}  // namespace weft::runtime
