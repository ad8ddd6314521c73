// WGSL, one module a kernel. Values are scalars: bool is bool, integers of fewer than 32 bits are i32 or u32, narrow
// floats travel as their bits in a u32. i64, u64 and f64 are naga's, which adapters must have (SHADER_INT64, SHADER_F64).
// Memory of narrow elements is words: those of buffers that are written are atomic, as neighbours may be other threads'.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "codegen/text/dialect.h"
#include "codegen/text/text.h"
#include "codegen/text/wgsl_helpers.h"

namespace weft::codegen {
namespace {

using text::Spelling;

constexpr int kWgslOps = static_cast<int>(ScalarOp::Bitcast) + 1;
constexpr std::array<Spelling, kWgslOps> make_wgsl() {
  std::array<Spelling, kWgslOps> table{};
#define SPELL(op, real, signed_int, unsigned_int, logical) \
  table[static_cast<int>(ScalarOp::op)] = {real, signed_int, unsigned_int, logical};
#include "codegen/text/wgsl.def"
#undef SPELL
  return table;
}
constexpr std::array<Spelling, kWgslOps> kWgsl = make_wgsl();

bool is_narrow_float(DType t) { return t == DType::F16 || t == DType::BF16; }
bool is_narrow(DType t) { return is_bool(t) || bits(t) < 32; }
bool is_small_int(DType t) { return is_int(t) && bits(t) < 32; }
int element_bits(DType t) { return is_bool(t) ? 8 : bits(t); }

std::string scalar_type(DType t) {
  if (is_bool(t)) return "bool";
  if (t == DType::F32 || t == DType::F64) return name(t);
  if (is_narrow_float(t)) return "u32";
  return fmt::format("{}{}", is_signed_int(t) ? "i" : "u", bits(t) == 64 ? 64 : 32);
}

// A word of the parameters; codegen/text/text.h says what each is.
std::string word(std::size_t i) { return fmt::format("weft_parameters[{}].{}", i / 4, "xyzw"[i % 4]); }

class Wgsl final : public text::Dialect {
 public:
  explicit Wgsl(const kernel::Function& f) : f_(f), atomic_(f.buffers.size()) {
    find_atomics(f.body);
    for (std::size_t i = 0; i < f.buffers.size(); ++i) numbers_[fmt::format("b{}", i)] = i;
  }

  int max_width() const override { return 1; }
  std::span<const Spelling> spellings() const override { return kWgsl; }
  bool supports(DType t) const override {
    return is_bool(t) || (is_int(t) && bits(t) >= 8) || is_narrow_float(t) || t == DType::F32 || t == DType::F64;
  }

  std::string type(DType t, int) const override { return scalar_type(t); }
  std::string unsigned_type(DType t, int) const override { return !is_bool(t) && bits(t) == 64 ? "u64" : "u32"; }
  std::string literal(DType t, Scalar v) const override {
    if (is_bool(t)) return v.i != 0 ? "true" : "false";
    if (t == DType::F32) return real_literal(v.f);
    if (is_float(t)) {
      const std::uint64_t raw = encode_float(t, v.f);
      return t == DType::F64 ? fmt::format("weft_f64({:#x}lu)", raw) : fmt::format("{:#x}u", raw);
    }
    if (!is_signed_int(t)) {
      const std::uint64_t mask = bits(t) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits(t)) - 1;
      return fmt::format("{}{}", static_cast<std::uint64_t>(v.i) & mask, bits(t) == 64 ? "lu" : "u");
    }
    const char* suffix = bits(t) == 64 ? "li" : "i";
    const std::int64_t least = bits(t) == 64 ? INT64_MIN : INT32_MIN;
    if (v.i == least) return fmt::format("({}{} - 1{})", v.i + 1, suffix, suffix);
    return v.i < 0 ? fmt::format("({}{})", v.i, suffix) : fmt::format("{}{}", v.i, suffix);
  }

  std::string splat(DType, int, const std::string& x) const override { return x; }
  std::string lane(DType, int, const std::string& x, int) const override { return x; }
  std::string set_lane(DType, int, const std::string& x, int, const std::string& v) const override { return x + " = " + v + ";"; }
  std::string build(DType, int, std::span<const std::string> lanes) const override { return lanes[0]; }
  std::string from_comparison(DType, int, const std::string& x) const override { return x; }
  std::string all(int, const std::string& x) const override { return x; }
  std::string select(DType, int, const std::string& c, const std::string& a, const std::string& b) const override {
    return fmt::format("select({}, {}, {})", b, a, c);
  }

  std::string cast(DType from, DType to, int, const std::string& x) const override {
    if (from == to) return x;
    if (is_narrow_float(from)) return cast(DType::F32, to, 1, fmt::format("weft_from_{}({})", name(from), x));
    if (is_narrow_float(to)) {
      const bool inexact = bits(from) >= 32 && from != DType::F32 && !is_bool(from);
      return fmt::format("weft_to_{}({})", name(to), inexact ? fmt::format("weft_odd_{}({})", name(from), x) : cast(from, DType::F32, 1, x));
    }
    const std::string result = type(to, 1);
    if (is_bool(from)) return fmt::format("select({0}(0), {0}(1), {1})", result, x);
    if (is_bool(to)) return fmt::format("!({} == {}(0))", x, type(from, 1));
    if (is_float(from) && is_int(to)) return fmt::format("weft_to_{}_{}({})", name(to), name(from), x);
    if (is_float(to)) return fmt::format("{}({})", result, x);
    return narrow(to, 1, converted(from, to, x));
  }
  std::string bitcast(DType from, DType to, int, const std::string& x) const override {
    if (is_bool(from) || is_bool(to)) return cast(from, to, 1, x);
    if (type(from, 1) == type(to, 1)) return narrow(to, 1, x);
    return narrow(to, 1, fmt::format("bitcast<{}>({})", type(to, 1), x));
  }
  std::string ldexp(DType t, int, const std::string& x, const std::string& n) const override {
    return fmt::format("weft_ldexp_{}({}, {})", name(t), x, n);
  }

  std::string declare(const std::string& type, const std::string& name, const std::string& value, bool changes) const override {
    if (value.empty()) return fmt::format("var {}: {};", name, type);
    return changes ? fmt::format("var {}: {} = {};", name, type, value) : fmt::format("let {} = {};", name, value);
  }
  std::string narrow(DType t, int, const std::string& x) const override {
    return is_small_int(t) ? fmt::format("weft_narrow_{}({})", name(t), x) : x;
  }
  std::string opaque(DType t, int, const std::string& x) const override { return fmt::format("weft_opaque_{}({})", name(t), x); }
  const char* dot4() const override {
    return "$2 + ($0 & 255) * (($1 << 24u) >> 24u) + (($0 >> 8u) & 255) * (($1 << 16u) >> 24u)"
           " + (($0 >> 16u) & 255) * (($1 << 8u) >> 24u) + (($0 >> 24u) & 255) * ($1 >> 24u)";
  }
  const char* dot2() const override {
    return "fma(bitcast<$T>($0 << 16u), bitcast<$T>($1 << 16u), "
           "fma(bitcast<$T>(bitcast<u32>($0) & 0xffff0000u), bitcast<$T>(bitcast<u32>($1) & 0xffff0000u), $2))";
  }

  std::string load(DType, int, const std::string& buffer, const std::string& index) const override {
    const std::size_t i = numbers_.at(buffer);
    const std::string at = place(i, index);
    if (on_chip(i)) return fmt::format("{}[{}]", buffer, at);
    if (is_narrow(f_.buffers[i].dtype)) return fmt::format("{}_load({})", buffer, at);
    if (!atomic_[i]) return fmt::format("{}[{}]", buffer, at);
    const std::string raw = fmt::format("atomicLoad(&{}[{}])", buffer, at);
    return f_.buffers[i].dtype == DType::F32 ? fmt::format("bitcast<f32>({})", raw) : raw;
  }
  std::string store(DType, int, const std::string& buffer, const std::string& index, const std::string& value) const override {
    const std::size_t i = numbers_.at(buffer);
    const std::string at = place(i, index);
    if (on_chip(i)) return fmt::format("{}[{}] = {};", buffer, at, value);
    if (is_narrow(f_.buffers[i].dtype)) return fmt::format("{}_store({}, {});", buffer, at, value);
    if (!atomic_[i]) return fmt::format("{}[{}] = {};", buffer, at, value);
    return fmt::format("atomicStore(&{}[{}], {});", buffer, at, f_.buffers[i].dtype == DType::F32 ? fmt::format("bitcast<u32>({})", value) : value);
  }
  std::string atomic(Combine combine, DType t, const std::string& buffer, const std::string& index, const std::string& value) const override {
    const std::size_t i = numbers_.at(buffer);
    if (on_chip(i) || is_narrow(t) || t == DType::F64) return {};
    if (t == DType::F32) return combine == Combine::Sum ? fmt::format("{}_add({}, {})", buffer, place(i, index), value) : "";
    const char* how = combine == Combine::Max ? "Max" : combine == Combine::Min ? "Min" : "Add";
    return fmt::format("atomic{}(&{}[{}], {})", how, buffer, place(i, index), value);
  }

  std::string prelude() const override { return {}; }
  std::string signature(const kernel::Function& f) const override {
    const std::size_t words = parameter_words(f);
    std::string s = fmt::format("@group(0) @binding(0) var<uniform> weft_parameters: array<vec4<u32>, {}>;\n", (words + 3) / 4);
    s += "@group(0) @binding(1) var<storage, read_write> weft_status: array<i32>;\n";
    for (std::size_t i = 0; i < f.buffers.size(); ++i) {
      if (!on_chip(i)) {
        s += fmt::format("@group(0) @binding({}) var<storage, read_write> b{}: array<{}>;\n", i + 2, i, stored(i)) + accessors(i);
      } else if (f.threads > 1) {
        s += fmt::format("var<workgroup> b{}: {};\n", i, array(f.buffers[i]));
      }
    }
    return s + fmt::format("\n@compute @workgroup_size({})\nfn {}(@builtin(workgroup_id) weft_group: vec3<u32>, "
                           "@builtin(num_workgroups) weft_groups: vec3<u32>, @builtin(local_invocation_index) weft_thread: u32)",
                           wgsl_group(f), wgsl_name(f));
  }
  std::string start(const kernel::Function& f) const override {
    std::string s = "  let weft_number = weft_group.x + weft_group.y * weft_groups.x;\n";
    s += f.threads > 1 ? "  let weft_program = weft_number;\n" : fmt::format("  let weft_program = weft_number * {}u + weft_thread;\n", wgsl_group(f));
    s += fmt::format("  if (weft_program >= {}) {{ return; }}\n", word(0));
    std::size_t next = kHeadWords;
    for (std::size_t i = 0; i < f.buffers.size(); ++i) {
      if (!on_chip(i)) s += fmt::format("  let at{} = {} / {}u;\n", i, word(next++), element_bits(f.buffers[i].dtype) / 8);
    }
    for (int i = 0; i < f.sizes; ++i, next += 2) s += fmt::format("  let n{} = weft_size({}, {});\n", i, word(next), word(next + 1));
    return s;
  }
  std::string on_chip(const ssa::Buffer& b, const std::string& name) const override { return fmt::format("var {}: {};", name, array(b)); }
  std::string program_id() const override { return "weft_i64_of_u32(weft_program)"; }
  bool has_groups() const override { return true; }
  std::string thread_id() const override { return "weft_i64_of_u32(weft_thread)"; }
  std::string barrier() const override { return "storageBarrier(); workgroupBarrier();"; }
  std::string fail(std::int64_t code) const override { return fmt::format("weft_status[{}] = {}i;", word(1), code); }

  static constexpr std::size_t kHeadWords = 4;
  static std::size_t parameter_words(const kernel::Function& f) {
    std::size_t words = kHeadWords + 2 * static_cast<std::size_t>(f.sizes);
    for (const ssa::Buffer& b : f.buffers) words += b.space == ssa::Space::Memory;
    return words;
  }

 private:
  void find_atomics(const ssa::Block& block) {
    for (const ssa::Inst& i : block.insts) {
      if (kernel::as_atomic(static_cast<kernel::Op>(i.op))) atomic_[static_cast<std::size_t>(i.imm)] = true;
      for (const ssa::Block& region : i.regions) find_atomics(region);
    }
  }
  bool on_chip(std::size_t i) const { return f_.buffers[i].space == ssa::Space::OnChip; }
  static std::string array(const ssa::Buffer& b) { return fmt::format("array<{}, {}>", scalar_type(b.dtype), std::max<std::int64_t>(b.elements, 1)); }
  std::string place(std::size_t i, const std::string& index) const {
    return on_chip(i) ? fmt::format("u32({})", index) : fmt::format("at{} + u32({})", i, index);
  }

  // An element of the buffer in memory.
  std::string stored(std::size_t i) const {
    const ssa::Buffer& b = f_.buffers[i];
    if (is_narrow(b.dtype)) return b.written ? "atomic<u32>" : "u32";
    if (!atomic_[i]) return scalar_type(b.dtype);
    return fmt::format("atomic<{}>", b.dtype == DType::F32 ? "u32" : scalar_type(b.dtype));
  }

  // How the elements of a buffer of narrow ones are reached, and sums into one of floats.
  std::string accessors(std::size_t i) const {
    const ssa::Buffer& b = f_.buffers[i];
    if (!is_narrow(b.dtype)) return atomic_[i] && b.dtype == DType::F32 ? float_sum(i) : "";
    const int width = element_bits(b.dtype), per_word = 32 / width;
    const std::string at = fmt::format("b{}[i / {}u]", i, per_word), shift = fmt::format("(i % {}u) * {}u", per_word, width);
    const std::string raw = b.written ? fmt::format("atomicLoad(&{})", at) : at;
    const std::string type = scalar_type(b.dtype);
    std::string value = fmt::format("extractBits({}, {}, {}u)", type == "i32" ? fmt::format("bitcast<i32>({})", raw) : raw, shift, width);
    if (is_bool(b.dtype)) value += " != 0u";
    std::string s = fmt::format("fn b{}_load(i: u32) -> {} {{ return {}; }}\n", i, type, value);
    if (!b.written) return s;
    const std::uint32_t mask = (std::uint32_t{1} << width) - 1;
    return s + fmt::format("fn b{}_store(i: u32, x: {}) {{\n  atomicAnd(&{}, ~({:#x}u << ({})));\n  atomicOr(&{}, ({} & {:#x}u) << ({}));\n}}\n", i,
                           type, at, mask, shift, at, is_bool(b.dtype) ? "u32(x)" : type == "u32" ? "x" : "bitcast<u32>(x)", mask, shift);
  }
  static std::string float_sum(std::size_t i) {
    return fmt::format(
        "fn b{0}_add(i: u32, x: f32) -> f32 {{\n  var old = atomicLoad(&b{0}[i]);\n  loop {{\n"
        "    let found = atomicCompareExchangeWeak(&b{0}[i], old, bitcast<u32>(bitcast<f32>(old) + x));\n"
        "    if (found.exchanged) {{ break; }}\n    old = found.old_value;\n  }}\n  return bitcast<f32>(old);\n}}\n",
        i);
  }

  static std::string real_literal(double v) {
    const auto x = static_cast<float>(v);
    if (std::isnormal(x) || x == 0) return x < 0 || std::signbit(x) ? fmt::format("({}f)", x) : fmt::format("{}f", x);
    return fmt::format("weft_f32({:#x}u)", encode_float(DType::F32, v));
  }

  // Between integers: widened by the sign of what it was.
  static std::string converted(DType from, DType to, const std::string& x) {
    const std::string source = scalar_type(from), result = scalar_type(to);
    if (source == result) return x;
    if (bits(to) == 64 && bits(from) < 64) return fmt::format("weft_{}_of_{}({})", result, source, x);
    return fmt::format("{}({})", result, x);
  }

  const kernel::Function& f_;
  std::vector<bool> atomic_;  // by buffer
  std::map<std::string, std::size_t> numbers_;
};

}  // namespace

std::string wgsl_name(const kernel::Function& function) { return "weft_" + function.name; }

int wgsl_group(const kernel::Function& function) {
  constexpr int kAlone = 64;  // programs of a thread each that start together
  return function.threads > 1 ? function.threads : kAlone;
}

Result<std::string> print_wgsl(const kernel::Function& function) {
  kernel::Function f = function;
  WEFT_TRY(kernel::expand_math(f));
  const std::string body = WEFT_TRY(text::emit(f, Wgsl(f)));
  return text::wgsl_helpers(body) + "\n" + body;
}

}  // namespace weft::codegen
