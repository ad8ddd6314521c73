// Every scalar op that has code, on every dtype, as scalars and as vectors, against base/scalar.h's plain evaluation.
#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/llvm/harness.h"

namespace weft::codegen::test {
namespace {

const std::vector<DType> all_dtypes = {DType::Bool, DType::I8,  DType::I16, DType::I32,  DType::I64, DType::U8,
                                   DType::U16,  DType::U32, DType::U64, DType::F16, DType::BF16, DType::F32,
                                   DType::F64};
const std::vector<int> widths = {0, 5, 16};

bool in(ScalarOp op, std::initializer_list<ScalarOp> list) { return std::find(list.begin(), list.end(), op) != list.end(); }

using S = ScalarOp;

// Whether the emitter has code for it; what it lacks kernel::expand_math replaces.
bool has_code(ScalarOp op, DType t) {
  if (in(op, {S::And, S::Or, S::Xor, S::Not})) return !is_float(t);
  if (in(op, {S::Shl, S::Shr})) return is_int(t);
  if (in(op, {S::Max, S::Min, S::Eq, S::Ne, S::Lt, S::Le, S::Gt, S::Ge, S::Select})) return true;
  if (is_bool(t)) return false;
  if (in(op, {S::Neg, S::Abs, S::Sign, S::Add, S::Sub, S::Mul, S::Div, S::FloorDiv, S::Fma})) return true;
  if (in(op, {S::Fmod, S::Mod})) return is_int(t);
  return is_float(t) && in(op, {S::Ceil, S::Floor, S::Round, S::Trunc, S::Sqrt, S::Rsqrt, S::Reciprocal, S::IsNan, S::IsInf});
}

std::vector<Scalar> specials(DType t) {
  std::vector<Scalar> result;
  if (is_float(t)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 100.25, -1e-3, 1e-7, 65504.0, 65520.0, 1e5,
                     -1e30, 3e38, 1e-40, 5e-8, 127.0, 128.0, 255.0, 256.0, -128.5, -129.0, 32767.5, 2147483647.0,
                     2147483648.0, -2147483648.0, 4294967295.0, 4294967296.0, 9223372036854775807.0, 1.8446744073709552e19,
                     -9.3e18, 2e19, inf, -inf, std::nan("")}) {
      result.push_back({v, 0});
    }
    return result;
  }
  for (std::int64_t v : {0LL, 1LL, -1LL, 2LL, -2LL, 3LL, -3LL, 7LL, -7LL, 8LL, 15LL, 16LL, 31LL, 32LL, 33LL, 63LL, 64LL, 127LL,
                         -128LL, 255LL, 32767LL, -32768LL, 65535LL, 2147483647LL, -2147483648LL, 4294967295LL, 16777217LL,
                         -16777219LL, 9007199254740993LL, (1LL << 60) + (1LL << 52) + 1, (1LL << 60) + (1LL << 52),
                         -(1LL << 60) - (1LL << 52) - 1, 9223372036854775807LL, -9223372036854775807LL - 1}) {
    result.push_back({0, v});
  }
  return result;
}

Scalar random_scalar(DType t, std::mt19937_64& rng) {
  const auto all = specials(t);
  if (rng() % 3 == 0) return all[rng() % all.size()];
  if (!is_float(t)) return {0, static_cast<std::int64_t>(rng() >> (rng() % 64))};
  const double u = static_cast<double>(rng() % 2000001) / 1000000 - 1;
  return {std::ldexp(u, static_cast<int>(rng() % 40) - 20), 0};
}

void fill_with_numbers(Guarded& buffer, std::mt19937_64& rng) {
  for (std::int64_t i = 0; i < buffer.elements(); ++i) buffer.set(i, random_scalar(buffer.dtype(), rng));
}

// Distance in units of the last place of the dtype; 0 when both are NaN.
double ulps(DType t, double got, double want) {
  if (std::isnan(got) && std::isnan(want)) return 0;
  if (got == want) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return 1e9;
  int exponent = 0;
  std::frexp(want, &exponent);
  const int digits = t == DType::F16 ? 11 : t == DType::BF16 ? 8 : t == DType::F32 ? 24 : 53;
  const int least = t == DType::F16 ? -24 : t == DType::BF16 ? -133 : t == DType::F32 ? -149 : -1074;
  return std::fabs(got - want) / std::ldexp(1.0, std::max(exponent - digits, least));
}

double allowed(ScalarOp op, DType t) {
  if (op == S::Rsqrt) return 2;
  return op == S::Fma && bits(t) == 16 ? 1 : 0;
}

struct Case {
  ScalarOp op;
  DType from, to;
};

// One kernel per case: loops over groups of lanes of its operand buffers.
ssa::Function make(const Case& c, int lanes, std::int64_t groups) {
  Maker m;
  const int operands = info(c.op).operands;
  std::vector<int> buffers;
  for (int i = 0; i < operands; ++i) buffers.push_back(m.in(c.op == S::Select && i == 0 ? DType::Bool : c.from));
  const int out = m.out(c.to);
  auto loop = m.loop(m.i64(0), m.i64(groups * std::max(lanes, 1)), m.i64(std::max(lanes, 1)), {});
  std::vector<ValueId> x;
  for (int buffer : buffers) x.push_back(m.load(buffer, loop.iv, lanes));
  m.store(out, m.op(c.op, x, c.to), loop.iv);
  m.end_for({});
  return m.finish();
}

void check_case(const Case& c, int lanes, const TargetDesc& target) {
  SCOPED_TRACE(std::string(info(c.op).name) + " " + name(c.from) + " -> " + name(c.to) + " lanes " + std::to_string(lanes));
  constexpr std::int64_t groups = 40;
  const std::int64_t n = groups * std::max(lanes, 1);
  const ssa::Function function = make(c, lanes, groups);
  const Compiled code = build(function, target);
  if (!code.runs) return;
  std::mt19937_64 rng(7);
  std::vector<Guarded> buffers;
  for (const auto& b : function.buffers) fill_with_numbers(buffers.emplace_back(b.dtype, n), rng);
  std::vector<Guarded*> pointers;
  for (auto& b : buffers) pointers.push_back(&b);
  ASSERT_EQ(code.run(pointers), 0);
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<Scalar> x;
    for (int k = 0; k < info(c.op).operands; ++k) x.push_back(buffers[k].at(i));
    const Scalar want = evaluate(c.op, c.from, c.to, x);
    const Scalar got = buffers.back().at(i);
    const std::string where = "at " + std::to_string(i) + " of " + std::to_string(x[0].f) + "/" + std::to_string(x[0].i) +
                              ", " + std::to_string(x.back().f) + "/" + std::to_string(x.back().i);
    if (is_float(c.to)) ASSERT_LE(ulps(c.to, got.f, want.f), allowed(c.op, c.to)) << got.f << " for " << want.f << " " << where;
    else ASSERT_EQ(got.i, want.i) << where;
  }
  for (auto& b : buffers) ASSERT_TRUE(b.intact());
}

void check_all(const TargetDesc& target, const std::vector<int>& lanes_list) {
  for (int o = 0; o < scalar_op_count(); ++o) {
    const auto op = static_cast<ScalarOp>(o);
    for (DType t : all_dtypes) {
      if (!has_code(op, t)) continue;
      const DType to = info(op).result == ScalarResult::Bool ? DType::Bool : t;
      for (int lanes : lanes_list) check_case({op, t, to}, lanes, target);
    }
  }
}

void check_casts(const TargetDesc& target, const std::vector<int>& lanes_list) {
  for (DType from : all_dtypes) {
    for (DType to : all_dtypes) {
      for (int lanes : lanes_list) {
        check_case({S::Cast, from, to}, lanes, target);
        if (bits(from) == bits(to)) check_case({S::Bitcast, from, to}, lanes, target);
      }
    }
  }
}

TargetDesc level(const char* name) {
  TargetDesc target = host_target();
  target.cpu = name;
  target.features = "";
  return target;
}
TargetDesc avx2_target() { return level("x86-64-v3"); }
TargetDesc sse4_target() { return level("x86-64-v2"); }

void check_ldexp(const TargetDesc& target) {
  for (DType t : {DType::F32, DType::F64}) {
    for (int lanes : {0, 8, 16}) {
      Maker m;
      const int x = m.in(t), n = m.in(DType::I32), out = m.out(t);
      auto loop = m.loop(m.i64(0), m.i64(4096), m.i64(std::max(lanes, 1)), {});
      const ValueId a = m.load(x, loop.iv, lanes);
      const ValueId b = m.load(n, loop.iv, lanes);
      m.store(out, m.append1(Maker::id(Op::Ldexp), {a, b}, m.type(a)), loop.iv);
      m.end_for({});
      const ssa::Function function = m.finish();
      const Compiled code = build(function, target);
      std::mt19937_64 rng(3);
      Guarded xs(t, 4096), ns(DType::I32, 4096), ys(t, 4096);
      fill_with_numbers(xs, rng);
      for (int i = 0; i < 4096; ++i) {
        const auto e = static_cast<std::int64_t>(rng() % 4600) - 2300;
        ns.set(i, {0, i % 7 == 0 ? (i % 2 ? INT32_MAX : INT32_MIN) : i % 3 == 0 ? e : e / 20});
      }
      code.run({&xs, &ns, &ys});
      for (int i = 0; i < 4096; ++i) {
        const double v = xs.at(i).f;
        const int e = static_cast<int>(ns.at(i).i);
        const double want = t == DType::F32 ? std::ldexp(static_cast<float>(v), e) : std::ldexp(v, e);
        const bool normal = std::fabs(want) >= (t == DType::F32 ? 0x1p-126 : 0x1p-1022);
        ASSERT_LE(ulps(t, ys.at(i).f, want), normal || want == 0 ? 0 : 1) << v << " " << e;
      }
    }
  }
}

TEST(ScalarOps, MatchEvaluation) { check_all(tested_target(), widths); }
TEST(ScalarOps, CastsMatchEvaluation) { check_casts(tested_target(), widths); }
TEST(ScalarOps, LdexpForAnyExponent) { check_ldexp(tested_target()); }

#if defined(__x86_64__)
TEST(ScalarOps, MatchEvaluationWithoutFma) { check_all(sse4_target(), std::vector<int>{0, 4}); }
TEST(ScalarOps, CastsMatchEvaluationWithoutF16c) { check_casts(sse4_target(), std::vector<int>{0, 4, 8}); }
TEST(ScalarOps, LdexpForAnyExponentWithoutFma) { check_ldexp(sse4_target()); }
TEST(ScalarOps, LdexpForAnyExponentOnAvx2) { check_ldexp(avx2_target()); }
TEST(ScalarOps, MatchEvaluationOnAvx2) { check_all(avx2_target(), {0, 8}); }
TEST(ScalarOps, CastsMatchEvaluationOnAvx2) { check_casts(avx2_target(), {0, 8}); }
#endif

}  // namespace
}  // namespace weft::codegen::test
