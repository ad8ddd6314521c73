// OpenCL C 1.2. Bool lanes are int vectors of 0 and -1 (what comparisons of 32-bit lanes give), a
// bool scalar is an int of 0 or 1; in memory a bool is a uchar.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "codegen/text/dialect.h"
#include "codegen/text/text.h"

namespace weft::codegen {
namespace {

using text::Spelling;

constexpr int kOps = static_cast<int>(ScalarOp::Bitcast) + 1;
constexpr std::array<Spelling, kOps> make_table() {
  std::array<Spelling, kOps> table{};
#define SPELL(op, real, signed_int, unsigned_int, logical) \
  table[static_cast<int>(ScalarOp::op)] = {real, signed_int, unsigned_int, logical};
#include "codegen/text/opencl.def"
#undef SPELL
  return table;
}
constexpr std::array<Spelling, kOps> kTable = make_table();

const char* unsigned_base(int bits) {
  return bits == 8 ? "uchar" : bits == 16 ? "ushort" : bits == 32 ? "uint" : "ulong";
}
bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }

std::string base(DType t) {
  if (is_bool(t)) return "int";
  if (t == DType::F32) return "float";
  if (t == DType::F64) return "double";
  if (is_signed_int(t)) return unsigned_base(bits(t)) + 1;  // without its u
  return unsigned_base(bits(t));
}
std::string element(DType t) { return is_bool(t) ? "uchar" : base(t); }  // in memory
// The shortest that reads as the same number.
std::string real_literal(DType t, double v) {
  std::string s = t == DType::F32 ? fmt::format("{}", static_cast<float>(v)) : fmt::format("{}", v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  if (t == DType::F32) s += "f";
  return std::signbit(v) ? "(" + s + ")" : s;
}
std::string wide(std::string scalar, int width) {
  return width == 1 ? scalar : fmt::format("{}{}", scalar, width);
}

constexpr const char* kPrelude = R"(#pragma OPENCL FP_CONTRACT OFF
#define WEFT_DIVISION(T, N, U) \
  T weft_div_##N(T a, T b) { return b == 0 ? (T)0 : b == (T)-1 ? (T)((U)0 - (U)a) : (T)(a / b); } \
  T weft_fmod_##N(T a, T b) { return b == 0 || b == (T)-1 ? (T)0 : (T)(a % b); } \
  T weft_floor_div_##N(T a, T b) { \
    T q = weft_div_##N(a, b), r = weft_fmod_##N(a, b); \
    return r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : q; \
  } \
  T weft_mod_##N(T a, T b) { T r = weft_fmod_##N(a, b); return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r; }
#define WEFT_UNSIGNED_DIVISION(T, N) \
  T weft_div_##N(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); } \
  T weft_fmod_##N(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }
WEFT_DIVISION(char, i8, uchar)
WEFT_DIVISION(short, i16, ushort)
WEFT_DIVISION(int, i32, uint)
WEFT_DIVISION(long, i64, ulong)
WEFT_UNSIGNED_DIVISION(uchar, u8)
WEFT_UNSIGNED_DIVISION(ushort, u16)
WEFT_UNSIGNED_DIVISION(uint, u32)
WEFT_UNSIGNED_DIVISION(ulong, u64)
// To f32 with ties kept apart, for a second rounding: inexact results get an odd last bit.
#define WEFT_ODD(T, N) \
  float weft_odd_##N(T x) { float r = convert_float_rtz(x); return (T)r != x && x == x ? as_float(as_uint(r) | 1u) : r; }
WEFT_ODD(int, i32)
WEFT_ODD(uint, u32)
WEFT_ODD(long, i64)
WEFT_ODD(ulong, u64)
#ifdef cl_khr_fp64
WEFT_ODD(double, f64)
#endif
float weft_from_bf16(ushort x) { return as_float((uint)x << 16); }
ushort weft_to_bf16(float x) {
  uint u = as_uint(x);
  if (x != x) return (ushort)((u >> 16) | 0x40);
  return (ushort)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
float weft_from_f16(ushort x) { return vload_half(0, (const __private half*)&x); }
ushort weft_to_f16(float x) { ushort r; vstore_half_rte(x, 0, (__private half*)&r); return r; }
#define WEFT_ATOMIC(F, HOW, T, N) \
  T weft_atomic_##HOW##_##N(__global T* p, T x) { return F##HOW((volatile __global T*)p, x); }
#define WEFT_ATOMIC_ADD(CAS, T, N, U) \
  T weft_atomic_add_##N(__global T* p, T x) { \
    volatile __global U* bits = (volatile __global U*)p; \
    U expected, found = CAS(bits, 0, 0); /* an atomic read */ \
    do { expected = found; found = CAS(bits, expected, as_##U(as_##T(expected) + x)); } while (found != expected); \
    return as_##T(found); \
  }
WEFT_ATOMIC(atomic_, add, int, i32)
WEFT_ATOMIC(atomic_, max, int, i32)
WEFT_ATOMIC(atomic_, min, int, i32)
WEFT_ATOMIC(atomic_, add, uint, u32)
WEFT_ATOMIC(atomic_, max, uint, u32)
WEFT_ATOMIC(atomic_, min, uint, u32)
WEFT_ATOMIC_ADD(atomic_cmpxchg, float, f32, uint)
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
WEFT_ATOMIC(atom_, add, long, i64)
WEFT_ATOMIC(atom_, add, ulong, u64)
#ifdef cl_khr_fp64
WEFT_ATOMIC_ADD(atom_cmpxchg, double, f64, ulong)
#endif
#endif
#ifdef cl_khr_int64_extended_atomics
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
WEFT_ATOMIC(atom_, max, long, i64)
WEFT_ATOMIC(atom_, min, long, i64)
WEFT_ATOMIC(atom_, max, ulong, u64)
WEFT_ATOMIC(atom_, min, ulong, u64)
#endif
)";

// Lane by lane: the unit's function is of one word.
constexpr const char* kByteDots = R"(#define WEFT_DOT4(T) \
  T __attribute__((overloadable)) weft_dot4(T a, T b, T c) { return (T)(weft_dot4(a.lo, b.lo, c.lo), weft_dot4(a.hi, b.hi, c.hi)); }
int __attribute__((overloadable)) weft_dot4(int a, int b, int c) {
  return as_int(as_uint(c) + as_uint(dot_4x8packed_us_int(as_uint(a), as_uint(b))));
}
WEFT_DOT4(int2)
WEFT_DOT4(int4)
WEFT_DOT4(int8)
WEFT_DOT4(int16)
)";

class OpenCl final : public text::Dialect {
 public:
  explicit OpenCl(const OpenClFeatures& features) : features_(features) {}

  int max_width() const override { return 16; }
  std::span<const Spelling> spellings() const override { return kTable; }
  bool supports(DType t) const override {
    return is_bool(t) || (is_int(t) && bits(t) >= 8) || is_half(t) || t == DType::F32 ||
           t == DType::F64;
  }

  std::string type(DType t, int width) const override { return wide(base(t), width); }
  std::string unsigned_type(DType t, int width) const override {
    return wide(unsigned_base(is_bool(t) ? 32 : bits(t)), width);
  }

  bool has_literals() const override { return true; }
  std::string literal(DType t, Scalar v) const override {
    if (is_bool(t)) return v.i != 0 ? "1" : "0";
    if ((t == DType::F32 || t == DType::F64) && (v.f == 0 || std::isnormal(t == DType::F32 ? static_cast<float>(v.f) : v.f))) return real_literal(t, v.f);
    const std::uint64_t raw = is_float(t) ? encode_float(t, v.f) : static_cast<std::uint64_t>(v.i);
    const std::uint64_t mask =
        bits(t) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits(t)) - 1;
    if (is_signed_int(t) && v.i > INT32_MIN) {
      const std::string number = fmt::format("{}{}", v.i, bits(t) == 64 ? "L" : "");
      if (bits(t) < 32) return fmt::format("(({}){})", base(t), number);
      return v.i < 0 ? "(" + number + ")" : number;
    }
    const std::string number =
        fmt::format("({}){:#x}{}", unsigned_base(bits(t)), raw & mask, bits(t) == 64 ? "ul" : "u");
    return base(t) == unsigned_base(bits(t)) ? number : fmt::format("as_{}({})", base(t), number);
  }

  std::string splat(DType t, int width, const std::string& x) const override {
    return fmt::format("({})({})", type(t, width), is_bool(t) && width > 1 ? "-" + x : x);
  }
  std::string lane(DType t, int width, const std::string& x, int lane) const override {
    if (width == 1) return x;
    return fmt::format("{}{}.s{:x}", is_bool(t) ? "-" : "", x, lane);
  }
  std::string set_lane(DType t, int width, const std::string& x, int lane,
                       const std::string& v) const override {
    if (width == 1) return fmt::format("{} = {};", x, v);
    return fmt::format("{}.s{:x} = {}{};", x, lane, is_bool(t) ? "-" : "", v);
  }
  std::string build(DType t, int width, std::span<const std::string> lanes) const override {
    if (width == 1) return lanes[0];
    std::string s;
    for (const std::string& l : lanes)
      s += (s.empty() ? "" : ", ") + (is_bool(t) ? "-(" + l + ")" : l);
    return fmt::format("({})({})", type(t, width), s);
  }

  std::string from_comparison(DType operands, int width, const std::string& x) const override {
    if (width == 1 || is_bool(operands) || bits(operands) == 32) return x;
    return fmt::format("convert_int{}({})", width, x);
  }
  std::string select(DType t, int width, const std::string& c, const std::string& a,
                     const std::string& b) const override {
    if (width == 1 || is_bool(t) || bits(t) == 32) return fmt::format("{} ? {} : {}", c, a, b);
    return fmt::format("convert_{}{}({}) ? {} : {}", unsigned_base(bits(t)) + 1, width, c, a, b);
  }

  std::string cast(DType from, DType to, int width, const std::string& x) const override {
    if (is_half(from))
      return cast(DType::F32, to, width, halves("weft_from_", from, width, x, DType::F32));
    if (is_half(to)) {
      const bool inexact = bits(from) >= 32 && from != DType::F32;
      const std::string f32 = inexact ? halves("weft_odd_", from, width, x, DType::F32) : cast(from, DType::F32, width, x);
      return halves("weft_to_", to, width, f32, to);
    }
    if (is_bool(from)) return number(to, width, width == 1 ? x : fmt::format("(({}) & 1)", x));
    if (is_bool(to))
      return from_comparison(from, width, fmt::format("(({}) != ({})0)", x, type(from, width)));
    if (is_float(from) && !is_float(to)) {
      // Intel's runtime for CPUs makes the largest u32 of a NaN.
      const std::string positive = is_signed_int(to) ? x : fmt::format("fmax({}, ({})0)", x, type(from, width));
      return fmt::format("convert_{}_sat_rtz({})", type(to, width), positive);
    }
    return number(to, width, x);
  }
  std::string bitcast(DType from, DType to, int width, const std::string& x) const override {
    if (is_bool(from) || is_bool(to)) return from == to ? x : cast(from, to, width, x);
    return fmt::format("as_{}({})", type(to, width), x);
  }
  std::string ldexp(DType, int, const std::string& x, const std::string& n) const override {
    return fmt::format("ldexp({}, {})", x, n);
  }
  std::string all(int width, const std::string& x) const override {
    return width == 1 ? x : fmt::format("all({})", x);
  }

  std::string words(DType t, int width, const std::string& x) const override {
    const int count = width * bits(t) / 32;
    return count > 0 ? fmt::format("as_{}({})", wide("int", count), x) : "";
  }
  const char* dot4() const override {
    if (features_.byte_dots) return "weft_dot4($0, $1, $2)";
    return "as_$T($u2 + as_$U(($0 & 255) * (($1 << 24) >> 24) + (($0 >> 8) & 255) * (($1 << 16) >> 24)"
           " + (($0 >> 16) & 255) * (($1 << 8) >> 24) + (($0 >> 24) & 255) * ($1 >> 24)))";
  }
  const char* dot2() const override {
    return "fma(as_$T($0 << 16), as_$T($1 << 16), fma(as_$T($0 & (int)0xffff0000), as_$T($1 & (int)0xffff0000), $2))";
  }

  std::string load(DType t, int width, const std::string& buffer,
                   const std::string& index) const override {
    const std::string raw = width == 1 ? fmt::format("{}[{}]", buffer, index)
                                       : fmt::format("vload{}(0, {} + ({}))", width, buffer, index);
    if (!is_bool(t)) return raw;
    return width == 1 ? fmt::format("({} != 0)", raw)
                      : fmt::format("convert_int{}({} != (uchar{})0)", width, raw, width);
  }
  std::string store(DType t, int width, const std::string& buffer, const std::string& index,
                    const std::string& value) const override {
    if (width == 1) return fmt::format("{}[{}] = {};", buffer, index, value);
    const std::string raw =
        is_bool(t) ? fmt::format("convert_uchar{}({} & 1)", width, value) : value;
    return fmt::format("vstore{}({}, 0, {} + ({}));", width, raw, buffer, index);
  }

  std::string atomic(Combine combine, DType t, const std::string& buffer, const std::string& index,
                     const std::string& value) const override {
    const char* how = combine == Combine::Max ? "max" : combine == Combine::Min ? "min" : "add";
    return fmt::format("weft_atomic_{}_{}({} + ({}), {})", how, name(t), buffer, index, value);
  }

  std::string prelude() const override { return std::string(kPrelude) + (features_.byte_dots ? kByteDots : ""); }
  std::string signature(const kernel::Function& f) const override {
    const bool has_warps = features_.shuffles && f.threads > 1;
    std::string s = fmt::format("__kernel __attribute__((reqd_work_group_size({}, 1, 1))) {}void {}(", f.threads,
                                has_warps ? fmt::format("__attribute__((intel_reqd_sub_group_size({}))) ", f.warp) : "", opencl_name(f));
    for (std::size_t i = 0; i < f.buffers.size(); ++i) {
      if (f.buffers[i].space == ssa::Space::Memory)
        s += fmt::format("{}* p{}, long at{}, ", pointee(f.buffers[i]), i, i);
    }
    for (int i = 0; i < f.sizes; ++i) s += fmt::format("long n{}, ", i);
    return s + "__global char* p_status, long at_status)";
  }
  std::string start(const kernel::Function& f) const override {
    std::string s;
    for (std::size_t i = 0; i < f.buffers.size(); ++i) {
      const ssa::Buffer& b = f.buffers[i];
      if (b.space == ssa::Space::Memory)
        s += fmt::format("  {0}* b{1} = p{1} + at{1} / {2};\n", pointee(b), i, storage_bytes(b.dtype, 1).value_or(1));
    }
    return s + "  __global int* status = (__global int*)(p_status + at_status);\n";
  }
  std::string on_chip(const ssa::Buffer& b, const std::string& name) const override {
    return fmt::format("{} {}[{}];", element(b.dtype), name, b.elements == 0 ? 1 : b.elements);
  }
  std::string program_id() const override { return "(long)get_group_id(0)"; }
  bool has_groups() const override { return true; }
  std::string shared(const ssa::Buffer& b, const std::string& name) const override { return "__local " + on_chip(b, name); }
  std::string thread_id() const override { return "(long)get_local_id(0)"; }
  std::string barrier() const override { return "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"; }
  std::string shuffle(DType, const std::string& x, const std::string& lane) const override {
    return features_.shuffles ? fmt::format("sub_group_shuffle({}, (uint)({}))", x, lane) : "";
  }
  std::string fail(std::int64_t code) const override { return fmt::format("*status = {};", code); }

 private:
  static std::string pointee(const ssa::Buffer& b) {
    return fmt::format("__global {}{}", b.written ? "" : "const ", element(b.dtype));
  }
  std::string number(DType to, int width, const std::string& x) const {
    return fmt::format("convert_{}({})", type(to, width), x);
  }
  const OpenClFeatures features_;

  // A conversion that exists for scalars only.
  std::string halves(const char* function, DType named, int width, const std::string& x,
                     DType to) const {
    std::vector<std::string> lanes;
    for (int i = 0; i < width; ++i) {
      const std::string lane = width == 1 ? x : fmt::format("({}).s{:x}", x, i);
      lanes.push_back(fmt::format("{}{}({})", function, name(named), lane));
    }
    return build(to, width, lanes);
  }
};

}  // namespace

std::string opencl_name(const kernel::Function& function) { return "weft_" + function.name; }

Result<std::string> print_opencl(std::span<const kernel::Function> functions, const OpenClFeatures& features) {
  const OpenCl dialect(features);
  std::string text = dialect.prelude();
  for (const kernel::Function& function : functions) {
    kernel::Function f = function;
    WEFT_TRY(kernel::expand_math(f));
    text += '\n' + WEFT_TRY(text::emit(f, dialect));
  }
  return text;
}

}  // namespace weft::codegen
