#include <gtest/gtest.h>

#include "tile/tile.h"

namespace weft::tile {
namespace {

int count(const Function& f, Op op) {
  int n = 0;
  for (const ssa::Inst& inst : f.body.insts) n += inst.op == static_cast<std::uint16_t>(op) ? 1 : 0;
  return n;
}

TEST(TileBuilder, FoldsIndexArithmetic) {
  Builder b("f");
  const ValueId pid = b.program_id();
  const ValueId one = b.constant_i64(1), zero = b.constant_i64(0), four = b.constant_i64(4);
  EXPECT_EQ(b.mul(pid, one), pid);
  EXPECT_EQ(b.add(zero, pid), pid);
  EXPECT_EQ(b.mul(pid, zero), zero);
  EXPECT_EQ(b.sub(pid, pid), zero);
  EXPECT_EQ(b.add(b.add(pid, four), b.constant_i64(-4)), pid);
  EXPECT_EQ(b.mul(b.mul(pid, four), four), b.mul(pid, b.constant_i64(16)));
  EXPECT_EQ(b.add(b.add(pid, four), b.size(0)), b.add(b.add(pid, b.size(0)), four));
  EXPECT_EQ(b.sub(b.add(pid, four), four), pid);
  EXPECT_EQ(b.mul(b.add(pid, one), four), b.add(b.mul(pid, four), four));
  EXPECT_EQ(b.scalar(ScalarOp::FloorDiv, {pid, one}), pid);
  EXPECT_EQ(b.scalar(ScalarOp::Mod, {pid, one}), zero);
}

TEST(TileBuilder, FoldsConditions) {
  Builder b("f");
  const ValueId pid = b.program_id(), n = b.constant_i64(7);
  const ValueId in = b.lt(pid, n), yes = b.constant_i64(1, DType::Bool),
                no = b.constant_i64(0, DType::Bool);
  EXPECT_EQ(b.logical_and(in, yes), in);
  EXPECT_EQ(b.logical_and(no, in), no);
  EXPECT_EQ(b.scalar(ScalarOp::Or, {in, yes}), yes);
  EXPECT_EQ(b.select(yes, pid, n), pid);
  EXPECT_EQ(b.select(in, n, n), n);
  EXPECT_EQ(b.lt(b.constant_i64(3), n), yes);
  EXPECT_EQ(b.scalar(ScalarOp::Le, {pid, pid}), yes);
}

TEST(TileBuilder, KeepsFloatSemantics) {
  Builder b("f");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const ValueId x = b.load(in, b.constant_i64(0));
  const ValueId zero = b.constant(DType::F32, 0.0), minus_zero = b.constant(DType::F32, -0.0);
  EXPECT_NE(b.add(x, zero), x);  // -0 + 0 is 0
  EXPECT_EQ(b.add(x, minus_zero), x);
  EXPECT_EQ(b.sub(x, zero), x);
  EXPECT_NE(b.mul(x, zero), zero);
  EXPECT_EQ(b.mul(x, b.constant(DType::F32, 1)), x);
  EXPECT_NE(b.scalar(ScalarOp::Eq, {x, x}), b.constant_i64(1, DType::Bool));
}

TEST(TileBuilder, MergesAndKeepsTilesSmall) {
  Builder b("f");
  const ValueId stride = b.size(b.add_size());
  const ValueId row = b.iota(4, 16, 0), col = b.iota(4, 16, 1);
  const ValueId index = b.add(b.mul(row, stride), col);
  EXPECT_EQ(b.type(index), Type::tile(DType::I64, 4, 16));
  EXPECT_EQ(b.add(col, b.mul(stride, row)), index);
  EXPECT_EQ(b.iota(1, 16, 0), b.broadcast(b.constant_i64(0), 1, 16));
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  // The same element for all columns is read once for each row.
  const ValueId x = b.load(in, b.broadcast(b.iota(4, 1, 0), 4, 16));
  EXPECT_EQ(b.type(x), Type::tile(DType::F32, 4, 16));
  const Function f = b.finish();
  EXPECT_TRUE(verify(f).ok());
  for (const ssa::Inst& inst : f.body.insts) {
    if (inst.op == static_cast<std::uint16_t>(Op::Mul)) {
      EXPECT_EQ(f.type(inst.results[0]), Type::tile(DType::I64, 4, 1));
    }
    if (inst.op == static_cast<std::uint16_t>(Op::Load)) {
      EXPECT_EQ(f.type(inst.results[0]), Type::tile(DType::F32, 4, 1));
    }
  }
  EXPECT_EQ(count(f, Op::Mul), 1);
}

TEST(TileBuilder, ConstantMasksDisappear) {
  Builder b("f");
  const int out = b.add_buffer({DType::F32, ssa::Space::Memory, true, true, 0});
  const ValueId i = b.iota(1, 8, 1), yes = b.constant_i64(1, DType::Bool),
                no = b.constant_i64(0, DType::Bool);
  const ValueId x = b.load(out, i, yes);
  b.store(out, b.load(out, i, no), i, no);
  b.store(out, x, i, yes);
  b.check(yes, 1);
  const Function f = b.finish();
  EXPECT_EQ(count(f, Op::Load), 1);
  EXPECT_EQ(count(f, Op::Store), 1);
  EXPECT_EQ(count(f, Op::Check), 0);
}

TEST(TileBuilder, ValuesOfARegionStayInIt) {
  Builder b("f");
  const ValueId n = b.size(b.add_size()), zero = b.constant_i64(0), one = b.constant_i64(1);
  const auto loop = b.begin_for(zero, n, one, {zero});
  const ValueId twice = b.mul(n, b.constant_i64(2));
  b.end_for({b.add(loop.carried[0], twice)});
  EXPECT_NE(b.mul(n, b.constant_i64(2)), twice);
  EXPECT_TRUE(verify(b.finish()).ok());
}

TEST(TileVerify, RefusesWrongTypes) {
  Builder b("f");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const ValueId i = b.constant(DType::F32, 0);
  b.append1(static_cast<std::uint16_t>(Op::Load), {i}, Type::scalar(DType::F32), in);
  const auto result = verify(b.finish());
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("index is i64"), std::string::npos);
}

TEST(TileVerify, RefusesUndeclaredWrites) {
  Builder b("f");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  b.store(in, b.constant(DType::F32, 0), b.constant_i64(0));
  EXPECT_FALSE(verify(b.finish()).ok());
}

}  // namespace
}  // namespace weft::tile
