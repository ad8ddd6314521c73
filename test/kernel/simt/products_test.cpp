// Products of four warps: what one gives, and kernels that are wrong on purpose, each of which is caught whether products happen
// early or late.
#include <gmock/gmock.h>

#include "base/scalar.h"
#include "kernel/kernel.h"

namespace weft::kernel {
namespace {

using testing::HasSubstr;

constexpr int kProductSteps = 16, kProductColumns = 16, kProductRun = 8;
constexpr int kLeftElements = kGroupRows * kProductSteps, kRightElements = kProductColumns * kProductSteps;

struct Without {
  bool fence_shared = false, barrier = false, fence_products = false, commit = false, wait = false, fence_last = false;
  bool write_before_wait = false, write_without_barrier = false, use_before_wait = false;
  std::int64_t groups_left = 0;
  bool half = false;       // only two warps ask
  bool apart = false;      // warps name different blocks
  bool unwritten = false;  // half of the right operand was never written
};

// Rows of 32 bytes: bit 4 of the address is exclusive-ored with bit 7, or, in elements of 2 bytes, bit 3 with bit 6.
ValueId swizzled(Builder& b, ValueId at) {
  const ValueId bit = b.scalar(ScalarOp::And, {b.scalar(ScalarOp::Shr, {at, b.constant_i64(3)}), b.constant_i64(8)});
  return b.scalar(ScalarOp::Xor, {at, bit});
}

struct Multiplying {
  Builder b{"multiplying"};
  int a = b.add_buffer({DType::F16, ssa::Space::Memory, true, false, 0});
  int x = b.add_buffer({DType::F16, ssa::Space::Memory, true, false, 0});
  int y = b.add_buffer({DType::F32, ssa::Space::Memory, true, true, 0});
  int left = b.add_buffer({DType::F16, ssa::Space::OnChip, true, true, kLeftElements});
  int right = b.add_buffer({DType::F16, ssa::Space::OnChip, true, true, kRightElements});
  ValueId thread = b.thread_id();

  ValueId number(std::int64_t n) { return b.constant_i64(n); }
  ValueId run_of_thread() { return b.mul(thread, number(kProductRun)); }
  void fill_right(std::int64_t threads) {
    b.begin_if(b.scalar(ScalarOp::Lt, {thread, number(threads)}), {});
    b.store(right, b.load(x, run_of_thread(), kProductRun), swizzled(b, run_of_thread()));
    b.begin_else({}), b.end_if({});
  }
};

// "" when it runs.
std::string run(Builder& b, Copies order, std::vector<float>* result) {
  Function f = b.finish();
  f.threads = kGroupThreads, f.warp = kMatrixWarp;
  std::vector<std::uint16_t> left(kLeftElements), right(kRightElements);
  for (std::size_t i = 0; i < left.size(); ++i) store_scalar(DType::F16, left.data(), static_cast<std::int64_t>(i), {static_cast<double>(i * 7 % 11) - 5, 0});
  for (std::size_t i = 0; i < right.size(); ++i) store_scalar(DType::F16, right.data(), static_cast<std::int64_t>(i), {static_cast<double>(i * 5 % 13) - 6, 0});
  std::vector<float> y(kGroupRows * kProductColumns, -1.0f);
  const BufferView views[] = {{left.data(), kLeftElements}, {right.data(), kRightElements}, {y.data(), static_cast<std::int64_t>(y.size())}};
  const auto ran = interpret(f, views, {}, 1, order);
  if (result != nullptr) *result = y;
  return ran.ok() ? "" : ran.error().what();
}

// y = a x, where x lies by columns.
std::string multiply(Copies order, const Without& w, std::vector<float>* result = nullptr) {
  Multiplying k;
  Builder& b = k.b;
  b.store(k.left, b.load(k.a, k.run_of_thread(), kProductRun), swizzled(b, k.run_of_thread()));
  k.fill_right(kRightElements / kProductRun / (w.unwritten ? 2 : 1));
  if (w.fence_last) b.barrier();
  if (!w.fence_shared) b.fence_shared();
  if (!w.barrier && !w.fence_last) b.barrier();
  const ssa::BlockImm lies{0, 5, false, 0, 8};  // eight rows of 32 bytes, the next eight 256 bytes on
  ssa::BlocksImm blocks{lies, lies};
  blocks.left.buffer = k.left, blocks.right.buffer = k.right;
  const ValueId zeros = b.splat(b.constant(DType::F32, 0), kProductColumns / 2);
  if (!w.fence_products) b.fence_products();
  const ValueId warp = b.scalar(ScalarOp::Shr, {k.thread, k.number(6)});
  const auto ask = [&] { return b.multiply_group(blocks, k.number(0), w.apart ? b.mul(warp, k.number(8)) : k.number(0), zeros); };
  if (w.half) {
    b.begin_if(b.scalar(ScalarOp::Lt, {warp, k.number(1)}), {});
    ask();
    b.begin_else({}), b.end_if({});
  }
  const ValueId sum = ask();
  if (!w.commit) b.commit_products();
  const auto overwrite = [&] { b.store(k.right, b.load(k.x, k.number(0), kProductRun), b.mul(b.scalar(ScalarOp::And, {k.thread, k.number(31)}), k.number(kProductRun))); };
  if (w.write_before_wait) k.fill_right(1);
  ValueId done = w.use_before_wait ? sum : -1;
  if (!w.wait && done < 0) done = b.wait_products(sum, static_cast<int>(w.groups_left));
  if (w.write_without_barrier) overwrite();
  for (int n = 0; n < kProductColumns / 2 && done >= 0; ++n) {
    b.store(k.y, b.extract(done, n), b.add(b.mul(k.thread, k.number(kProductColumns / 2)), k.number(n)));
  }
  return run(b, order, result);
}

TEST(Products, AThreadHoldsPairsOfColumnsOfTwoRows) {
  for (const Copies order : {Copies::Early, Copies::Late}) {
    std::vector<float> y;
    ASSERT_EQ(multiply(order, {}, &y), "");
    for (int thread = 0; thread < kGroupThreads; ++thread) {
      for (int n = 0; n < kProductColumns / 2; ++n) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + n / 2 % 2 * 8, column = n / 4 * 8 + thread % 4 * 2 + n % 2;
        double sum = 0;
        for (int i = 0; i < kProductSteps; ++i) sum += ((row * kProductSteps + i) * 7 % 11 - 5) * ((column * kProductSteps + i) * 5 % 13 - 6);
        ASSERT_EQ(y[static_cast<std::size_t>(thread * kProductColumns / 2 + n)], sum) << row << ", " << column;
      }
    }
  }
}

void expect_caught(const Without& w, const char* message) {
  for (const Copies order : {Copies::Early, Copies::Late}) EXPECT_THAT(multiply(order, w), HasSubstr(message));
}

TEST(Products, WhatIsReadIsFencedAndBehindABarrier) {
  expect_caught({.fence_shared = true}, "which has not fenced it before the barrier");
  expect_caught({.fence_last = true}, "which has not fenced it before the barrier");
  expect_caught({.barrier = true}, "a product reads what thread 0 wrote, without a barrier between");
  expect_caught({.unwritten = true}, "on-chip memory that was never written is read by a product");
}

TEST(Products, RegistersAreFenced) { expect_caught({.fence_products = true}, "to a sum that was written without a fence_products since"); }

TEST(Products, SumsAreWaitedFor) {
  expect_caught({.use_before_wait = true}, "the sum of a product on its way is used");
  expect_caught({.wait = true}, "ends while 1 products are on their way");
  expect_caught({.commit = true}, "the sum of a product on its way is used");
  expect_caught({.groups_left = 1}, "the sum of a product on its way is used");
}

TEST(Products, NobodyWritesWhatTheyRead) {
  expect_caught({.write_before_wait = true}, "writes what a product on its way reads");
  expect_caught({.write_without_barrier = true}, "without a barrier between");
}

struct InLoop {
  bool use = false, overwrite = false, forget = false, twice = false, late = false;
  int left = 1;  // products on their way when an iteration ends
};

// y = sum over three blocks of a x, each of which is waited for in the iteration after.
std::string multiply_in_loop(Copies order, const InLoop& w, std::vector<float>* result = nullptr) {
  Multiplying k;
  Builder& b = k.b;
  b.store(k.left, b.load(k.a, k.run_of_thread(), kProductRun), swizzled(b, k.run_of_thread()));
  k.fill_right(kRightElements / kProductRun);
  b.fence_shared();
  b.barrier();
  const ssa::BlockImm lies{0, 5, false, 0, 8};
  ssa::BlocksImm blocks{lies, lies};
  blocks.left.buffer = k.left, blocks.right.buffer = k.right;
  const auto loop = b.begin_for(k.number(0), k.number(3), k.number(1), {b.splat(b.constant(DType::F32, 0), kProductColumns / 2)});
  b.fence_products();
  ValueId sum = b.multiply_group(blocks, k.number(0), k.number(0), loop.carried[0]);
  if (w.twice) b.multiply_group(blocks, k.number(0), k.number(0), loop.carried[0]);
  b.commit_products();
  if (!w.late) sum = b.wait_products(sum, w.left);
  if (w.use) b.store(k.y, b.extract(sum, 0), k.thread);
  if (w.overwrite) b.barrier(), k.fill_right(1), b.fence_shared(), b.barrier();
  ValueId done = b.end_for({sum})[0];
  if (!w.forget) done = b.wait_products(done, 0);
  for (int n = 0; n < kProductColumns / 2 && !w.forget; ++n) {
    b.store(k.y, b.extract(done, n), b.add(b.mul(k.thread, k.number(kProductColumns / 2)), k.number(n)));
  }
  return run(b, order, result);
}

TEST(Products, ALoopCarriesASumThatIsOnItsWay) {
  for (const Copies order : {Copies::Early, Copies::Late}) {
    for (const InLoop& way : {InLoop{}, InLoop{.left = 0}, InLoop{.left = 3}, InLoop{.late = true}}) {
      std::vector<float> once, y;
      ASSERT_EQ(multiply(order, {}, &once), "");
      ASSERT_EQ(multiply_in_loop(order, way, &y), "");
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 3 * once[i]) << i;
    }
  }
}

TEST(Products, WhatIsOnItsWayOverIterationsIsLeftAlone) {
  for (const Copies order : {Copies::Early, Copies::Late}) {
    EXPECT_THAT(multiply_in_loop(order, {.use = true}), HasSubstr("the sum of a product on its way is used"));
    EXPECT_THAT(multiply_in_loop(order, {.overwrite = true}), HasSubstr("writes what a product on its way reads"));
    EXPECT_THAT(multiply_in_loop(order, {.overwrite = true, .left = 0}), "");
    EXPECT_THAT(multiply_in_loop(order, {.forget = true}), HasSubstr("ends while 1 products are on their way"));
    EXPECT_THAT(multiply_in_loop(order, {.twice = true}), HasSubstr("to a sum that "));
  }
}

TEST(Products, FourWarpsAskTogether) {
  expect_caught({.half = true}, "by a part of four warps");
  expect_caught({.apart = true}, "at 0 by thread 0, at 8 by thread 64");
}

TEST(Products, MustBeOfWholeWarpgroupsAndOfBlocksThatExist) {
  const auto parsed = [](int threads, const char* blocks, const char* columns) {
    const std::string text = "kernel @p {\n  buffer f16 on_chip read written 4096\n  threads " + std::to_string(threads) + " warp 32\n  %0 = const(0) : i64\n  %1 = const(0.0) : f32\n  %2 = splat %1 : f32[" +
                             columns + "]\n  %3 = multiply_group(" + blocks + ") %0, %0, %2 : f32[" + columns + "]\n  %4 = wait_products(0) %3 : f32[" + columns + "]\n}\n";
    const auto f = ssa::parse(text, op_table());
    if (!f.ok()) return std::string(f.error().what());
    const auto ok = verify(*f);
    return ok.ok() ? std::string() : std::string(ok.error().what());
  };
  EXPECT_EQ(parsed(128, "0, 5, 0, 0, 8, 0, 7, 1, 10, 10", "8"), "");
  EXPECT_THAT(parsed(64, "0, 5, 0, 0, 8, 0, 5, 0, 0, 8", "8"), HasSubstr("fours of warps"));
  EXPECT_THAT(parsed(128, "1, 5, 0, 0, 8, 0, 5, 0, 0, 8", "8"), HasSubstr("there is no buffer 1 or 0"));
  EXPECT_THAT(parsed(128, "0, 4, 0, 0, 8, 0, 5, 0, 0, 8", "8"), HasSubstr("rows of 32, 64 or 128 bytes"));
  EXPECT_THAT(parsed(128, "0, 5, 0, 0, 8, 0, 5, 1, 0, 8", "8"), HasSubstr("rows of 32, 64 or 128 bytes"));
  EXPECT_THAT(parsed(128, "0, 5, 0, 0, 8, 0, 5, 0, 0, 8", "6"), HasSubstr("8 to 256 columns"));
  EXPECT_THAT(parsed(128, "0, 5, 0, 0, 8, 0, 5, 0, 0", "8"), HasSubstr("','"));
}

}  // namespace
}  // namespace weft::kernel
