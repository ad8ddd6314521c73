#include "kernel/kernel.h"

#include <gmock/gmock.h>

#include <cmath>

namespace weft::kernel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Memory {
  std::vector<std::vector<float>> data;
  std::vector<BufferView> views() {
    std::vector<BufferView> v;
    for (auto& d : data) v.push_back({d.data(), static_cast<std::int64_t>(d.size())});
    return v;
  }
};

int input(Builder& b, DType t = DType::F32) {
  return b.add_buffer({t, ssa::Space::Memory, true, false, 0});
}
int output(Builder& b, DType t = DType::F32) {
  return b.add_buffer({t, ssa::Space::Memory, false, true, 0});
}

// out[pid] = sum of 10 vectors of 4 lanes in row pid, times 2.
Function row_sums() {
  Builder b("row_sums");
  const int in = input(b), out = output(b);
  const ValueId zero = b.constant_i64(0), one = b.constant_i64(1), ten = b.constant_i64(10);
  const auto loop = b.begin_for(zero, ten, one, {b.splat(b.constant(DType::F32, 0), 4)});
  const ValueId pid = b.program_id();
  const ValueId base = b.mul(pid, b.constant_i64(40));
  const ValueId at = b.add(base, b.mul(loop.iv, b.constant_i64(4)));
  const ValueId sum = b.end_for({b.add(loop.carried[0], b.load(in, at, 4))})[0];
  const ValueId total = b.reduce(Combine::Sum, sum);
  b.store(out, b.mul(total, b.constant(DType::F32, 2)), pid);
  return b.finish();
}

TEST(KernelBuilder, HoistsInvariantsOutOfLoops) {
  const Function f = row_sums();
  EXPECT_TRUE(verify(f).ok());
  EXPECT_EQ(print(f), R"(kernel @row_sums {
  buffer f32 memory read
  buffer f32 memory written
  %0 = const(0) : i64
  %1 = const(1) : i64
  %2 = const(10) : i64
  %3 = const(0.0) : f32
  %4 = splat %3 : f32[4]
  %5 = program_id : i64
  %6 = const(40) : i64
  %7 = mul %5, %6 : i64
  %8 = const(4) : i64
  %9 = for %0, %2, %1, %4 : f32[4] { %10: i64, %11: f32[4]
    %12 = mul %10, %8 : i64
    %13 = add %7, %12 : i64
    %14 = load(0) %13 : f32[4]
    %15 = add %11, %14 : f32[4]
    yield %15
  }
  %16 = reduce_sum %9 : f32
  %17 = const(2.0) : f32
  %18 = mul %16, %17 : f32
  store(1) %18, %5
}
)");
}

TEST(KernelBuilder, TextRoundTrips) {
  const Function f = row_sums();
  const auto g = ssa::parse(print(f), op_table());
  ASSERT_TRUE(g.ok()) << g.error().what();
  EXPECT_EQ(print(*g), print(f));
}

TEST(KernelBuilder, MergesAndFolds) {
  Builder b("fold");
  const ValueId n = b.size(b.add_size());
  const ValueId x = b.add(n, b.constant_i64(3));
  EXPECT_EQ(x, b.add(b.constant_i64(3), n));
  EXPECT_EQ(n, b.add(n, b.constant_i64(0)));
  EXPECT_EQ(b.constant_i64(12), b.mul(b.constant_i64(3), b.constant_i64(4)));
  EXPECT_EQ(n, b.extract(b.splat(n, 8), 5));
  const ValueId minus_zero = b.constant(DType::F32, -0.0);
  EXPECT_NE(minus_zero, b.constant(DType::F32, 0.0));
}

TEST(KernelBuilder, WorkStaysInItsBranch) {
  Builder b("branch");
  const int in = input(b), out = output(b);
  const ValueId zero = b.constant_i64(0);
  const ValueId x = b.load(in, zero, 0);
  b.begin_if(b.scalar(ScalarOp::Lt, {x, b.constant(DType::F32, 0)}), {Type::scalar(DType::F32)});
  const ValueId then = b.scalar(ScalarOp::Exp, {x});
  b.begin_else({then});
  const ValueId otherwise = b.scalar(ScalarOp::Exp, {x});
  EXPECT_NE(then, otherwise);
  b.store(out, b.end_if({otherwise})[0], zero);
  const Function f = b.finish();
  ASSERT_TRUE(verify(f).ok());
  EXPECT_EQ(f.body.insts.size(), 6u);  // two constants, load, compare, if, store
}

TEST(KernelInterpreter, SumsRows) {
  Memory m{{std::vector<float>(80), std::vector<float>(2)}};
  for (int i = 0; i < 80; ++i) m.data[0][i] = i < 40 ? 1 : 2;
  const auto r = interpret(row_sums(), m.views(), {}, 2);
  ASSERT_TRUE(r.ok()) << r.error().what();
  EXPECT_THAT(m.data[1], ElementsAre(80, 160));
}

TEST(KernelInterpreter, ReportsAccessesOutOfRange) {
  Memory m{{std::vector<float>(79), std::vector<float>(2)}};
  EXPECT_THAT(interpret(row_sums(), m.views(), {}, 2).error().message(),
              HasSubstr("load at 79 of buffer 0 of 79 elements, program 1"));
}

TEST(KernelInterpreter, MasksGathersScattersAndInserts) {
  Builder b("lanes");
  const int in = input(b), out = output(b);
  const ValueId zero = b.constant_i64(0);
  const ValueId lane = b.iota(DType::I64, 4);
  const ValueId mask = b.scalar(ScalarOp::Lt, {lane, b.splat(b.constant_i64(3), 4)});
  const ValueId x = b.load(in, zero, 4, mask);
  const ValueId reversed = b.scalar(ScalarOp::Sub, {b.splat(b.constant_i64(2), 4), lane});
  const ValueId y = b.gather(in, reversed, mask);
  const ValueId sum = b.insert(b.add(x, y), b.constant(DType::F32, 9), 1);
  b.scatter(out, sum, b.mul(lane, b.splat(b.constant_i64(2), 4)));
  Memory m{{{1, 2, 3}, std::vector<float>(7, -1)}};
  const auto r = interpret(b.finish(), m.views(), {}, 1);
  ASSERT_TRUE(r.ok()) << r.error().what();
  EXPECT_THAT(m.data[1], ElementsAre(4, -1, 9, -1, 4, -1, 0));
}

TEST(KernelInterpreter, ChecksFailWithTheirCode) {
  Builder b("check");
  const ValueId n = b.size(b.add_size());
  b.check(b.scalar(ScalarOp::Gt, {n, b.constant_i64(0)}), 7);
  const Function f = b.finish();
  const std::int64_t good[] = {1}, bad[] = {0};
  EXPECT_TRUE(interpret(f, {}, good, 1).ok());
  EXPECT_THAT(interpret(f, {}, bad, 1).error().message(), HasSubstr("check 7 fails"));
}

TEST(KernelInterpreter, CarriedValuesSwap) {
  Builder b("swap");
  const int out = output(b);
  const ValueId zero = b.constant_i64(0), one = b.constant_i64(1);
  const auto loop = b.begin_for(zero, b.constant_i64(3), one,
                                {b.constant(DType::F32, 1), b.constant(DType::F32, 2)});
  const auto r = b.end_for({loop.carried[1], loop.carried[0]});
  b.store(out, r[0], zero);
  Memory m{{{0}}};
  ASSERT_TRUE(interpret(b.finish(), m.views(), {}, 1).ok());
  EXPECT_EQ(m.data[0][0], 2);
}

TEST(KernelVerify, RejectsWrongTypes) {
  const auto message = [](std::string body) {
    const auto f = ssa::parse("kernel @f {\n  buffer f32 memory read\n" + body + "}\n", op_table());
    if (!f.ok()) return std::string(f.error().what());
    const auto r = verify(*f);
    return r.ok() ? std::string("ok") : std::string(r.error().what());
  };
  EXPECT_EQ(message("%0 = const(1) : i64\n%1 = load(0) %0 : f32\n"), "ok");
  EXPECT_THAT(message("%0 = const(1) : i64\n%1 = load(0) %0 : f64\n"),
              HasSubstr("the buffer holds f32"));
  EXPECT_THAT(message("%0 = const(1) : i64\n%1 = exp %0 : i64\n"), HasSubstr("not for this dtype"));
  EXPECT_THAT(message("%0 = const(1.0) : bf16\n%1 = add %0, %0 : bf16\n"),
              HasSubstr("cast to f32 first"));
  EXPECT_THAT(message("%0 = const(1) : i64\nstore(0) %0, %0\n"), HasSubstr("the buffer holds f32"));
  EXPECT_THAT(message("%0 = const(1) : i64\n%1 = extract(0) %0 : i64\n"),
              HasSubstr("there is no lane 0"));
  EXPECT_THAT(message("%0 = iota : i64[4]\n%1 = lt %0, %0 : i64[4]\n"),
              HasSubstr("a result of i64[4]"));
}

}  // namespace
}  // namespace weft::kernel
