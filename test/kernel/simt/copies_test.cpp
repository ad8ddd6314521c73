// Copies beside threads and loads of matrices: what they do, and kernels that are wrong on purpose, each of which is caught
// whether copies happen early or late.
#include <gmock/gmock.h>

#include "kernel/kernel.h"

namespace weft::kernel {
namespace {

using testing::HasSubstr;

constexpr int kCopyingWarp = 32, kCopyingRun = 4;
constexpr Copies kCopyingOrders[] = {Copies::Early, Copies::Late};

// A warp copies runs of four f32 from `in` to shared memory.
struct Copying {
  Builder b{"copying"};
  int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  int out = b.add_buffer({DType::F32, ssa::Space::Memory, true, true, 0});
  int shared = b.add_buffer({DType::F32, ssa::Space::OnChip, true, true, 2 * kCopyingWarp * kCopyingRun});
  ValueId thread = b.thread_id();

  ValueId number(std::int64_t n) { return b.constant_i64(n); }
  ValueId own(std::int64_t slot = 0) { return b.add(b.mul(thread, number(kCopyingRun)), number(slot * kCopyingWarp * kCopyingRun)); }
  ValueId next() { return b.mul(b.scalar(ScalarOp::And, {b.add(thread, number(1)), number(kCopyingWarp - 1)}), number(kCopyingRun)); }
  void copy(ValueId to, ValueId from, ValueId mask = -1, int elements = kCopyingRun) { b.copy_async({shared, in, elements}, to, from, mask); }
  void store(ValueId from) { b.store(out, b.load(shared, from, kCopyingRun), own()); }

  // "" when it runs.
  std::string run(Copies copies, std::vector<float>* result = nullptr) {
    Function f = b.finish();
    f.threads = f.warp = kCopyingWarp;
    std::vector<float> x(1024), y(1024, -1.0f);
    for (int i = 0; i < 1024; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i);
    const BufferView views[] = {{x.data(), 1024}, {y.data(), 1024}};
    const auto ran = interpret(f, views, {}, 1, copies);
    if (result != nullptr) *result = y;
    return ran.ok() ? "" : ran.error().what();
  }
};

struct Lacks {
  bool commit = false, wait = false, barrier = false;
  int groups_left = 0;
};

// Each thread copies a run and reads its neighbour's.
std::string rotate(Copies copies, const Lacks& lacks) {
  Copying k;
  k.copy(k.own(), k.own());
  if (!lacks.commit) k.b.commit_copies();
  if (!lacks.wait) k.b.wait_copies(lacks.groups_left);
  if (!lacks.barrier) k.b.barrier();
  k.store(k.next());
  k.b.commit_copies();
  k.b.wait_copies(0);
  std::vector<float> y;
  const std::string wrong = k.run(copies, &y);
  if (wrong.empty()) {
    EXPECT_EQ(y[5], 9);
  }
  return wrong;
}

TEST(Copies, OthersSeeThemAfterWaitAndBarrier) {
  for (const Copies copies : kCopyingOrders) {
    EXPECT_EQ(rotate(copies, {}), "");
    EXPECT_THAT(rotate(copies, {.wait = true}), HasSubstr("a race: thread 0 reads where a copy by thread 1 is on its way, which has not waited for it"));
    EXPECT_THAT(rotate(copies, {.groups_left = 1}), HasSubstr("thread 0 reads where a copy by thread 1 is on its way"));
    EXPECT_THAT(rotate(copies, {.commit = true}), HasSubstr("thread 0 reads where a copy by thread 1 is on its way"));
    EXPECT_THAT(rotate(copies, {.barrier = true}), HasSubstr("a race: thread 0 reads what thread 1 wrote, without a barrier between"));
  }
}

// The second of two slots is asked for while the first is read, then the first one again.
std::string two_slots(Copies copies, bool wait_for_both, bool barrier_before_reuse) {
  Copying k;
  k.copy(k.own(0), k.own(0));
  k.b.commit_copies();
  k.copy(k.own(1), k.own(1));
  k.b.commit_copies();
  k.b.wait_copies(1);
  k.b.barrier();
  k.store(k.next());
  if (barrier_before_reuse) k.b.barrier();
  k.copy(k.own(0), k.own(2));
  k.b.commit_copies();
  k.b.wait_copies(wait_for_both ? 0 : 1);
  k.b.barrier();
  k.b.store(k.out, k.b.load(k.shared, k.next(), kCopyingRun), k.own(1));
  k.b.wait_copies(0);
  std::vector<float> y;
  const std::string wrong = k.run(copies, &y);
  if (wrong.empty()) {
    EXPECT_EQ(y[kCopyingWarp * kCopyingRun], 2 * kCopyingWarp * kCopyingRun + kCopyingRun);
  }
  return wrong;
}

TEST(Copies, ASlotIsReusedWhenAllHaveReadIt) {
  for (const Copies copies : kCopyingOrders) {
    EXPECT_EQ(two_slots(copies, true, true), "");
    EXPECT_THAT(two_slots(copies, false, true), HasSubstr("thread 0 reads where a copy by thread 1 is on its way"));
    EXPECT_THAT(two_slots(copies, true, false), HasSubstr("a race: thread 0 writes what thread 31 read, without a barrier between"));
  }
}

TEST(Copies, NobodyWritesWhereOneIsOnItsWay) {
  for (const Copies copies : kCopyingOrders) {
    Copying k;
    k.copy(k.own(), k.own());
    k.b.store(k.shared, k.b.load(k.in, k.own(), kCopyingRun), k.own());
    EXPECT_THAT(k.run(copies), HasSubstr("a race: thread 0 writes where a copy by thread 0 is on its way"));
    Copying twice;
    twice.copy(twice.own(), twice.own());
    twice.copy(twice.own(), twice.own(1));
    EXPECT_THAT(twice.run(copies), HasSubstr("copy_async at 0 of buffer 2: a race: thread 0 writes where a copy by thread 0 is on its way"));
  }
}

TEST(Copies, AProgramDoesNotEndBeforeThem) {
  for (const Copies copies : kCopyingOrders) {
    Copying k;
    k.copy(k.own(), k.own());
    k.b.commit_copies();
    EXPECT_THAT(k.run(copies), HasSubstr("program 0 ends while 32 copies are on their way"));
  }
}

TEST(Copies, MaskedOnesWriteZerosAndReadNothing) {
  for (const Copies copies : kCopyingOrders) {
    Copying k;
    const ValueId mask = k.b.scalar(ScalarOp::Lt, {k.thread, k.number(2)});
    k.copy(k.own(), k.b.select(mask, k.own(), k.number(1 << 20)), mask);
    k.b.commit_copies();
    k.b.wait_copies(0);
    k.b.barrier();
    k.store(k.next());
    std::vector<float> y;
    EXPECT_EQ(k.run(copies, &y), "");
    EXPECT_EQ(y[0], 4);
    EXPECT_EQ(y[4], 0);
  }
}

TEST(Copies, RunsAreAlignedAndInside) {
  for (const Copies copies : kCopyingOrders) {
    Copying from;
    from.copy(from.own(), from.b.add(from.own(), from.number(2)));
    EXPECT_THAT(from.run(copies), HasSubstr("copy_async of 4 elements at 2 of buffer 0, which is not aligned"));
    Copying to;
    to.copy(to.b.add(to.own(), to.number(1)), to.own());
    EXPECT_THAT(to.run(copies), HasSubstr("copy_async of 4 elements at 1 of buffer 2, which is not aligned"));
    Copying beyond;
    beyond.copy(beyond.own(), beyond.b.add(beyond.own(), beyond.number(1000)));
    EXPECT_THAT(beyond.run(copies), HasSubstr("copy_async at 1024 of buffer 0 of 1024 elements"));
  }
}

TEST(Copies, WhatTheVerifierRefuses) {
  Copying odd;
  odd.copy(odd.own(), odd.own(), -1, 3);
  EXPECT_THAT(odd.run(Copies::Late), HasSubstr("4, 8 or 16 bytes are needed"));
  Copying back;
  back.b.copy_async({back.in, back.shared, 4}, back.own(), back.own());
  EXPECT_THAT(back.run(Copies::Late), HasSubstr("copies are from memory to on-chip memory"));
  Copying changing;
  changing.b.copy_async({changing.shared, changing.out, 4}, changing.own(), changing.own());
  EXPECT_THAT(changing.run(Copies::Late), HasSubstr("buffer 1 is not one that is only read"));
}

TEST(Copies, TextIsReadBack) {
  Copying k;
  k.copy(k.own(), k.own());
  k.b.commit_copies();
  k.b.wait_copies(0);
  const Function f = k.b.finish();
  const std::string text = ssa::print(f);
  EXPECT_THAT(text, HasSubstr("copy_async(2, 0, 4)"));
  const auto again = ssa::parse(text, op_table());
  ASSERT_TRUE(again.ok()) << again.error().what();
  EXPECT_EQ(ssa::print(*again), text);
  for (const char* wrong : {"copy_async(9, 0, 4)", "copy_async(2, -1, 4)", "copy_async(2, 0)"}) {
    std::string broken = text;
    broken.replace(broken.find("copy_async(2, 0, 4)"), 19, wrong);
    EXPECT_FALSE(ssa::parse(broken, op_table()).ok()) << wrong;
  }
}

// Rows of eight f16, whose numbers say where they lie: element k of lane l after a load of four matrices.
struct Matrices {
  Builder b{"matrices"};
  int in = b.add_buffer({DType::F16, ssa::Space::Memory, true, false, 0});
  int out = b.add_buffer({DType::F16, ssa::Space::Memory, true, true, 0});
  int shared = b.add_buffer({DType::F16, ssa::Space::OnChip, true, true, 256});
  ValueId thread = b.thread_id();
  ValueId number(std::int64_t n) { return b.constant_i64(n); }
  ValueId own() { return b.mul(thread, number(8)); }

  std::string run(ValueId row, bool turned, bool barrier, std::vector<std::uint16_t>* result = nullptr) {
    b.store(shared, b.load(in, own(), 8), own());
    if (barrier) b.barrier();
    b.store(out, b.load_matrix(shared, row, 4, turned), own());
    return finish(result);
  }
  std::string finish(std::vector<std::uint16_t>* result = nullptr) {
    Function f = b.finish();
    f.threads = f.warp = kCopyingWarp;
    std::vector<std::uint16_t> x(256), y(256);
    for (int i = 0; i < 256; ++i) store_scalar(DType::F16, x.data(), i, {static_cast<double>(i), 0});
    const BufferView views[] = {{x.data(), 256}, {y.data(), 256}};
    const auto ran = interpret(f, views, {}, 1);
    if (result != nullptr) *result = y;
    return ran.ok() ? "" : ran.error().what();
  }
};

TEST(LoadMatrix, GivesEachLaneItsWords) {
  for (const bool turned : {false, true}) {
    Matrices k;
    std::vector<std::uint16_t> y;
    ASSERT_EQ(k.run(k.own(), turned, true, &y), "");
    for (int l = 0; l < kCopyingWarp; ++l) {
      for (int n = 0; n < 8; ++n) {
        const int matrix = n / 2, row = turned ? 2 * (l % 4) + n % 2 : l / 4, column = turned ? l / 4 : 2 * (l % 4) + n % 2;
        ASSERT_EQ(load_f64(DType::F16, y.data(), l * 8 + n), (matrix * 8 + row) * 8 + column) << l << ", " << n;
      }
    }
  }
}

TEST(LoadMatrix, IsChecked) {
  Matrices race;
  EXPECT_THAT(race.run(race.own(), false, false), HasSubstr("load_matrix at 64 of buffer 2: a race: thread 0 reads what thread 8 wrote"));
  Matrices odd;
  EXPECT_THAT(odd.run(odd.b.add(odd.own(), odd.number(4)), false, true), HasSubstr("load_matrix of a row at 4 of buffer 2, which is not aligned"));
  Matrices beyond;
  EXPECT_THAT(beyond.run(beyond.b.add(beyond.own(), beyond.number(8)), false, true), HasSubstr("load_matrix at 256 of buffer 2 of 256 elements"));
  Matrices part;
  part.b.store(part.shared, part.b.load(part.in, part.own(), 8), part.own());
  part.b.barrier();
  part.b.begin_if(part.b.scalar(ScalarOp::Lt, {part.thread, part.number(16)}), {});
  part.b.load_matrix(part.shared, part.own(), 1, false);
  part.b.begin_else({});
  part.b.end_if({});
  EXPECT_THAT(part.finish(), HasSubstr("load_matrix by a part of a warp"));
}

}  // namespace
}  // namespace weft::kernel
