// Products by the matrix units of warps, in the interpreter: fragments, shared memory, and what does not suit the units.
#include "kernel/simd/differential.h"
#include "kernel/simt/lower.h"
#include "kernel/simt/spread.h"

namespace weft::kernel::simd_test {
namespace {

Machine with_matrix_units(int threads) {
  Machine m = group_machine(threads, 32, true);
  m.has_matrix = true;
  m.shared_bytes = 48 << 10;
  m.matrix_rate = 1024;
  m.features = {kF8Products};
  return m;
}

Machine with_copies(int threads) {
  Machine m = with_matrix_units(threads);
  m.copy_bytes = 16;
  m.memory_latency = 600;
  return m;
}

Machine with_groups(bool copies) {
  Machine m = copies ? with_copies(256) : with_matrix_units(256);
  m.group_matrix_rate = 2048;
  return m;
}

// y = x a, over `blocks` blocks of `depth` steps.
tile::Function product(DType t, int rows, int depth, int columns, int blocks, bool left_turned = false, bool right_turned = false) {
  Builder b("product");
  const int x = b.add_buffer({t, ssa::Space::Memory, true, false, 0}), a = b.add_buffer({t, ssa::Space::Memory, true, false, 0});
  const DType sums = is_float(t) ? DType::F32 : DType::I32;
  const int y = b.add_buffer(out_buffer(sums));
  const auto at = [&](int r, int c, int stride, ValueId first_row, ValueId first_column) {
    const ValueId row = b.add(b.iota(r, 1, 0), first_row), column = b.add(b.iota(1, c, 1), first_column);
    return b.add(b.mul(row, b.constant_i64(stride)), column);
  };
  const ValueId zero = b.constant_i64(0), step = b.constant_i64(depth);
  const ValueId start = b.broadcast(b.constant(sums, 0), rows, columns);
  const auto loop = b.begin_for(zero, b.constant_i64(depth * blocks), step, {start});
  const ValueId left = left_turned ? b.transpose(b.load(x, at(depth, rows, rows, loop.iv, zero)))
                                   : b.load(x, at(rows, depth, depth * blocks, zero, loop.iv));
  const ValueId right = right_turned ? b.transpose(b.load(a, at(columns, depth, depth * blocks, zero, loop.iv)))
                                     : b.load(a, at(depth, columns, columns, loop.iv, zero));
  const ValueId sum = b.end_for({b.dot(left, right, loop.carried[0])})[0];
  b.store(y, sum, at(rows, columns, columns, zero, zero));
  return b.finish();
}

std::vector<unsigned char> encoded(DType t, std::size_t n, int seed) {
  std::vector<unsigned char> words(n * static_cast<std::size_t>(bits(t)) / 8);
  for (std::size_t i = 0; i < n; ++i) {  // whole numbers: sums are exact
    store_scalar(t, words.data(), static_cast<std::int64_t>(i), {static_cast<double>((i * 7 + i / 13 * 5 + seed) % 9) - 4, 0});
  }
  return words;
}

void check(DType t, int rows, int depth, int columns, int blocks, const Machine& machine, bool units) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(depth) + " x " + std::to_string(columns));
  const auto f = lower_simt(product(t, rows, depth, columns, blocks), machine);
  ASSERT_TRUE(f.ok()) << f.error().what();
  EXPECT_EQ(count(f->body, Op::MultiplyMatrix) > 0, units);
  EXPECT_EQ(count(f->body, Op::CopyAsync) > 0, machine.copy_bytes > 0);
  const int k = depth * blocks;
  std::vector<unsigned char> x = encoded(t, static_cast<std::size_t>(rows * k), 1), a = encoded(t, static_cast<std::size_t>(k * columns), 5);
  std::vector<float> y(static_cast<std::size_t>(rows * columns));
  const BufferView views[] = {{x.data(), rows * k}, {a.data(), k * columns}, {y.data(), rows * columns}};
  for (const Copies copies : {Copies::Early, Copies::Late}) {
    std::fill(y.begin(), y.end(), -1.0f);
    const auto ran = interpret(*f, views, {}, 1, copies);
    ASSERT_TRUE(ran.ok()) << ran.error().what();
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        double sum = 0;
        for (int i = 0; i < k; ++i) sum += load_f64(t, x.data(), r * k + i) * load_f64(t, a.data(), i * columns + c);
        ASSERT_EQ(y[static_cast<std::size_t>(r * columns + c)], sum) << r << ", " << c;
      }
    }
  }
}

void check(DType t, int rows, int depth, int columns, int blocks, int threads, bool units) {
  check(t, rows, depth, columns, blocks, with_matrix_units(threads), units);
}

TEST(Matrix, UnitsMultiplyTilesOfAllSizes) {
  for (const DType t : {DType::F16, DType::BF16}) {
    check(t, 16, 16, 8, 1, 32, true);
    check(t, 16, 32, 16, 2, 256, true);
    check(t, 64, 32, 64, 2, 256, true);
    check(t, 64, 16, 32, 1, 64, true);  // fewer threads than rows ask for
    check(t, 128, 32, 32, 1, 256, true);
    check(t, 32, 64, 128, 1, 128, true);
  }
}

// Fewer blocks than are copied ahead, as many, and more.
TEST(Matrix, BlocksAreCopiedAhead) {
  for (const DType t : {DType::F16, DType::BF16}) {
    for (const int blocks : {1, 2, 3, 4, 9}) {
      check(t, 64, 32, 64, blocks, with_copies(256), true);
      check(t, 16, 16, 8, blocks, with_copies(32), true);
    }
    check(t, 128, 32, 128, 3, with_copies(256), true);
    check(t, 16, 64, 64, 2, with_copies(256), true);  // fewer runs of an operand than threads
    check(t, 8, 16, 16, 3, with_copies(64), false);
  }
}

// Products of bytes, summed in i32, whose words are made of four steps that lie apart.
void check_bytes(DType t, int rows, int depth, int columns, int blocks, const Machine& machine, bool right_turned = false) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(depth) + " x " + std::to_string(columns));
  const auto f = lower_simt(product(t, rows, depth, columns, blocks, false, right_turned), machine);
  ASSERT_TRUE(f.ok()) << f.error().what();
  EXPECT_EQ(count(f->body, Op::MultiplyMatrix) > 0, machine.group_matrix_rate == 0);
  EXPECT_EQ(count(f->body, Op::MultiplyGroup) > 0, machine.group_matrix_rate > 0);
  const int k = depth * blocks;
  std::vector<std::uint8_t> x(static_cast<std::size_t>(rows * k)), a(static_cast<std::size_t>(k * columns));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 37 + i / 11);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(i * 91 + i / 7);
  std::vector<std::int32_t> y(static_cast<std::size_t>(rows * columns));
  const BufferView views[] = {{x.data(), rows * k}, {a.data(), k * columns}, {y.data(), rows * columns}};
  for (const Copies order : {Copies::Early, Copies::Late}) {
    const auto ran = interpret(*f, views, {}, 1, order);
    ASSERT_TRUE(ran.ok()) << ran.error().what();
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      std::int64_t sum = 0;
      for (int i = 0; i < k; ++i) sum += load_scalar(t, x.data(), r * k + i).i * load_scalar(t, a.data(), right_turned ? c * k + i : i * columns + c).i;
      ASSERT_EQ(y[static_cast<std::size_t>(r * columns + c)], sum) << r << ", " << c;
    }
  }
}

TEST(Matrix, BytesAreMultipliedExactly) {
  for (const DType t : {DType::I8, DType::U8}) {
    check_bytes(t, 16, 32, 8, 2, with_matrix_units(32));
    check_bytes(t, 64, 64, 32, 2, with_matrix_units(256));
    check_bytes(t, 64, 32, 64, 5, with_copies(256));
  }
}

struct Turns {
  bool left = false, right = false;
};

void check_groups(DType t, int rows, int depth, int columns, int blocks, bool copies, Turns turns = {}, bool groups = true) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(depth) + " x " + std::to_string(columns));
  const auto f = lower_simt(product(t, rows, depth, columns, blocks, turns.left, turns.right), with_groups(copies));
  ASSERT_TRUE(f.ok()) << f.error().what();
  EXPECT_EQ(count(f->body, Op::MultiplyGroup) > 0, groups);
  EXPECT_EQ(count(f->body, Op::MultiplyMatrix) > 0, !groups);
  const auto again = ssa::parse(ssa::print(*f), op_table());
  ASSERT_TRUE(again.ok()) << again.error().what();
  EXPECT_EQ(ssa::print(*again), ssa::print(*f));
  const int k = depth * blocks;
  std::vector<unsigned char> x = encoded(t, static_cast<std::size_t>(rows * k), 1), a = encoded(t, static_cast<std::size_t>(k * columns), 5);
  std::vector<float> y(static_cast<std::size_t>(rows * columns));
  const BufferView views[] = {{x.data(), rows * k}, {a.data(), k * columns}, {y.data(), rows * columns}};
  for (const Copies order : {Copies::Early, Copies::Late}) {
    std::fill(y.begin(), y.end(), -1.0f);
    const auto ran = interpret(*again, views, {}, 1, order);
    ASSERT_TRUE(ran.ok()) << ran.error().what();
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        double sum = 0;
        for (int i = 0; i < k; ++i) {
          sum += load_f64(t, x.data(), turns.left ? i * rows + r : r * k + i) * load_f64(t, a.data(), turns.right ? c * k + i : i * columns + c);
        }
        ASSERT_EQ(y[static_cast<std::size_t>(r * columns + c)], sum) << r << ", " << c;
      }
    }
  }
}

TEST(Matrix, FourWarpsMultiplyBytes) {
  for (const DType t : {DType::I8, DType::U8}) {
    check_bytes(t, 64, 32, 16, 2, with_groups(false));
    check_bytes(t, 64, 64, 32, 3, with_groups(true), true);
    check_bytes(t, 128, 128, 8, 2, with_groups(true), true);
    check_bytes(t, 64, 256, 16, 1, with_groups(true), true);  // steps of two rows of 128 bytes
  }
}

TEST(Matrix, FloatsOfEightBitsAreMultiplied) {
  for (const DType t : {DType::F8E4M3FN, DType::F8E5M2}) {
    check(t, 16, 32, 8, 2, with_matrix_units(32), true);
    check(t, 64, 64, 32, 2, with_copies(256), true);
    Machine older = with_matrix_units(64);
    older.features.clear();
    check(t, 16, 32, 8, 2, older, false);
    for (const bool copies : {false, true}) {
      check_groups(t, 64, 32, 16, 2, copies);
      check_groups(t, 64, 64, 64, 3, copies, {false, true});
      check_groups(t, 128, 128, 32, 2, copies, {true, true});
      check_groups(t, 64, 32, 8, 2, copies, {true, false});
    }
  }
}

// Operands of 10 bits behind the leading one are multiplied as they are; where it is not asked for, f32 stays with the threads.
TEST(Matrix, FloatsAreCutWhereThatIsAskedFor) {
  for (Machine m : {with_matrix_units(256), with_copies(256)}) {
    m.cuts_f32 = true;
    check(DType::F32, 16, 8, 8, 2, m, true);
    check(DType::F32, 64, 32, 64, 2, m, true);
    check(DType::F32, 128, 16, 32, 5, m, true);
    m.cuts_f32 = false;
    check(DType::F32, 64, 32, 64, 2, m, false);
  }
}

TEST(Matrix, FourWarpsMultiplyTogether) {
  for (const DType t : {DType::F16, DType::BF16}) {
    for (const bool copies : {false, true}) {
      check_groups(t, 64, 16, 16, 3, copies);
      check_groups(t, 64, 32, 64, 4, copies);
      check_groups(t, 64, 64, 32, 2, copies);
    }
  }
  for (const bool copies : {false, true}) {
    check_groups(DType::F16, 128, 32, 128, 2, copies);
    check_groups(DType::F16, 128, 128, 16, 1, copies);  // steps of two rows of 128 bytes
    check_groups(DType::F16, 256, 16, 32, 2, copies);
    check_groups(DType::F16, 64, 16, 256, 2, copies);
  }
}

TEST(Matrix, FourWarpsReadOperandsEitherWayRound) {
  for (const bool copies : {false, true}) {
    for (const Turns turns : {Turns{true, false}, Turns{false, true}, Turns{true, true}}) {
      check_groups(DType::F16, 64, 32, 64, 2, copies, turns);
      check_groups(DType::BF16, 128, 64, 32, 2, copies, turns);
      check_groups(DType::F16, 64, 16, 128, 2, copies, turns);
    }
    check_groups(DType::F16, 64, 32, 8, 2, copies, {false, true});
  }
}

TEST(Matrix, WhatDoesNotSuitFourWarpsIsEachWarps) {
  check_groups(DType::F16, 32, 32, 64, 2, true, {}, false);
  check_groups(DType::F16, 64, 32, 8, 2, true, {}, false);  // rows of less than 32 bytes
  check_groups(DType::F8E5M2, 32, 32, 64, 2, true, {}, false);
}

TEST(Matrix, WhatDoesNotSuitThemIsMultipliedByThreads) {
  check(DType::F16, 16, 8, 16, 2, 64, false);
  check(DType::F16, 8, 16, 16, 1, 64, false);
  check(DType::BF16, 16, 16, 12, 1, 64, false);
  check(DType::BF16, 13, 16, 16, 1, 64, false);
}

}  // namespace
}  // namespace weft::kernel::simd_test
