#include "kernel/simd/differential.h"

namespace weft::kernel::simd_test {
namespace {

int count_lowered(const tile::Function& f, Op op) {
  const auto lowered = lower_simd(f, machine_of(64));
  return count(lowered->body, op);
}

TEST(SimdMemory, GatherThroughIndices) {
  Builder b("f");
  const int x = b.add_buffer(kIn), indices = b.add_buffer(in_buffer(DType::I64)),
            y = b.add_buffer(kOut);
  const ValueId n = b.size(b.add_size());
  const ValueId i = b.add(b.mul(b.program_id(), b.constant_i64(16)), b.iota(1, 16, 1)),
                mask = b.lt(i, n);
  b.store(y, b.load(x, b.load(indices, i, mask), mask), i, mask);
  Case c{{50, 37, 37}, {37}, 3};
  c.fill = [](std::vector<Bytes>& bytes) {
    for (int k = 0; k < 37; ++k) store_i64(DType::I64, bytes[1].payload(), k, k * 17 % 50);
  };
  differential(b.finish(), c);
}

TEST(SimdMemory, RowsThroughIndices) {  // an embedding: contiguous rows at loaded places
  Builder b("f");
  const int x = b.add_buffer(kIn), indices = b.add_buffer(in_buffer(DType::I64)),
            y = b.add_buffer(kOut);
  const ValueId row = b.load(indices, b.program_id()), col = b.iota(1, 32, 1),
                width = b.constant_i64(32);
  b.store(y, b.load(x, b.add(b.mul(row, width), col)), b.add(b.mul(b.program_id(), width), col));
  const tile::Function f = b.finish();
  Case c{{5 * 32, 3, 3 * 32}, {}, 3};
  c.fill = [](std::vector<Bytes>& bytes) {
    for (int k = 0; k < 3; ++k) store_i64(DType::I64, bytes[1].payload(), k, 4 - 2 * k);
  };
  differential(f, c);
  EXPECT_EQ(count_lowered(f, Op::Gather), 0);
}

TEST(SimdMemory, StridedAndReversed) {
  for (const int stride : {0, 2, 3, -1}) {
    SCOPED_TRACE(stride);
    Builder b("f");
    const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
    const ValueId i = b.iota(1, 16, 1);
    b.store(y, b.load(x, b.add(b.mul(i, b.constant_i64(stride)), b.constant_i64(20))), i);
    differential(b.finish(), {{80, 16}});
  }
}

TEST(SimdMemory, StridedStores) {
  for (const int stride : {0, 2, -1}) {  // stride 0: the last lane stays
    SCOPED_TRACE(stride);
    Builder b("f");
    const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
    const ValueId i = b.iota(1, 16, 1), keep = b.lt(i, b.size(b.add_size()));
    b.store(y, b.load(x, i), b.add(b.mul(i, b.constant_i64(stride)), b.constant_i64(20)), keep);
    Case c{{16, 80}, {11}};
    c.groups = stride != 0;
    differential(b.finish(), c);
  }
}

TEST(SimdMemory, TransposedCopy) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId m = b.size(b.add_size()), n = b.size(b.add_size());
  const ValueId r = b.iota(5, 16, 0), c = b.iota(5, 16, 1);
  const ValueId ok = b.logical_and(b.lt(r, m), b.lt(c, n));
  const ValueId v = b.load(x, b.add(b.mul(r, n), c), ok);
  const ValueId rt = b.iota(16, 5, 0), ct = b.iota(16, 5, 1);
  b.store(y, b.transpose(v), b.add(b.mul(rt, m), ct), b.logical_and(b.lt(rt, n), b.lt(ct, m)));
  const tile::Function f = b.finish();
  differential(f, {{5 * 16, 5 * 16}, {5, 16}});
  differential(f, {{3 * 11, 3 * 11}, {3, 11}});
}

// A reshape read: row and column of a flat index come back as div and mod, which stay scalar where
// they can.
TEST(SimdMemory, DivisionsThatBlocksAlignWith) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId d = b.constant_i64(64),
                i = b.add(b.mul(b.program_id(), b.constant_i64(16)), b.iota(1, 16, 1));
  const ValueId row = b.scalar(ScalarOp::FloorDiv, {i, d}), col = b.scalar(ScalarOp::Mod, {i, d});
  b.store(y, b.load(x, b.add(b.mul(row, b.constant_i64(100)), col)), i);
  const tile::Function f = b.finish();
  differential(f, {{300, 192}, {}, 12});
  EXPECT_EQ(count_lowered(f, Op::Gather), 0);
}

TEST(SimdMemory, DivisionsThatBlocksCross) {
  for (const int d : {5, 7, 16, 24}) {
    SCOPED_TRACE(d);
    Builder b("f");
    const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
    const ValueId i =
        b.sub(b.add(b.mul(b.program_id(), b.constant_i64(48)),
                    b.add(b.iota(2, 16, 1), b.mul(b.iota(2, 16, 0), b.constant_i64(8)))),
              b.constant_i64(24));
    const ValueId row = b.scalar(ScalarOp::FloorDiv, {i, b.constant_i64(d)}),
                  col = b.scalar(ScalarOp::Mod, {i, b.constant_i64(d)});
    const ValueId at = b.add(b.mul(b.add(row, b.constant_i64(5)), b.constant_i64(30)), col);
    const ValueId to = b.add(b.mul(b.program_id(), b.constant_i64(32)),
                             b.add(b.iota(2, 16, 1), b.mul(b.iota(2, 16, 0), b.constant_i64(16))));
    b.store(y, b.load(x, at), to);
    differential(b.finish(), {{1200, 96}, {}, 3});
  }
}

TEST(SimdMemory, ScalarsUnderAMask) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId n = b.size(b.add_size());
  const ValueId row = b.add(b.mul(b.program_id(), b.constant_i64(3)), b.iota(3, 1, 0)),
                ok = b.lt(row, n);
  const ValueId one = b.lt(b.program_id(), n);
  b.store(y, b.add(b.load(x, row, ok), b.load(x, b.program_id(), one)), row, ok);
  const tile::Function f = b.finish();
  differential(f, {{8, 8}, {8}, 3});
  differential(f, {{0, 0}, {0}, 2});
}

TEST(SimdMemory, OnChipScratch) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const int chip = b.add_buffer({DType::F32, ssa::Space::OnChip, true, true, 32});
  const ValueId c = b.iota(1, 32, 1);
  b.store(chip, b.load(x, c), c);
  b.store(y, b.load(chip, b.sub(b.constant_i64(31), c)), c);
  differential(b.finish(), {{32, 32}});
}

TEST(SimdMemory, AtomicsOfLanesThatMeet) {
  for (const DType t : {DType::I32, DType::U64, DType::F32}) {
    for (const Combine how : {Combine::Sum, Combine::Max, Combine::Min}) {
      if (!tile::atomic_on(t, how)) continue;
      for (const int cols : {1, 5, 16}) {
        SCOPED_TRACE(std::string(name(t)) + " " + std::to_string(cols));
        Builder b("f");
        const int x = b.add_buffer(in_buffer(t)), places = b.add_buffer(in_buffer(DType::I64)),
                  y = b.add_buffer(out_buffer(t)), before = b.add_buffer(out_buffer(t));
        const ValueId n = b.size(b.add_size()), width = b.constant_i64(cols);
        const ValueId i = b.add(b.mul(b.program_id(), width), b.iota(2, cols, 1)), mask = b.lt(i, n);
        const ValueId old = b.atomic(how, y, b.load(x, i, mask), b.load(places, i, mask), mask);
        b.store(before, old, b.add(i, b.mul(b.iota(2, cols, 0), b.constant_i64(64))), mask);
        Case c{{37, 37, 4, 128}, {37}, (37 + cols - 1) / cols};
        c.special = false;
        c.fill = [](std::vector<Bytes>& bytes) {
          for (int k = 0; k < 37; ++k) store_i64(DType::I64, bytes[1].payload(), k, k * 7 % 4);
        };
        differential(b.finish(), c);
      }
    }
  }
}

}  // namespace
}  // namespace weft::kernel::simd_test
