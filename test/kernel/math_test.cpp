#include <gmock/gmock.h>

#include <bit>
#include <limits>
#include <random>

#include "kernel/kernel.h"
#include "kernel/math_cases.h"

namespace weft::kernel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One op over whole arrays, expanded, through the interpreter. Returns the result as doubles.
std::vector<double> run(ScalarOp op, DType t, const std::vector<std::vector<double>>& args, int threads = 1,
                        MathUnits units = {}, double factor = 1) {
  constexpr int lanes = 16;
  Builder b("math");
  std::vector<int> in;
  for (std::size_t i = 0; i < args.size(); ++i)
    in.push_back(b.add_buffer({t, ssa::Space::Memory, true, false, 0}));
  const int out = b.add_buffer({t, ssa::Space::Memory, false, true, 0});
  const ValueId run = b.add(b.mul(b.program_id(), b.constant_i64(threads)), b.thread_id());
  const ValueId at = b.mul(run, b.constant_i64(lanes));
  std::vector<ValueId> x;
  for (int i : in) x.push_back(b.load(i, at, lanes));
  if (factor != 1) x[0] = b.mul(x[0], b.constant_like(x[0], factor));
  b.store(out, b.scalar(op, x), at);
  Function f = b.finish();
  f.threads = f.warp = threads;
  const auto expanded = expand_math(f, units);
  EXPECT_TRUE(expanded.ok());
  const std::int64_t n = (static_cast<std::int64_t>(args[0].size()) + lanes * threads - 1) / (lanes * threads) * lanes * threads;
  std::vector<std::vector<std::uint64_t>> storage(args.size() + 1, std::vector<std::uint64_t>(n));
  std::vector<BufferView> views;
  for (std::size_t i = 0; i < storage.size(); ++i) {
    for (std::int64_t e = 0; i < args.size() && e < static_cast<std::int64_t>(args[i].size());
         ++e) {
      store_scalar(t, storage[i].data(), e,
                   {args[i][e], static_cast<std::int64_t>(is_float(t) ? 0 : args[i][e])});
    }
    views.push_back({storage[i].data(), n});
  }
  const auto r = interpret(f, views, {}, n / lanes / threads);
  EXPECT_TRUE(r.ok()) << r.error().what();
  std::vector<double> result;
  for (std::size_t e = 0; e < args[0].size(); ++e)
    result.push_back(load_f64(t, storage.back().data(), e));
  return result;
}

// Threads of a group scale by two factors, which gives the same bits as ldexp.
TEST(Math, ExponentialsOfGroupsAreThoseOfOneThread) {
  const std::vector<float> sweep = sweep_f32(4000);
  std::vector<double> x(sweep.begin(), sweep.end());
  for (int i = 0; i < 2000; ++i) x.push_back(static_cast<float>(-104.5 + i * 0.0975));  // subnormal results to infinity
  for (const ScalarOp op : {ScalarOp::Exp, ScalarOp::Sinh, ScalarOp::Cosh}) {
    const std::vector<double> alone = run(op, DType::F32, {x}), together = run(op, DType::F32, {x}, 32);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(alone[i] == together[i] || (std::isnan(alone[i]) && std::isnan(together[i]))) << info(op).name << " at " << x[i];
    }
  }
}

TEST(Math, F32IsAccurateOverTheWholeRange) {
  const std::vector<float> sweep = sweep_f32(4000);
  const std::vector<double> x(sweep.begin(), sweep.end());
  for (const MathCase& c : math_cases()) {
    const std::vector<double> y = run(c.op, DType::F32, {x});
    double worst = 0, at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps_f32(static_cast<float>(y[i]), c.reference(x[i]));
      if (error > worst) worst = error, at = x[i];
    }
    EXPECT_LE(worst, c.ulp_f32) << info(c.op).name << " at " << at;
    if (std::isnan(c.reference(-0.0))) continue;
    EXPECT_EQ(std::signbit(y[1]), std::signbit(c.reference(-0.0))) << info(c.op).name << " of -0";
  }
}

// erf(x / divisor) + 1, 1 on either side; divisor 0: erf(x) + 1.
std::vector<float> one_plus_erf(const std::vector<float>& x, double divisor, bool left, int lanes, std::string* text = nullptr) {
  Builder b("gelu");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int out = b.add_buffer({DType::F32, ssa::Space::Memory, false, true, 0});
  const ValueId at = b.mul(b.program_id(), b.constant_i64(std::max(lanes, 1)));
  ValueId v = b.load(in, at, lanes);
  if (divisor != 0) v = b.scalar(ScalarOp::Div, {v, b.constant_like(v, divisor)});
  const ValueId erf = b.scalar(ScalarOp::Erf, {v}), one = b.constant_like(v, 1);
  b.store(out, left ? b.add(one, erf) : b.add(erf, one), at);
  Function f = b.finish();
  EXPECT_TRUE(expand_math(f).ok());
  EXPECT_TRUE(verify(f).ok());
  if (text != nullptr) *text = ssa::print(f);
  std::vector<float> from = x, to(x.size());
  from.resize((x.size() + 15) / 16 * 16), to.resize(from.size());
  const auto n = static_cast<std::int64_t>(from.size());
  const auto r = interpret(f, std::vector<BufferView>{{from.data(), n}, {to.data(), n}}, {}, n / std::max(lanes, 1));
  EXPECT_TRUE(r.ok()) << r.error().what();
  to.resize(x.size());
  return to;
}

TEST(Math, ErfAndOneIsOneBranch) {
  std::vector<float> x = sweep_f32(4000);
  for (int i = -30000; i <= 30000; ++i) x.push_back(static_cast<float>(i) / 4096);
  for (const std::uint32_t bits : {0x7f800001u, 0xffffffffu, 0x7fc00001u, 0x7fffffffu}) x.push_back(std::bit_cast<float>(bits));
  for (const double divisor : {0.0, std::sqrt(2.0)}) {
    for (const bool left : {false, true}) {
      for (const int lanes : {0, 16}) {
        std::string text;
        const std::vector<float> y = one_plus_erf(x, divisor, left, lanes, &text);
        EXPECT_THAT(text, testing::Not(testing::HasSubstr(" div ")));
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double at = divisor != 0 ? x[i] / static_cast<float>(divisor) : x[i];
          if (std::isnan(x[i])) {
            EXPECT_TRUE(std::isnan(y[i]));
            continue;
          }
          EXPECT_LE(std::fabs(y[i] - std::erfc(-at)), 2.4e-7) << x[i];
          EXPECT_TRUE(y[i] >= 0 && y[i] <= 2) << x[i];
          if (at < -12) { EXPECT_EQ(y[i], 0) << x[i]; }
          if (at > 6) { EXPECT_EQ(y[i], 2) << x[i]; }
        }
      }
    }
  }
}

TEST(Math, ErfUsedElsewhereStaysItself) {
  Builder b("both");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int out = b.add_buffer({DType::F32, ssa::Space::Memory, false, true, 0});
  const ValueId at = b.program_id();
  const ValueId erf = b.scalar(ScalarOp::Erf, {b.load(in, at, 0)});
  b.store(out, b.mul(erf, b.add(erf, b.constant_like(erf, 1))), at);
  Function f = b.finish();
  ASSERT_TRUE(expand_math(f).ok());
  float x = 0.75F, y = 0;
  ASSERT_TRUE(interpret(f, std::vector<BufferView>{{&x, 1}, {&y, 1}}, {}, 1).ok());
  EXPECT_NEAR(y, std::erf(0.75) * (1 + std::erf(0.75)), 3e-7);
}

TEST(Math, F64IsAccurate) {
  std::mt19937_64 random(1);
  std::vector<double> x = {0, -0.0, 1, -1, kInf, -kInf, kNan, 5e-324, 709.5, -745, 1e300, 0.5};
  std::uniform_real_distribution<double> spread(-30, 30), exponent(-300, 308);
  for (int i = 0; i < 1500; ++i) {
    x.push_back(spread(random));
    x.push_back(std::copysign(std::pow(10, exponent(random)), spread(random)));
    x.push_back(spread(random) / 30);
  }
  for (const MathCase& c : math_cases()) {
    const std::vector<double> y = run(c.op, DType::F64, {x});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = c.reference(x[i]);
      if (std::isnan(exact) ? std::isnan(y[i]) : y[i] == exact) continue;
      const double error = std::fabs(y[i] - exact) / std::max(std::fabs(exact), 1e-307);
      EXPECT_LT(error, 2e-15) << info(c.op).name << " of " << x[i] << " is " << y[i] << ", not "
                              << exact;
    }
  }
}

const std::vector<double> kSpecial = {0,    -0.0,  1,    -1,    0.5,  -0.5, 2, -2,    3,   -3,
                                      1e30, -1e30, kInf, -kInf, kNan, 1.5,  7, 1e-40, 2.5, -7};

void every_pair(ScalarOp op, DType t, double (*reference)(double, double), double tolerance) {
  std::vector<double> a, b;
  for (double x : kSpecial) {
    for (double y : kSpecial) a.push_back(x), b.push_back(y);
  }
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-12, 12);
  for (int i = 0; i < 2000; ++i) {
    a.push_back(std::copysign(std::pow(10, exponent(random)), exponent(random)));
    b.push_back(std::copysign(std::pow(10, exponent(random) / 8), exponent(random)));
  }
  if (t == DType::F32) {
    for (double& v : a) v = static_cast<float>(v);
    for (double& v : b) v = static_cast<float>(v);
  }
  const std::vector<double> r = run(op, t, {a, b});
  for (std::size_t i = 0; i < a.size(); ++i) {
    double exact = reference(a[i], b[i]);
    if (t == DType::F32) exact = static_cast<float>(exact);
    const bool same = std::isnan(exact)
                          ? std::isnan(r[i])
                          : r[i] == exact && std::signbit(r[i]) == std::signbit(exact);
    if (same) continue;
    EXPECT_LE(std::fabs(r[i] - exact), tolerance * std::fabs(exact))
        << info(op).name << " of " << a[i] << ", " << b[i] << " is " << r[i] << ", not " << exact;
  }
}

TEST(Math, RemaindersOfTheLargestByTheLeast) {
  const std::vector<double> x = {1.7976931348623157e308, -1.1e308, 1e300, 3.7e-310}, y = {5e-324, 3e-320, 7e-300, 5e-324};
  const std::vector<double> r = run(ScalarOp::Fmod, DType::F64, {x, y});
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(r[i], std::fmod(x[i], y[i])) << x[i] << " by " << y[i];
}

double mod_reference(double x, double y) {
  const double r = std::fmod(x, y);
  if (r == 0) return std::copysign(0.0, y);
  return (r < 0) != (y < 0) ? r + y : r;
}

TEST(Math, BinaryF32) {
  every_pair(ScalarOp::Pow, DType::F32, std::pow, 1.2e-7);
  every_pair(ScalarOp::Atan2, DType::F32, std::atan2, 4e-7);
  every_pair(ScalarOp::Fmod, DType::F32, std::fmod, 0);
  every_pair(ScalarOp::Mod, DType::F32, mod_reference, 0);
}

TEST(Math, BinaryF64) {
  every_pair(ScalarOp::Pow, DType::F64, std::pow, 3e-14);
  every_pair(ScalarOp::Atan2, DType::F64, std::atan2, 1e-15);
  every_pair(ScalarOp::Fmod, DType::F64, std::fmod, 0);
  every_pair(ScalarOp::Mod, DType::F64, mod_reference, 0);
}

// With a unit that is exact. Below the least normal number, a step is what may be lost.
TEST(Math, ExponentialsByAUnit) {
  const std::vector<float> sweep = sweep_f32(4000);
  std::vector<double> x(sweep.begin(), sweep.end());
  for (int i = 0; i < 2000; ++i) x.push_back(static_cast<float>(-104.5 + i * 0.0975));
  const std::vector<double> y = run(ScalarOp::Exp, DType::F32, {x}, 32, {.exp2 = true});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = static_cast<float>(std::exp(x[i]));
    if (std::isfinite(exact)) EXPECT_NEAR(y[i], exact, 1.6e-7 * exact + 1.5e-45) << x[i];
    else EXPECT_TRUE(std::isnan(exact) ? std::isnan(y[i]) : y[i] == exact) << x[i] << ": " << y[i];
  }
}

// exp(x ln 2) is 2^x.
TEST(Math, PowersOfTwo) {
  const std::vector<float> sweep = sweep_f32(4000);
  std::vector<double> x(sweep.begin(), sweep.end());
  for (int i = 0; i < 3000; ++i) x.push_back(static_cast<float>(-151 + i * 0.0931));
  for (int i = -155; i < 132; ++i) x.push_back(i);
  for (const int threads : {1, 32}) {
    const std::vector<double> y = run(ScalarOp::Exp, DType::F32, {x}, threads, {}, 0.6931471805599453);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = static_cast<float>(std::exp2(x[i]));
      if (std::isfinite(exact)) EXPECT_NEAR(y[i], exact, 2e-7 * exact + 1.5e-45) << x[i];
      else EXPECT_TRUE(std::isnan(exact) ? std::isnan(y[i]) : y[i] == exact) << x[i] << ": " << y[i];
    }
  }
}

TEST(Math, IntegerPower) {
  const std::vector<double> x = {3, -1, -1, 2, 0, 0, 7, 1, -3, 5},
                            y = {4, -3, -4, -1, -1, 0, 3, -9, 3, 0};
  EXPECT_THAT(run(ScalarOp::Pow, DType::I32, {x, y}),
              testing::ElementsAre(81, -1, 1, 0, 0, 1, 343, 1, -27, 1));
}

TEST(Math, LeavesNoTranscendentalOps) {
  Builder b("rest");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int out = b.add_buffer({DType::F32, ssa::Space::Memory, false, true, 0});
  const ValueId at = b.program_id();
  ValueId x = b.load(in, at, 0);
  for (const MathCase& c : math_cases()) x = b.scalar(c.op, {x});
  b.store(out, x, at);
  Function f = b.finish();
  ASSERT_TRUE(expand_math(f).ok());
  ASSERT_TRUE(verify(f).ok());
  const std::string text = ssa::print(f);
  for (const MathCase& c : math_cases()) {
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("= " + std::string(info(c.op).name) + " ")));
  }
}

}  // namespace
}  // namespace weft::kernel
