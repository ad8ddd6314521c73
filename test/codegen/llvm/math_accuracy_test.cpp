// The expanded transcendental ops, compiled, against the C library in f64, over all exponents of
// f32.
#include <chrono>
#include <cmath>
#include <functional>

#include "codegen/llvm/harness.h"
#include "kernel/math_cases.h"

namespace weft::codegen::test {
namespace {

constexpr int kLanes = 16;

// What is stored, of what was loaded.
using Body = std::function<ValueId(kernel::Builder& b, ValueId x)>;

Compiled compile(const Body& body) {
  kernel::Builder b("k");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int out = b.add_buffer({DType::F32, ssa::Space::Memory, false, true, 0});
  const ValueId at = b.mul(b.program_id(), b.constant_i64(kLanes));
  b.store(out, body(b, b.load(in, at, kLanes)), at);
  ssa::Function f = b.finish();
  kernel::expand_math(f).value();
  return build(f);
}

class MathAccuracy : public testing::TestWithParam<kernel::MathCase> {};

TEST_P(MathAccuracy, WithinItsBound) {
  const kernel::MathCase& c = GetParam();
  std::vector<float> x = kernel::sweep_f32(emulated_cpu() ? 200'000 : 2'000'000);
  x.resize(x.size() / kLanes * kLanes);
  const auto n = static_cast<std::int64_t>(x.size());
  Guarded in(DType::F32, n), out(DType::F32, n);
  std::memcpy(in.data(), x.data(), x.size() * sizeof(float));
  const Compiled kernel = compile([&](kernel::Builder& b, ValueId x) { return b.scalar(c.op, {x}); });
  const auto start = std::chrono::steady_clock::now();
  kernel.run({&in, &out}, {}, 0, n / kLanes);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  const auto* y = static_cast<const float*>(out.data());
  double worst = 0;
  float at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = kernel::ulps_f32(y[i], c.reference(x[i]));
    if (error > worst) worst = error, at = x[i];
  }
  RecordProperty("ulp", std::to_string(worst));
  RecordProperty("ns_per_element", std::to_string(took.count() / static_cast<double>(x.size())));
  EXPECT_LE(worst, c.ulp_f32) << info(c.op).name << " of " << at;
}

// The sum has one polynomial; where erf is wanted itself, it keeps its own.
TEST(MathSums, OnePlusErf) {
  std::vector<float> x = kernel::sweep_f32(200'000);
  x.resize(x.size() / kLanes * kLanes);
  const auto n = static_cast<std::int64_t>(x.size());
  for (const bool itself : {false, true}) {
    Guarded in(DType::F32, n), out(DType::F32, n);
    std::memcpy(in.data(), x.data(), x.size() * sizeof(float));
    const Compiled kernel = compile([&](kernel::Builder& b, ValueId v) {
      const ValueId erf = b.scalar(ScalarOp::Erf, {v}), sum = b.add(b.constant_like(v, 1), erf);
      return itself ? b.sub(sum, erf) : sum;
    });
    kernel.run({&in, &out}, {}, 0, n / kLanes);
    const auto* y = static_cast<const float*>(out.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = std::isnan(x[i]) ? NAN : itself ? 1 : 1 + std::erf(static_cast<double>(x[i]));
      if (std::isnan(want) ? std::isnan(y[i]) : std::fabs(y[i] - want) <= 2.5e-7) continue;
      ADD_FAILURE() << x[i] << " gives " << y[i] << " instead of " << want;
      break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, MathAccuracy, testing::ValuesIn(kernel::math_cases()),
                         [](const auto& p) { return std::string(weft::info(p.param.op).name); });

}  // namespace
}  // namespace weft::codegen::test
