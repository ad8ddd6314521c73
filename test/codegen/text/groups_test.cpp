// Kernels of groups of threads printed as text and run on devices: work groups, shared memory, barriers. The interpreter
// runs the same kernel first and would refuse it for a race.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codegen/text/run.h"
#include "kernel/simt/lower.h"

namespace weft::codegen::groups_test {
namespace {

using test::HostBuffer;
using tile::Builder;
using tile::ValueId;

constexpr ssa::Buffer kIn = {DType::F32, ssa::Space::Memory, true, false, 0};
constexpr ssa::Buffer kOut = {DType::F32, ssa::Space::Memory, true, true, 0};

Machine device() {
  Machine m;
  m.has_fma = true;
  m.group_threads = 128;
  m.warp_threads = 32;
  m.shared_bytes = 32 << 10;
  return m;
}

class GroupText : public test::OnDevices {
 protected:
  void compare(const tile::Function& program, std::vector<std::vector<float>> data, std::vector<std::int64_t> sizes, std::int64_t grid);
};
INSTANTIATE_TEST_SUITE_P(Of, GroupText, test::languages(), test::language);

void GroupText::compare(const tile::Function& program, std::vector<std::vector<float>> data, std::vector<std::int64_t> sizes, std::int64_t grid) {
  const auto kernel = kernel::lower_simt(program, device());
  ASSERT_TRUE(kernel.ok()) << kernel.error().what();
  ASSERT_GT(kernel->threads, 1);
  auto expected = data;
  std::vector<kernel::BufferView> views;
  for (auto& d : expected) views.push_back({d.data(), static_cast<std::int64_t>(d.size())});
  const auto reference = kernel::interpret(*kernel, views, sizes, grid);
  ASSERT_TRUE(reference.ok()) << reference.error().what();
  std::vector<HostBuffer> buffers;
  for (auto& d : data) buffers.push_back({d.data(), d.size() * sizeof(float)});
  const auto status = test::run_on(*target_, *kernel, buffers, sizes, grid);
  ASSERT_TRUE(status.ok()) << status.error().what();
  EXPECT_EQ(*status, 0);
  for (std::size_t b = 0; b < data.size(); ++b) {
    for (std::size_t i = 0; i < data[b].size(); ++i) {
      ASSERT_NEAR(data[b][i], expected[b][i], 1e-5 * std::max(1.0f, std::fabs(expected[b][i])))
          << "element " << i << " of buffer " << b << "\n" << target_->print(std::span(&*kernel, 1)).value();
    }
  }
}

std::vector<float> numbers(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 16;
  return x;
}

ValueId flat(Builder& b, int rows, int cols) {
  return b.add(b.mul(b.iota(rows, 1, 0), b.constant_i64(cols)), b.iota(1, cols, 1));
}

TEST_P(GroupText, ThroughLocalMemory) {
  Builder b("reversed");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const int t = b.add_buffer({DType::F32, ssa::Space::OnChip, true, true, 256});
  const ValueId i = b.iota(1, 256, 1);
  b.store(t, b.load(x, i), i);
  b.store(y, b.load(t, b.sub(b.constant_i64(255), i)), i);
  compare(b.finish(), {numbers(256), numbers(256)}, {}, 1);
}

TEST_P(GroupText, BarriersInALoop) {
  Builder b("rotated");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const int t = b.add_buffer({DType::F32, ssa::Space::OnChip, true, true, 128});
  const ValueId i = b.iota(1, 128, 1), one = b.constant_i64(1);
  b.store(t, b.load(x, i), i);
  b.begin_for(b.constant_i64(0), b.size(b.add_size()), one, {});
  b.store(t, b.load(t, b.scalar(ScalarOp::Mod, {b.add(i, one), b.constant_i64(128)})), i);
  b.end_for({});
  b.store(y, b.load(t, i), i);
  compare(b.finish(), {numbers(128), numbers(128)}, {5}, 1);
}

// One row a program, any length: reductions over all threads in two loops, then the quotients.
TEST_P(GroupText, Softmax) {
  Builder b("softmax");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId n = b.size(b.add_size()), zero = b.constant_i64(0), step = b.constant_i64(128);
  const ValueId base = b.mul(b.program_id(), n), least = b.constant(DType::F32, -INFINITY);
  const auto block = [&](ValueId iv) {
    const ValueId c = b.add(iv, b.iota(1, 128, 1));
    return std::pair{b.add(base, c), b.lt(c, n)};
  };
  const auto first = b.begin_for(zero, n, step, {b.broadcast(least, 1, 1)});
  const auto [i, ok] = block(first.iv);
  const ValueId most = b.reduce(Combine::Max, b.select(ok, b.load(x, i, ok), least), 1);
  const ValueId m = b.end_for({b.scalar(ScalarOp::Max, {first.carried[0], most})})[0];
  const auto second = b.begin_for(zero, n, step, {b.broadcast(b.constant(DType::F32, 0), 1, 128)});
  const auto [j, ok2] = block(second.iv);
  const ValueId e = b.scalar(ScalarOp::Exp, {b.sub(b.load(x, j, ok2), m)});
  const ValueId s = b.end_for({b.add(second.carried[0], b.select(ok2, e, b.constant(DType::F32, 0)))})[0];
  const ValueId sum = b.reduce(Combine::Sum, s, 1);
  const auto third = b.begin_for(zero, n, step, {});
  const auto [l, ok3] = block(third.iv);
  b.store(y, b.scalar(ScalarOp::Div, {b.scalar(ScalarOp::Exp, {b.sub(b.load(x, l, ok3), m)}), sum}), l, ok3);
  b.end_for({});
  const tile::Function f = b.finish();
  for (const std::int64_t length : {7, 300}) compare(f, {numbers(3 * length), numbers(3 * length)}, {length}, 3);
}

TEST_P(GroupText, DotsAndTransposes) {
  Builder b("dot");
  const int x = b.add_buffer(kIn), w = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId at = flat(b, 32, 64);
  const ValueId left = b.transpose(b.load(x, flat(b, 16, 32)));
  b.store(y, b.dot(left, b.load(w, flat(b, 16, 64)), b.load(y, at)), at);
  compare(b.finish(), {numbers(16 * 32), numbers(16 * 64), numbers(32 * 64)}, {}, 1);
}

}  // namespace
}  // namespace weft::codegen::groups_test
