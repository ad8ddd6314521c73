// Kernels printed as text and run on devices, against the interpreter: OpenCL C on PoCL, WGSL wherever WebGPU finds an
// adapter.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "codegen/text/run.h"
#include "tile/tile.h"

namespace weft::codegen::test {
namespace {

using kernel::Builder;
using ssa::Type;
using ssa::ValueId;

struct Data {
  DType dtype;
  std::vector<std::uint64_t> words;
  std::int64_t elements;
};

Data zeros(DType t, std::int64_t n) {
  return {t, std::vector<std::uint64_t>((n * bits(t) + 63) / 64 + 1), n};
}

Data random_data(DType t, std::int64_t n, double lo = -4, double hi = 4) {
  static std::mt19937_64 random(7);
  std::uniform_real_distribution<double> real(lo, hi);
  Data d = zeros(t, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = real(random);
    store_scalar(t, d.words.data(), i, {v, static_cast<std::int64_t>(v)});
  }
  return d;
}

class KernelText : public OnDevices {
 protected:
  void compare(const kernel::Function& f, std::vector<Data> data, std::vector<std::int64_t> sizes, std::int64_t grid, double tolerance = 0);
  void compare_ops(std::span<const ScalarOp> ops, DType t, int lanes, double lo = -4, double hi = 4);
  // Whether `fma` rounds once; WebGPU need not.
  bool fused() const { return std::string(GetParam()) != "webgpu"; }
};
INSTANTIATE_TEST_SUITE_P(Of, KernelText, languages(), language);

// Runs both ways and compares every buffer; `tolerance` is relative to max(1, |x|).
void KernelText::compare(const kernel::Function& f, std::vector<Data> data, std::vector<std::int64_t> sizes, std::int64_t grid, double tolerance) {
  const auto source = target_->print(std::span(&f, 1));
  ASSERT_TRUE(source.ok()) << source.error().what();
  std::vector<Data> expected = data;
  std::vector<kernel::BufferView> views;
  std::vector<HostBuffer> buffers;
  for (Data& d : expected) views.push_back({d.words.data(), d.elements});
  for (Data& d : data) buffers.push_back({d.words.data(), d.words.size() * 8});
  const auto reference = kernel::interpret(f, views, sizes, grid);
  ASSERT_TRUE(reference.ok()) << reference.error().what();
  const auto status = run_on(*target_, f, buffers, sizes, grid);
  ASSERT_TRUE(status.ok()) << status.error().what();
  EXPECT_EQ(*status, 0);
  for (std::size_t b = 0; b < data.size(); ++b) {
    for (std::int64_t i = 0; i < data[b].elements; ++i) {
      const double x = load_f64(data[b].dtype, data[b].words.data(), i);
      const double y = load_f64(data[b].dtype, expected[b].words.data(), i);
      if (std::isnan(y) ? std::isnan(x) : x == y) continue;
      ASSERT_LE(std::fabs(x - y), tolerance * std::max(1.0, std::fabs(y)))
          << f.name << ": element " << i << " of buffer " << b << " is " << x << ", not " << y
          << "\n"
          << *source;
    }
  }
}

int input(Builder& b, DType t = DType::F32) {
  return b.add_buffer({t, ssa::Space::Memory, true, false, 0});
}
int output(Builder& b, DType t = DType::F32) {
  return b.add_buffer({t, ssa::Space::Memory, false, true, 0});
}

// Every op of the list on the same operands, `lanes` lanes a program, each with its own output: one
// program to compile.
void KernelText::compare_ops(std::span<const ScalarOp> ops, DType t, int lanes, double lo, double hi) {
  constexpr std::size_t kMost = 24;  // results of a kernel: devices have so many buffers
  if (ops.size() > kMost) {
    compare_ops(ops.subspan(kMost), t, lanes, lo, hi);
    ops = ops.first(kMost);
  }
  Builder b("ops");
  const int width = std::max(lanes, 1);
  std::vector<int> in = {input(b, t), input(b, t), input(b, t)};
  const ValueId at = b.mul(b.program_id(), b.constant_i64(width));
  std::vector<ValueId> x;
  for (int i : in) x.push_back(b.load(i, at, lanes));
  std::vector<Data> data;
  for (int i = 0; i < 3; ++i) data.push_back(random_data(t, width * 24, lo, hi));
  for (ScalarOp op : ops) {
    const DType result = info(op).result == ScalarResult::Bool ? DType::Bool : t;
    b.store(output(b, result), b.scalar(op, {x.begin(), x.begin() + info(op).operands}), at);
    data.push_back(zeros(result, width * 24));
  }
  SCOPED_TRACE(std::string(name(t)) + " by " + std::to_string(lanes));
  // The interpreter evaluates the op itself, the text its expansion.
  compare(b.finish(), data, {}, 24, is_float(t) ? (t == DType::F32 ? 1e-6 : 1e-14) : 0);
}

std::vector<ScalarOp> all_ops(DType t) {
  std::vector<ScalarOp> ops;
  for (int i = 0; i < scalar_op_count(); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    const bool own =
        info(op).result == ScalarResult::Cast || info(op).result == ScalarResult::Select;
    if (accepts(op, t) && !own) ops.push_back(op);
  }
  return ops;
}

TEST_P(KernelText, EveryFloatOp) { compare_ops(all_ops(DType::F32), DType::F32, 8); }

TEST_P(KernelText, LargeNumbersOfF64) {
  const ScalarOp ops[] = {ScalarOp::Ceil, ScalarOp::Floor, ScalarOp::Round, ScalarOp::Trunc};
  compare_ops(ops, DType::F64, 4, -1e12, 1e12);
  Builder b("remainders");  // quotients of more than 24 bits
  const ValueId x = b.load(input(b, DType::F64), b.program_id(), 1), y = b.load(input(b, DType::F64), b.program_id(), 1);
  b.store(output(b, DType::F64), b.scalar(ScalarOp::Fmod, {x, y}), b.program_id());
  compare(b.finish(), {random_data(DType::F64, 24, -1e300, 1e300), random_data(DType::F64, 24), zeros(DType::F64, 24)}, {}, 24);
}

TEST_P(KernelText, EveryIntegerOp) {
  for (DType t : {DType::I32, DType::I64, DType::U8, DType::I16}) {
    compare_ops(all_ops(t), t, 4, is_signed_int(t) ? -40 : 0, 40);
  }
}

TEST_P(KernelText, EveryWidth) {
  for (int lanes : {0, 7, 33}) {
    compare_ops(std::vector{ScalarOp::Add, ScalarOp::Lt, ScalarOp::Max}, DType::F64, lanes);
    compare_ops(std::vector{ScalarOp::Max, ScalarOp::Div}, DType::I64, lanes, -1e6, 1e6);
  }
}

TEST_P(KernelText, EveryCast) {
  const DType types[] = {DType::Bool, DType::I8,  DType::U8,   DType::I16, DType::I32, DType::U32,
                         DType::I64,  DType::F16, DType::BF16, DType::F32, DType::F64};
  for (DType from : types) {
    Builder b("cast");
    const ValueId at = b.mul(b.program_id(), b.constant_i64(4));
    const ValueId x = b.load(input(b, from), at, 4);
    const double lo = is_float(from) || is_signed_int(from) ? -200 : 0;
    std::vector<Data> data = {random_data(from, 64, lo, 400)};
    for (DType to : types) {
      b.store(output(b, to), b.cast(x, to), at);
      data.push_back(zeros(to, 64));
      if (bits(from) != bits(to) || is_bool(to)) continue;  // no byte but 0 and 1 is a bool
      b.store(output(b, to), b.bitcast(x, to), at);
      data.push_back(zeros(to, 64));
    }
    SCOPED_TRACE(std::string("from ") + name(from));
    compare(b.finish(), data, {}, 16, from == DType::F64 ? 1e-2 : 0);
  }
}

// Rows of n, one program each, in chunks of 8 lanes with a masked tail.
TEST_P(KernelText, Softmax) {
  Builder b("softmax");
  const int in = input(b), out = output(b);
  const ValueId n = b.size(b.add_size());
  const ValueId zero = b.constant_i64(0), step = b.constant_i64(8);
  const ValueId row = b.mul(b.program_id(), n);
  const auto lanes_at = [&](ValueId iv) { return b.add(b.splat(iv, 8), b.iota(DType::I64, 8)); };
  const auto mask_at = [&](ValueId iv) {
    return b.scalar(ScalarOp::Lt, {lanes_at(iv), b.splat(n, 8)});
  };
  const ValueId lowest = b.splat(b.constant(DType::F32, -INFINITY), 8);
  auto loop = b.begin_for(zero, n, step, {lowest});
  ValueId mask = mask_at(loop.iv);
  ValueId x = b.load(in, b.add(row, loop.iv), 8, mask);
  const ValueId largest =
      b.end_for({b.scalar(ScalarOp::Max, {loop.carried[0], b.select(mask, x, lowest)})})[0];
  const ValueId top = b.splat(b.reduce(Combine::Max, largest), 8);
  const ValueId none = b.splat(b.constant(DType::F32, 0), 8);
  loop = b.begin_for(zero, n, step, {none});
  mask = mask_at(loop.iv);
  const auto e = [&](ValueId iv) {
    return b.scalar(ScalarOp::Exp, {b.sub(b.load(in, b.add(row, iv), 8, mask), top)});
  };
  const ValueId sum = b.end_for({b.add(loop.carried[0], b.select(mask, e(loop.iv), none))})[0];
  const ValueId total = b.splat(b.reduce(Combine::Sum, sum), 8);
  loop = b.begin_for(zero, n, step, {});
  mask = mask_at(loop.iv);
  b.store(out, b.scalar(ScalarOp::Div, {e(loop.iv), total}), b.add(row, loop.iv), mask);
  b.end_for({});
  compare(b.finish(), {random_data(DType::F32, 5 * 29), zeros(DType::F32, 5 * 29)}, {29}, 5, 1e-6);
}

// C[pid, 0:16] = A[pid, :] B[:, 0:16]
TEST_P(KernelText, Dot) {
  Builder b("dot");
  const int lhs = input(b), rhs = input(b), out = output(b);
  const ValueId k = b.size(b.add_size());
  const ValueId pid = b.program_id();
  const auto loop = b.begin_for(b.constant_i64(0), k, b.constant_i64(1),
                                {b.splat(b.constant(DType::F32, 0), 16)});
  const ValueId a = b.splat(b.load(lhs, b.add(b.mul(pid, k), loop.iv), 0), 16);
  const ValueId row = b.load(rhs, b.mul(loop.iv, b.constant_i64(16)), 16);
  const ValueId sum = b.end_for({b.scalar(ScalarOp::Fma, {a, row, loop.carried[0]})})[0];
  b.store(out, sum, b.mul(pid, b.constant_i64(16)));
  compare(b.finish(),
          {random_data(DType::F32, 9 * 20), random_data(DType::F32, 20 * 16),
           zeros(DType::F32, 9 * 16)},
          {20}, 9, fused() ? 0 : 1e-5);
}

TEST_P(KernelText, DotsOfBytes) {
  for (const int lanes : {1, 3, 16, 32}) {
    Builder b("k");
    const int x = b.add_buffer({DType::U8, ssa::Space::Memory, true, false, 0}), w = b.add_buffer({DType::I8, ssa::Space::Memory, true, false, 0});
    const int y = b.add_buffer({DType::I32, ssa::Space::Memory, true, true, 0});
    const ValueId zero = b.constant_i64(0);
    const ValueId sum = b.load(y, zero, lanes == 1 ? 0 : lanes);
    b.store(y, b.dot4(b.words(b.load(x, zero, 4 * lanes)), b.words(b.load(w, zero, 4 * lanes)), sum), zero);
    Data sums = random_data(DType::I32, lanes, -2e9, 2e9);
    store_scalar(DType::I32, sums.words.data(), 0, {0, INT32_MAX});
    compare(b.finish(), {random_data(DType::U8, 4 * lanes, 0, 256), random_data(DType::I8, 4 * lanes, -128, 128), sums}, {}, 1);
  }
}

TEST_P(KernelText, DotsOfPairs) {
  for (const int lanes : {1, 3, 16, 32}) {
    Builder b("k");
    const int x = b.add_buffer({DType::BF16, ssa::Space::Memory, true, false, 0}), w = b.add_buffer({DType::BF16, ssa::Space::Memory, true, false, 0});
    const int y = b.add_buffer({DType::F32, ssa::Space::Memory, true, true, 0});
    const ValueId zero = b.constant_i64(0);
    const ValueId sum = b.load(y, zero, lanes == 1 ? 0 : lanes);
    b.store(y, b.dot2(b.words(b.load(x, zero, 2 * lanes)), b.words(b.load(w, zero, 2 * lanes)), sum), zero);
    compare(b.finish(), {random_data(DType::BF16, 2 * lanes), random_data(DType::BF16, 2 * lanes), random_data(DType::F32, lanes)}, {}, 1);
  }
}

TEST_P(KernelText, GatherScatterAndInsert) {
  Builder b("gather");
  const int in = input(b), index = input(b, DType::I32), out = output(b);
  const ValueId at = b.mul(b.program_id(), b.constant_i64(8));
  const ValueId i = b.cast(b.load(index, at, 8), DType::I64);
  const ValueId ok = b.scalar(ScalarOp::Ge, {i, b.splat(b.constant_i64(0), 8)});
  const ValueId x = b.insert(b.gather(in, i, ok), b.constant(DType::F32, 3), 5);
  const ValueId back = b.sub(b.splat(b.add(at, b.constant_i64(7)), 8), b.iota(DType::I64, 8));
  b.scatter(out, x, back);
  compare(
      b.finish(),
      {random_data(DType::F32, 50), random_data(DType::I32, 32, -10, 49), zeros(DType::F32, 32)},
      {}, 4);
}

TEST_P(KernelText, ReductionsOfEveryKind) {
  for (DType t : {DType::F32, DType::I32, DType::U8, DType::Bool}) {
    Builder b("reduce");
    const ValueId pid = b.program_id();
    const ValueId x = b.load(input(b, t), b.mul(pid, b.constant_i64(13)), 13);
    std::vector<Data> data = {random_data(t, 13 * 8, 0, 3)};
    for (Combine c :
         {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min, Combine::And, Combine::Or}) {
      if (is_float(t) && (c == Combine::And || c == Combine::Or)) continue;
      b.store(output(b, t), b.reduce(c, x), pid);
      data.push_back(zeros(t, 8));
    }
    SCOPED_TRACE(name(t));
    compare(b.finish(), data, {}, 8);
  }
}

TEST_P(KernelText, BranchesAndOnChipMemory) {
  Builder b("branch");
  const int in = input(b), out = output(b);
  const int tile = b.add_buffer({DType::F32, ssa::Space::OnChip, true, true, 4});
  const ValueId pid = b.program_id(), zero = b.constant_i64(0), four = b.constant_i64(4);
  b.store(tile, b.load(in, b.mul(pid, four), 4), zero);
  const auto loop = b.begin_for(zero, four, b.constant_i64(1),
                                {b.constant(DType::F32, 0), b.constant(DType::F32, 1)});
  const ValueId x = b.load(tile, loop.iv, 0);
  b.begin_if(b.scalar(ScalarOp::Gt, {x, b.constant(DType::F32, 0)}), {Type::scalar(DType::F32)});
  b.begin_else({b.mul(x, x)});
  const ValueId y = b.end_if({b.constant(DType::F32, -1)})[0];
  const auto r = b.end_for({loop.carried[1], b.add(loop.carried[0], y)});
  b.store(out, b.sub(r[0], r[1]), pid);
  compare(b.finish(), {random_data(DType::F32, 40), zeros(DType::F32, 10)}, {}, 10);
}

TEST_P(KernelText, ChecksSetTheStatus) {
  Builder b("check");
  const ValueId n = b.splat(b.size(b.add_size()), 4);
  b.check(b.scalar(ScalarOp::Lt, {b.iota(DType::I64, 4), n}), 9);
  const kernel::Function f = b.finish();
  EXPECT_EQ(run_on(*target_, f, {}, {4}, 1).value(), 0);
  EXPECT_EQ(run_on(*target_, f, {}, {3}, 1).value(), 9);
}

TEST_P(KernelText, RefusesWhatItHasNoTypeFor) {
  Builder b("packed");
  const int in = input(b, DType::I4), out = output(b, DType::I4);
  b.store(out, b.load(in, b.program_id(), 0), b.program_id());
  const kernel::Function f = b.finish();
  const auto source = target_->print(std::span(&f, 1));
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().kind(), ErrorKind::Unsupported);
  EXPECT_THAT(source.error().message(), testing::HasSubstr("i4"));
}

TEST_P(KernelText, Atomics) {
  for (const DType t : {DType::I32, DType::U32, DType::F32, DType::I64}) {
    for (const Combine how : {Combine::Sum, Combine::Max, Combine::Min}) {
      if (!tile::atomic_on(t, how)) continue;
      Builder b("histogram");
      const int x = input(b, t), y = b.add_buffer({t, ssa::Space::Memory, true, true, 0});
      const ValueId lane = b.iota(DType::I64, 4), width = b.constant_i64(4);
      const ValueId at = b.add(b.splat(b.mul(b.program_id(), width), 4), lane);
      const ValueId place = b.scalar(ScalarOp::Mod, {at, b.splat(b.constant_i64(3), 4)});
      const ValueId mask = b.scalar(ScalarOp::Lt, {at, b.splat(b.constant_i64(18), 4)});
      b.atomic(how, y, b.gather(x, at, mask), place, mask);
      Data values = zeros(t, 18);
      for (int k = 0; k < 18; ++k) store_scalar(t, values.words.data(), k, {k * 5 % 7 * 1.0, k * 5 % 7});
      compare(b.finish(), {values, zeros(t, 3)}, {}, 5);
    }
  }
}

}  // namespace
}  // namespace weft::codegen::test
