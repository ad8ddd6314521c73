#include "codegen/text/wgsl_helpers.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

namespace weft::codegen::text {
namespace {

struct Helper {
  std::string name, text;
};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

struct Integer {
  const char *name, *type;
  int bits;
  bool is_signed;
};
constexpr Integer kIntegers[] = {{"i8", "i32", 8, true},   {"i16", "i32", 16, true},  {"i32", "i32", 32, true},  {"i64", "i64", 64, true},
                                 {"u8", "u32", 8, false},  {"u16", "u32", 16, false}, {"u32", "u32", 32, false}, {"u64", "u64", 64, false}};

// $T the type that values travel in, $N the dtype's name, $W its bits, $NARROW(x) x as the dtype holds it.
constexpr const char* kSigned[][2] = {
    {"div", "fn weft_div_$N(a: $T, b: $T) -> $T {\n  if (b == $T(0)) { return $T(0); }\n  if (b == $T(-1)) { return $NARROW(-a); }\n  return a / b;\n}\n"},
    {"fmod", "fn weft_fmod_$N(a: $T, b: $T) -> $T {\n  if (b == $T(0) || b == $T(-1)) { return $T(0); }\n  return a % b;\n}\n"},
    {"floor_div",
     "fn weft_floor_div_$N(a: $T, b: $T) -> $T {\n  let q = weft_div_$N(a, b);\n  let r = weft_fmod_$N(a, b);\n"
     "  return select(q, q - $T(1), r != $T(0) && (r < $T(0)) != (b < $T(0)));\n}\n"},
    {"mod",
     "fn weft_mod_$N(a: $T, b: $T) -> $T {\n  let r = weft_fmod_$N(a, b);\n"
     "  return select(r, r + b, r != $T(0) && (r < $T(0)) != (b < $T(0)));\n}\n"},
    {"shl", "fn weft_shl_$N(a: $T, b: $T) -> $T {\n  if (b < $T(0) || b >= $T($W)) { return $T(0); }\n  return $NARROW(a << u32(b));\n}\n"},
    {"shr", "fn weft_shr_$N(a: $T, b: $T) -> $T {\n  if (b < $T(0) || b >= $T($W)) { return a >> ($Wu - 1u); }\n  return a >> u32(b);\n}\n"},
};
constexpr const char* kUnsigned[][2] = {
    {"div", "fn weft_div_$N(a: $T, b: $T) -> $T {\n  if (b == $T(0)) { return $T(0); }\n  return a / b;\n}\n"},
    {"fmod", "fn weft_fmod_$N(a: $T, b: $T) -> $T {\n  if (b == $T(0)) { return $T(0); }\n  return a % b;\n}\n"},
    {"shl", "fn weft_shl_$N(a: $T, b: $T) -> $T {\n  if (b >= $T($W)) { return $T(0); }\n  return $NARROW(a << u32(b));\n}\n"},
    {"shr", "fn weft_shr_$N(a: $T, b: $T) -> $T {\n  if (b >= $T($W)) { return $T(0); }\n  return a >> u32(b);\n}\n"},
};

std::string of_integer(const Integer& t, std::string text) {
  const std::string call = t.bits >= 32 ? "(" : fmt::format("weft_narrow_{}(", t.name);
  text = replaced(std::move(text), "$NARROW(", call);
  text = replaced(std::move(text), "$N", t.name);
  text = replaced(std::move(text), "$T", t.type);
  return replaced(std::move(text), "$W", std::to_string(t.bits));
}

// The bounds as floats: clamped there, what is left converts exactly.
std::string to_integer(const Integer& t, std::string_view real) {
  const int high = t.is_signed ? t.bits - 1 : t.bits;
  const bool wide = real == "f64";
  const auto power = [&](const char* sign, int n) { return wide ? fmt::format("f64({}0x1p+{}f)", sign, n) : fmt::format("{}0x1p+{}f", sign, n); };
  const std::string top = t.bits == 64 ? (t.is_signed ? "9223372036854775807li" : "18446744073709551615lu")
                          : t.is_signed ? fmt::format("{}i", (std::int64_t{1} << high) - 1)
                                        : fmt::format("{}u", (std::int64_t{1} << high) - 1);
  const std::string bottom = !t.is_signed ? fmt::format("{}(0)", t.type) : fmt::format("(-{} - {}(1))", top, t.type);
  const std::string low = t.is_signed ? power("-", high) : fmt::format("{}(0)", real);
  return fmt::format(
      "fn weft_to_{0}_{1}(x: {1}) -> {2} {{\n  if (!(x == x)) {{ return {2}(0); }}\n  if (x <= {3}) {{ return {4}; }}\n"
      "  if (x >= {5}) {{ return {6}; }}\n  return {2}(x);\n}}\n",
      t.name, real, t.type, low, bottom, power("", high), top);
}

// Nearest f32, or, where x is none, the neighbour with an odd last bit: for a second rounding.
std::string to_odd(std::string_view name, std::string_view type, std::string_view back) {
  return fmt::format(
      "fn weft_odd_{0}(x: {1}) -> f32 {{\n  let r = f32(x);\n  let bits = bitcast<u32>(r);\n"
      "  if ({2} == x || !(r == r) || (bits & 1u) == 1u) {{ return r; }}\n"
      "  return bitcast<f32>(select(bits - 1u, bits + 1u, ({2} < x) == (x > {1}(0))));\n}}\n",
      name, type, back);
}

std::vector<Helper> make_helpers() {
  std::vector<Helper> all = {
      {"weft_f32", "fn weft_f32(bits: u32) -> f32 { return bitcast<f32>(bits); }\n"},
      {"weft_f64", "fn weft_f64(bits: u64) -> f64 { return bitcast<f64>(bits); }\n"},
      // The third word of the parameters is 0, which no compiler knows.
      {"weft_opaque_f32", "fn weft_opaque_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ weft_parameters[0].z); }\n"},
      {"weft_opaque_f64", "fn weft_opaque_f64(x: f64) -> f64 { return bitcast<f64>(bitcast<u64>(x) ^ u64(weft_parameters[0].z)); }\n"},
      {"weft_size", "fn weft_size(low: u32, high: u32) -> i64 { return bitcast<i64>(u64(low) | (u64(high) << 32u)); }\n"},
      // Mesa 22 compares what it sees to be a widened u32 or i32 with the wrong sign: the high word comes from elsewhere.
      {"weft_u64_of_u32", "fn weft_u64_of_u32(x: u32) -> u64 { return u64(x) | (u64(weft_parameters[0].z) << 32u); }\n"},
      {"weft_i64_of_u32", "fn weft_i64_of_u32(x: u32) -> i64 { return bitcast<i64>(weft_u64_of_u32(x)); }\n"},
      {"weft_i64_of_i32", "fn weft_i64_of_i32(x: i32) -> i64 { return bitcast<i64>(u64(bitcast<u32>(x)) | (u64(bitcast<u32>(x >> 31u)) << 32u)); }\n"},
      {"weft_u64_of_i32", "fn weft_u64_of_i32(x: i32) -> u64 { return bitcast<u64>(weft_i64_of_i32(x)); }\n"},
      {"weft_from_bf16", "fn weft_from_bf16(x: u32) -> f32 { return bitcast<f32>(x << 16u); }\n"},
      {"weft_to_bf16", R"(fn weft_to_bf16(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) { return (u >> 16u) | 0x40u; }
  return (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;
}
)"},
      {"weft_from_f16", R"(fn weft_from_f16(x: u32) -> f32 {
  let sign = (x & 0x8000u) << 16u;
  let exponent = (x >> 10u) & 31u;
  let fraction = x & 0x3ffu;
  if (exponent == 31u) { return bitcast<f32>(sign | 0x7f800000u | (fraction << 13u)); }
  if (exponent == 0u) { return bitcast<f32>(sign | bitcast<u32>(f32(fraction) * 0x1p-24f)); }
  return bitcast<f32>(sign | ((exponent + 112u) << 23u) | (fraction << 13u));
}
)"},
      {"weft_to_f16", R"(fn weft_to_f16(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  let sign = (u >> 16u) & 0x8000u;
  let size = u & 0x7fffffffu;
  if (size > 0x7f800000u) { return sign | 0x7e00u; }
  if (size >= 0x477ff000u) { return sign | 0x7c00u; }
  if (size < 0x38800000u) { return sign | u32(round(bitcast<f32>(size) * 0x1p+24f)); }
  return sign | ((size + 0xfffu + ((size >> 13u) & 1u) - 0x38000000u) >> 13u);
}
)"},
      {"weft_round_f32", "fn weft_round_f32(x: f32) -> f32 { return round(x); }\n"},
      {"weft_trunc_f32", "fn weft_trunc_f32(x: f32) -> f32 { return trunc(x); }\n"},
      // Mesa 22 takes every f64 beyond 2^24 to be whole in round() and trunc(), though not in floor() and ceil().
      {"weft_round_f64", R"(fn weft_round_f64(x: f64) -> f64 {
  let low = floor(x);
  let part = x - low;
  let half = f64(0x1p-1f);
  let is_even = floor(low * half) * f64(2) == low;
  return select(low, ceil(x), part > half || (part == half && !is_even));
}
)"},
      {"weft_trunc_f64", "fn weft_trunc_f64(x: f64) -> f64 { return select(ceil(x), floor(x), x > f64(0)); }\n"},
      {"weft_fma_f32", "fn weft_fma_f32(a: f32, b: f32, c: f32) -> f32 { return fma(a, b, c); }\n"},
      // lavapipe's fma of f64 rounds twice, and remainders of divisions are wrong by that. Where the sum almost vanishes, which is
      // what they need, this is exact: the product's error is added at the end (Dekker, "A floating-point technique for extending
      // the available precision", 1971). Large terms are scaled, lest the product overflow.
      {"weft_fma_f64", R"(fn weft_fma_f64(x: f64, b: f64, y: f64) -> f64 {
  let is_large = abs(y) > weft_f64(0x7fd0000000000000lu);
  let scale = select(f64(1), f64(0x1p-2f), is_large);
  let a = weft_opaque_f64(x * scale);
  let product = weft_opaque_f64(a * b);
  let sum = weft_opaque_f64(product + y * scale);
  let a_high = bitcast<f64>((bitcast<u64>(a) + 0x4000000lu) & 0xfffffffff8000000lu);
  let b_high = bitcast<f64>((bitcast<u64>(b) + 0x4000000lu) & 0xfffffffff8000000lu);
  let a_low = weft_opaque_f64(a - a_high);
  let b_low = weft_opaque_f64(b - b_high);
  var error = weft_opaque_f64(a_high * b_high - product);
  error = weft_opaque_f64(error + weft_opaque_f64(a_high * b_low));
  error = weft_opaque_f64(error + weft_opaque_f64(a_low * b_high));
  error = weft_opaque_f64(error + weft_opaque_f64(a_low * b_low));
  return select(sum, sum + error, abs(error) < abs(product)) * select(f64(1), f64(4), is_large);
}
)"},
      {"weft_power_f32", "fn weft_power_f32(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }\n"},
      {"weft_power_f64", "fn weft_power_f64(n: i32) -> f64 { return bitcast<f64>(u64(n + 1023) << 52u); }\n"},
  };
  for (const auto& [real, least, most] : {std::tuple("f32", -126, 127), std::tuple("f64", -1022, 1023)}) {
    all.push_back({fmt::format("weft_ldexp_{}", real),
                   fmt::format("fn weft_ldexp_{0}(x: {0}, n: i32) -> {0} {{\n  let a = clamp(n, {1}, {2});\n  let b = clamp(n - a, {1}, {2});\n"
                               "  let c = clamp(n - a - b, {1}, {2});\n  return x * weft_power_{0}(a) * weft_power_{0}(b) * weft_power_{0}(c);\n}}\n",
                               real, least, most)});
  }
  for (const Integer& t : kIntegers) {
    if (t.bits < 32) {
      all.push_back({fmt::format("weft_narrow_{}", t.name),
                     fmt::format("fn weft_narrow_{}(x: {}) -> {} {{ return extractBits(x, 0u, {}u); }}\n", t.name, t.type, t.type, t.bits)});
    }
    const auto rows = t.is_signed ? std::span<const char* const[2]>(kSigned) : std::span<const char* const[2]>(kUnsigned);
    for (const auto& row : rows) all.push_back({fmt::format("weft_{}_{}", row[0], t.name), of_integer(t, row[1])});
    for (const char* real : {"f32", "f64"}) all.push_back({fmt::format("weft_to_{}_{}", t.name, real), to_integer(t, real)});
    if (t.bits >= 32) all.push_back({fmt::format("weft_odd_{}", t.name), to_odd(t.name, t.type, fmt::format("weft_to_{}_f32(r)", t.name))});
  }
  all.push_back({"weft_odd_f64", to_odd("f64", "f64", "f64(r)")});
  return all;
}

}  // namespace

std::string wgsl_helpers(std::string_view text) {
  static const std::vector<Helper> all = make_helpers();
  std::string before;
  for (auto h = all.rbegin(); h != all.rend(); ++h) {  // a helper calls only what stands before it
    const std::string call = h->name + "(";
    if (text.find(call) != std::string_view::npos || before.find(call) != std::string::npos) before = h->text + before;
  }
  return before;
}

}  // namespace weft::codegen::text
