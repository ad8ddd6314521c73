// Kernels for groups of threads that are wrong on purpose: each check of the interpreter fires, on the kernel that
// lacks what it should have and not on the one that has it.
#include <gmock/gmock.h>

#include "kernel/kernel.h"

namespace weft::kernel {
namespace {

using testing::HasSubstr;

constexpr int kThreads = 8, kWarp = 4;

struct Group {
  Builder b{"broken"};
  int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  int out = b.add_buffer({DType::F32, ssa::Space::Memory, true, true, 0});
  int shared = b.add_buffer({DType::F32, ssa::Space::OnChip, true, true, kThreads});
  ValueId thread = b.thread_id();

  ValueId number(std::int64_t n) { return b.constant_i64(n); }
  ValueId next() { return b.scalar(ScalarOp::And, {b.add(thread, number(1)), number(kThreads - 1)}); }
  ValueId below(std::int64_t n) { return b.scalar(ScalarOp::Lt, {thread, number(n)}); }

  // "" when it runs.
  std::string run(std::int64_t grid = 1, std::vector<float>* result = nullptr) {
    Function f = b.finish();
    f.threads = kThreads;
    f.warp = kWarp;
    std::vector<float> x(64), y(64);
    for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i);
    const BufferView views[] = {{x.data(), 64}, {y.data(), 64}};
    const auto ran = interpret(f, views, {}, grid);
    if (result != nullptr) *result = y;
    return ran.ok() ? "" : ran.error().what();
  }
};

// Each thread hands its element to the one before it.
std::string rotate(bool barrier, bool second_round, bool second_barrier) {
  Group g;
  g.b.store(g.shared, g.b.load(g.in, g.thread, 0), g.thread);
  if (barrier) g.b.barrier();
  const ValueId x = g.b.load(g.shared, g.next(), 0);
  if (second_round) {
    if (second_barrier) g.b.barrier();
    g.b.store(g.shared, x, g.thread);
  }
  g.b.store(g.out, x, g.thread);
  return g.run();
}

TEST(Broken, AReadWithoutABarrierAfterTheWrite) {
  EXPECT_EQ(rotate(true, false, false), "");
  EXPECT_THAT(rotate(false, false, false), HasSubstr("a race: thread 0 reads what thread 1 wrote, without a barrier between"));
}

TEST(Broken, AWriteWithoutABarrierAfterTheRead) {
  EXPECT_EQ(rotate(true, true, true), "");
  EXPECT_THAT(rotate(true, true, false), HasSubstr("a race: thread 0 writes what thread 7 read, without a barrier between"));
}

TEST(Broken, TwoThreadsWriteOneElement) {
  Group g;
  g.b.store(g.out, g.b.load(g.in, g.thread, 0), g.b.scalar(ScalarOp::Shr, {g.thread, g.number(1)}));
  EXPECT_THAT(g.run(), HasSubstr("store at 0 of buffer 1: a race: thread 1 writes where thread 0 wrote"));
}

TEST(Broken, AnElementThatManyReadIsWritten) {
  Group g;
  const ValueId x = g.b.load(g.out, g.number(0), 0);
  g.b.store(g.out, x, g.thread);
  EXPECT_THAT(g.run(), HasSubstr("a race: thread 0 writes what other threads read"));
}

TEST(Broken, ProgramsThatWriteAlike) {
  Group g;
  g.b.store(g.out, g.b.load(g.in, g.thread, 0), g.thread);
  EXPECT_THAT(g.run(2), HasSubstr("a race: an element that another program wrote is written"));
}

TEST(Broken, AProgramReadsWhatAnotherOneWrote) {
  Group g;
  const ValueId mine = g.b.add(g.b.mul(g.b.program_id(), g.number(kThreads)), g.thread);
  g.b.store(g.out, g.b.load(g.in, g.thread, 0), mine);
  g.b.barrier();
  g.b.load(g.out, g.thread, 0);
  EXPECT_THAT(g.run(2), HasSubstr("a race: an element that another program wrote is read"));
}

TEST(Broken, AProgramWritesWhatAnotherOneRead) {
  Group g;
  const ValueId ahead = g.b.add(g.b.mul(g.b.program_id(), g.number(kThreads)), g.thread);
  const ValueId x = g.b.load(g.out, g.b.add(g.thread, g.number(kThreads)), 0);
  g.b.barrier();
  g.b.store(g.out, x, ahead);
  EXPECT_THAT(g.run(2), HasSubstr("a race: an element that another program read is written"));
}

TEST(Broken, ABarrierThatSomeThreadsReach) {
  for (const bool all : {true, false}) {
    Group g;
    g.b.begin_if(g.below(all ? kThreads : 3), {});
    g.b.barrier();
    g.b.begin_else({});
    g.b.end_if({});
    if (all) {
      EXPECT_EQ(g.run(), "");
    } else {
      EXPECT_THAT(g.run(), HasSubstr("barrier that only 3 of 8 threads reach"));
    }
  }
}

TEST(Broken, ABarrierInALoopThatSomeThreadsLeave) {
  Group g;
  g.b.begin_for(g.number(0), g.thread, g.number(1), {});
  g.b.barrier();
  g.b.end_for({});
  EXPECT_THAT(g.run(), HasSubstr("barrier that only 7 of 8 threads reach"));
}

TEST(Broken, AShuffleFromALaneThatIsNotThere) {
  Group g;
  const ValueId x = g.b.load(g.in, g.thread, 0);
  g.b.store(g.out, g.b.shuffle(x, g.b.scalar(ScalarOp::Xor, {g.b.scalar(ScalarOp::And, {g.thread, g.number(3)}), g.number(1)})), g.thread);
  std::vector<float> y;
  EXPECT_EQ(g.run(1, &y), "");
  EXPECT_EQ(y[4], 5);
  EXPECT_EQ(y[7], 6);

  Group outside;
  outside.b.shuffle(outside.b.load(outside.in, outside.thread, 0), outside.number(kWarp));
  EXPECT_THAT(outside.run(), HasSubstr("shuffle by thread 0 from lane 4, which does not take part"));

  Group apart;
  apart.b.begin_if(apart.below(2), {});
  apart.b.shuffle(apart.b.load(apart.in, apart.thread, 0), apart.number(3));
  apart.b.begin_else({});
  apart.b.end_if({});
  EXPECT_THAT(apart.run(), HasSubstr("shuffle by thread 0 from lane 3, which does not take part"));
}

TEST(Broken, OnChipMemoryThatWasNeverWritten) {
  Group g;
  g.b.store(g.shared, g.b.load(g.in, g.thread, 0), g.thread, g.below(5));
  g.b.barrier();
  g.b.store(g.out, g.b.load(g.shared, g.thread, 0), g.thread);
  EXPECT_THAT(g.run(), HasSubstr("load at 5 of buffer 2: on-chip memory that was never written is read by thread 5"));
}

TEST(Broken, OnChipMemoryOfTheProgramBefore) {
  Group g;
  g.b.begin_if(g.b.scalar(ScalarOp::Eq, {g.b.program_id(), g.number(0)}), {});
  g.b.store(g.shared, g.b.load(g.in, g.thread, 0), g.thread);
  g.b.begin_else({});
  g.b.end_if({});
  g.b.load(g.shared, g.thread, 0);
  EXPECT_THAT(g.run(2), HasSubstr("never written is read by thread 0, program 1"));
}

TEST(Broken, OutOfBounds) {
  Group g;
  g.b.store(g.shared, g.b.load(g.in, g.thread, 0), g.b.add(g.thread, g.number(1)));
  EXPECT_THAT(g.run(), HasSubstr("store at 8 of buffer 2 of 8 elements, program 0"));
}

TEST(Broken, AVectorThatIsNotAligned) {
  for (const int shift : {0, 2}) {
    Group g;
    const ValueId at = g.b.add(g.b.mul(g.thread, g.number(4)), g.number(shift));
    g.b.store(g.out, g.b.load(g.in, at, 4), at);
    if (shift == 0) {
      EXPECT_EQ(g.run(), "");
    } else {
      EXPECT_THAT(g.run(), HasSubstr("load of 4 elements at 2 of buffer 0, which is not aligned"));
    }
  }
}

}  // namespace
}  // namespace weft::kernel
