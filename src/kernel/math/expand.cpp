// Rebuilds the function, with each transcendental instruction replaced by its family's expression.
// Going through the builder shares constants and common parts (sin and cos of one argument reduce
// it once), hoists and folds. Floats of 8 bits become codes in u8, except where units multiply them.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "kernel/math/math.h"

namespace weft::kernel {
namespace {

using math::Val;
using Unary = Val (*)(Val);
using Binary = Val (*)(Val, Val);

const std::map<Op, Unary>& unary() {
  static const std::map<Op, Unary> table = {
      {Op::Exp, math::exp},      {Op::Expm1, math::expm1},  {Op::Log, math::log},
      {Op::Log1p, math::log1p},  {Op::Sin, math::sin},      {Op::Cos, math::cos},
      {Op::Tan, math::tan},      {Op::Asin, math::asin},    {Op::Acos, math::acos},
      {Op::Atan, math::atan},    {Op::Sinh, math::sinh},    {Op::Cosh, math::cosh},
      {Op::Tanh, math::tanh},    {Op::Asinh, math::asinh},  {Op::Acosh, math::acosh},
      {Op::Atanh, math::atanh},  {Op::Erf, math::erf},      {Op::Sigmoid, math::sigmoid},
      {Op::Sign, math::sign},    {Op::Rsqrt, math::rsqrt},  {Op::Reciprocal, math::reciprocal},
      {Op::IsNan, math::is_nan}, {Op::IsInf, math::is_inf},
  };
  return table;
}

const std::map<Op, Binary>& binary() {
  static const std::map<Op, Binary> table = {
      {Op::Pow, math::pow}, {Op::Atan2, math::atan2},        {Op::Fmod, math::fmod},
      {Op::Mod, math::mod}, {Op::FloorDiv, math::floor_div},
  };
  return table;
}

class Expander {
 public:
  Expander(const Function& f, MathUnits units)
      : f_(f), units_(units), keeps_f8_(multiplies_f8(f.body)), b_(f.name), map_(f.types.size(), -1), defs_(f.types.size()), homes_(f.types.size()), uses_(f.types.size()), in_sums_(f.types.size()) {
    for (ssa::Buffer buffer : f.buffers) {
      buffer.dtype = stored(buffer.dtype);
      b_.add_buffer(buffer);
    }
    for (int i = 0; i < f.sizes; ++i) b_.add_size();
    b_.function().threads = f.threads, b_.function().warp = f.warp;
  }

  Result<Function> run() {
    find_sums(f_.body);
    WEFT_TRY(block(f_.body));
    return b_.finish();
  }

 private:
  // ---- floats of 8 bits ----

  bool multiplies_f8(const ssa::Block& b) const {
    return std::any_of(b.insts.begin(), b.insts.end(), [&](const ssa::Inst& i) {
      const Op op = static_cast<Op>(i.op);
      if (op == Op::MultiplyMatrix && math::is_f8(f_.type(i.operands[0]).dtype)) return true;
      if (op == Op::MultiplyGroup && math::is_f8(f_.buffers[ssa::BlocksImm::of(i.imm).right.buffer].dtype)) return true;
      return std::any_of(i.regions.begin(), i.regions.end(), [&](const ssa::Block& region) { return multiplies_f8(region); });
    });
  }
  DType stored(DType t) const { return math::is_f8(t) && !keeps_f8_ ? DType::U8 : t; }
  Type stored(const Type& t) const { return t.with(stored(t.dtype)); }
  Val code(ValueId x) { return {&b_, b_.bitcast(x, DType::U8)}; }
  ValueId to_f8(ValueId x, DType to) {
    const DType from = b_.type(x).dtype;
    const Val real{&b_, from == DType::F64 ? x : b_.cast(x, DType::F32)};
    const Val code = math::encode_f8(real, to);
    return keeps_f8_ ? code.bitcast(to).id : code.id;
  }
  // `from`: what is cast, which may be codes here.
  ValueId cast(ValueId x, DType from, DType to) {
    if (from == to) return x;
    if (math::is_f8(from)) x = math::decode_f8(code(x), from).id;
    return math::is_f8(to) ? to_f8(x, to) : b_.cast(x, to);
  }

  std::vector<ValueId> mapped(const std::vector<ValueId>& values) const {
    std::vector<ValueId> out;
    for (ValueId v : values) out.push_back(map_[v]);
    return out;
  }
  void define(const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
    for (std::size_t i = 0; i < from.size(); ++i) map_[from[i]] = to[i];
  }

  // ---- 1 + erf(x), which GELU is made of ----

  // Notes what defines each value and where, and counts uses: all of them, and those in the same block that add one.
  void find_sums(const ssa::Block& b) {
    for (const ssa::Inst& i : b.insts) {
      for (ValueId v : i.results) defs_[v] = &i, homes_[v] = &b;
      for (ValueId v : i.operands) ++uses_[v];
      if (const ValueId v = erf_plus_one(i); v >= 0 && homes_[v] == &b) ++in_sums_[v];
      for (const ssa::Block& region : i.regions) find_sums(region);
    }
    for (ValueId v : b.yields) ++uses_[v];
  }

  std::optional<double> constant(ValueId v) const {
    const ssa::Inst* i = defs_[v];
    if (i && static_cast<Op>(i->op) == Op::Splat) i = defs_[i->operands[0]];
    return i && static_cast<Op>(i->op) == Op::Const ? std::optional(i->fimm) : std::nullopt;
  }

  // v, where it is a quotient by a number the product with the reciprocal instead, which moves it by less than the sum's error.
  Val product(ValueId v) {
    const ssa::Inst* i = defs_[v];
    const bool quotient = i && static_cast<Op>(i->op) == Op::Div;
    const double by = quotient ? constant(i->operands[1]).value_or(0) : 0;
    if (std::fabs(by) < 1e-9 || !(std::fabs(by) < 1e9)) return {&b_, map_[v]};
    return Val{&b_, map_[i->operands[0]]} * (1 / by);
  }

  // The result of erf that the instruction adds one to, or -1.
  ValueId erf_plus_one(const ssa::Inst& i) const {
    if (static_cast<Op>(i.op) != Op::Add || f_.type(i.results[0]).dtype != DType::F32) return -1;
    for (int k = 0; k < 2; ++k) {
      const ssa::Inst* erf = defs_[i.operands[k]];
      if (erf && static_cast<Op>(erf->op) == Op::Erf && constant(i.operands[1 - k]) == 1.0) return i.operands[k];
    }
    return -1;
  }

  // x, where the instruction is exp(x ln 2), which is how 2^x is written; else -1.
  ValueId power_of_two(const ssa::Inst& i) const {
    constexpr double kLn2 = 0.6931471805599453, kRounded = 5e-8;
    if (static_cast<Op>(i.op) != Op::Exp || f_.type(i.results[0]).dtype != DType::F32) return -1;
    const ssa::Inst* product = defs_[i.operands[0]];
    if (!product || static_cast<Op>(product->op) != Op::Mul) return -1;
    for (int k = 0; k < 2; ++k) {
      if (std::fabs(constant(product->operands[k]).value_or(0) - kLn2) < kRounded) return product->operands[1 - k];
    }
    return -1;
  }

  // Whether nothing else needs the result.
  bool only_in_sums(ValueId erf) const { return erf >= 0 && in_sums_[erf] > 0 && in_sums_[erf] == uses_[erf]; }

  Result<void> block(const ssa::Block& b) {
    for (const ssa::Inst& i : b.insts) WEFT_TRY(inst(i));
    return {};
  }

  Result<void> inst(const ssa::Inst& i) {
    const Op op = static_cast<Op>(i.op);
    if (op == Op::For) return loop(i);
    if (op == Op::If) return branch(i);
    if (op == Op::Erf && only_in_sums(i.results[0])) return {};
    if (const ValueId erf = erf_plus_one(i); only_in_sums(erf)) {
      map_[i.results[0]] = math::one_plus_erf(product(defs_[erf]->operands[0])).id;
      return {};
    }
    if (const ValueId power = units_.exp2 ? -1 : power_of_two(i); power >= 0) {
      map_[i.results[0]] = math::exp2({&b_, map_[power]}).id;
      return {};
    }
    const std::vector<ValueId> x = mapped(i.operands);
    if (const auto s = as_scalar(op)) {
      const DType to = f_.type(i.results[0]).dtype;
      map_[i.results[0]] = *s == ScalarOp::Cast ? cast(x[0], f_.type(i.operands[0]).dtype, to) : WEFT_TRY(scalar(*s, x, to));
      return {};
    }
    std::vector<Type> types;
    for (ValueId v : i.results) types.push_back(stored(f_.type(v)));
    if (op == Op::Const && !is_float(types[0].dtype) && is_float(f_.type(i.results[0]).dtype)) {
      map_[i.results[0]] = b_.constant_i64(static_cast<std::int64_t>(encode_float(f_.type(i.results[0]).dtype, i.fimm)), types[0].dtype);
      return {};
    }
    define(i.results, b_.append(op, x, types, i.imm, i.fimm));
    return {};
  }

  Result<ValueId> scalar(ScalarOp op, const std::vector<ValueId>& x, DType result) {
    if (op == ScalarOp::Bitcast) return b_.bitcast(x[0], stored(result));
    const Op own = from_scalar(op);
    const DType t = b_.type(x.back()).dtype;
    if (op == ScalarOp::Pow && is_int(t)) return math::integer_pow({&b_, x[0]}, {&b_, x[1]}).id;
    const auto one = is_float(t) ? unary().find(own) : unary().end();
    const auto two = is_float(t) ? binary().find(own) : binary().end();
    if (one == unary().end() && two == binary().end()) return b_.scalar(op, x);
    if (t != DType::F32 && t != DType::F64) {
      return unsupported("dtype", std::string(info(op).name) + " of " + name(t) + " in a kernel");
    }
    if (units_.exp2 && own == Op::Exp && t == DType::F32) return math::exp_by_unit({&b_, x[0]}).id;
    if (one != unary().end()) return one->second({&b_, x[0]}).id;
    return two->second({&b_, x[0]}, {&b_, x[1]}).id;
  }

  Result<void> loop(const ssa::Inst& i) {
    const std::vector<ValueId> x = mapped(i.operands);
    const auto loop = b_.begin_for(x[0], x[1], x[2], {x.begin() + 3, x.end()});
    map_[i.regions[0].args[0]] = loop.iv;
    define({i.regions[0].args.begin() + 1, i.regions[0].args.end()}, loop.carried);
    WEFT_TRY(block(i.regions[0]));
    define(i.results, b_.end_for(mapped(i.regions[0].yields)));
    return {};
  }

  Result<void> branch(const ssa::Inst& i) {
    std::vector<Type> types;
    for (ValueId v : i.results) types.push_back(stored(f_.type(v)));
    b_.begin_if(map_[i.operands[0]], types);
    WEFT_TRY(block(i.regions[0]));
    b_.begin_else(mapped(i.regions[0].yields));
    WEFT_TRY(block(i.regions[1]));
    define(i.results, b_.end_if(mapped(i.regions[1].yields)));
    return {};
  }

  const Function& f_;
  const MathUnits units_;
  const bool keeps_f8_;
  Builder b_;
  std::vector<ValueId> map_;
  std::vector<const ssa::Inst*> defs_;   // by value; of arguments of regions: null
  std::vector<const ssa::Block*> homes_;
  std::vector<int> uses_, in_sums_;
};

}  // namespace

MathUnits math_units(const Machine& machine) { return {.exp2 = machine.arch == "nvptx64"}; }

Result<void> expand_math(Function& function, MathUnits units) {
  Function expanded = WEFT_TRY(Expander(function, units).run());
  ssa::eliminate_dead(expanded);
  function = std::move(expanded);
  return {};
}

}  // namespace weft::kernel
