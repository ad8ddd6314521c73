// C11 as a dialect of kernel text: the example of docs/adding-a-target.md. Scalars only, one call a program. Bool is an
// int of 0 or 1, and a byte in memory. Compile with -fwrapv -ffp-contract=off.
#pragma once

#include <array>
#include <string>

#include "codegen/text/dialect.h"

namespace weft::docs {

using codegen::text::Spelling;

inline const std::array<Spelling, static_cast<int>(ScalarOp::Bitcast) + 1>& c_spellings() {
  static const auto table = [] {
    std::array<Spelling, static_cast<int>(ScalarOp::Bitcast) + 1> t{};
#define SPELL(op, real, signed_int, unsigned_int, logical) \
  t[static_cast<int>(ScalarOp::op)] = {real, signed_int, unsigned_int, logical};
#include "docs/c_dialect.def"
#undef SPELL
    return t;
  }();
  return table;
}

inline constexpr const char* kCPrelude = R"(#include <stdint.h>
#include <tgmath.h>
#define WEFT_TO(T, N, LO, HI) \
  static T weft_to_##N(double x) { return x != x ? 0 : x <= (double)LO ? LO : x >= (double)HI ? HI : (T)x; }
#define WEFT_DIVISION(T, N) \
  static T weft_div_##N(T a, T b) { return b == 0 ? 0 : b == (T)-1 ? (T)(0 - a) : (T)(a / b); } \
  static T weft_fmod_##N(T a, T b) { return b == 0 || b == (T)-1 ? 0 : (T)(a % b); } \
  static T weft_mod_##N(T a, T b) { T r = weft_fmod_##N(a, b); return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r; } \
  static T weft_floor_div_##N(T a, T b) { T r = weft_fmod_##N(a, b); return weft_div_##N(a, b) - (r != 0 && (r < 0) != (b < 0)); }
#define WEFT_UNSIGNED_DIVISION(T, N) \
  static T weft_div_##N(T a, T b) { return b == 0 ? 0 : a / b; } \
  static T weft_fmod_##N(T a, T b) { return b == 0 ? 0 : a % b; }
#define WEFT_INTEGER(B) \
  WEFT_TO(int##B##_t, i##B, INT##B##_MIN, INT##B##_MAX) WEFT_TO(uint##B##_t, u##B, 0, UINT##B##_MAX) \
  WEFT_DIVISION(int##B##_t, i##B) WEFT_UNSIGNED_DIVISION(uint##B##_t, u##B)
WEFT_INTEGER(8) WEFT_INTEGER(16) WEFT_INTEGER(32) WEFT_INTEGER(64)
)";

class C11 final : public codegen::text::Dialect {
 public:
  int max_width() const override { return 1; }
  std::span<const Spelling> spellings() const override { return c_spellings(); }
  bool supports(DType t) const override {
    return is_bool(t) || (is_int(t) && bits(t) >= 8) || t == DType::F32 || t == DType::F64;
  }

  std::string type(DType t, int) const override {
    if (is_bool(t)) return "int";
    if (is_float(t)) return t == DType::F32 ? "float" : "double";
    return is_signed_int(t) ? signed_of(bits(t)) : "u" + signed_of(bits(t));
  }
  std::string unsigned_type(DType t, int) const override { return "u" + signed_of(is_bool(t) ? 32 : bits(t)); }
  std::string literal(DType t, Scalar v) const override {
    if (is_bool(t)) return v.i != 0 ? "1" : "0";
    if (!is_float(t)) return "((" + type(t, 1) + ")" + std::to_string(static_cast<std::uint64_t>(v.i)) + "ull)";
    const DType raw = t == DType::F32 ? DType::U32 : DType::U64;
    return bitcast(raw, t, 1, std::to_string(encode_float(t, v.f)) + "ull");
  }

  // Of one lane.
  std::string splat(DType, int, const std::string& x) const override { return x; }
  std::string lane(DType, int, const std::string& x, int) const override { return x; }
  std::string set_lane(DType, int, const std::string& x, int, const std::string& v) const override { return x + " = " + v + ";"; }
  std::string build(DType, int, std::span<const std::string> lanes) const override { return lanes[0]; }
  std::string from_comparison(DType, int, const std::string& x) const override { return x; }
  std::string all(int, const std::string& x) const override { return x; }

  std::string select(DType, int, const std::string& c, const std::string& a, const std::string& b) const override {
    return c + " ? " + a + " : " + b;
  }
  std::string cast(DType from, DType to, int, const std::string& x) const override {
    if (is_bool(to)) return "(" + x + " != 0)";
    if (is_float(from) && is_int(to)) return "weft_to_" + std::string(name(to)) + "(" + x + ")";
    return "(" + type(to, 1) + ")" + x;
  }
  std::string bitcast(DType from, DType to, int, const std::string& x) const override {
    return "((union { " + type(from, 1) + " from; " + type(to, 1) + " to; }){" + x + "}).to";
  }
  std::string ldexp(DType, int, const std::string& x, const std::string& n) const override { return "ldexp(" + x + ", " + n + ")"; }

  std::string load(DType t, int, const std::string& b, const std::string& i) const override {
    return is_bool(t) ? "(" + b + "[" + i + "] != 0)" : b + "[" + i + "]";
  }
  std::string store(DType, int, const std::string& b, const std::string& i, const std::string& v) const override {
    return b + "[" + i + "] = " + v + ";";
  }

  std::string prelude() const override { return kCPrelude; }
  std::string signature(const kernel::Function& f) const override {
    std::string s = "void weft_" + f.name + "(int64_t pid";
    for (std::size_t i = 0; i < f.buffers.size(); ++i) {
      const ssa::Buffer& b = f.buffers[i];
      if (b.space == ssa::Space::Memory) s += std::string(", ") + (b.written ? "" : "const ") + element(b.dtype) + "* b" + std::to_string(i);
    }
    for (int i = 0; i < f.sizes; ++i) s += ", int64_t n" + std::to_string(i);
    return s + ", int32_t* status)";
  }
  std::string on_chip(const ssa::Buffer& b, const std::string& buffer) const override {
    return element(b.dtype) + " " + buffer + "[" + std::to_string(b.elements) + "];";
  }
  std::string program_id() const override { return "pid"; }
  std::string fail(std::int64_t code) const override { return "*status = " + std::to_string(code) + ";"; }

 private:
  static std::string signed_of(int width) { return "int" + std::to_string(width) + "_t"; }
  std::string element(DType t) const { return is_bool(t) ? "uint8_t" : type(t, 1); }
};

}  // namespace weft::docs
