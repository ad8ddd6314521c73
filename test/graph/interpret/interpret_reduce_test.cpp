#include "support.h"

namespace weft::graph {
namespace {

using namespace testing;

Attrs axes(Sizes a) { return attrs({{Attr::Axes, list(std::move(a))}}); }

TEST(InterpretReduce, NanPropagates) {
  const Tensor x = f32({1, kNan, kInf});
  for (Op op : {Op::ReduceMax, Op::ReduceMin, Op::ReduceSum, Op::ReduceProd}) {
    expect_results(run(op, {x}, axes({0})), {of(DType::F32, {}, {kNan})});
  }
}

TEST(InterpretReduce, EmptyReductions) {
  const auto empty = [](Op op, DType t) { return run(op, {of(t, {0, 2}, {})}, axes({0})); };
  expect_results(empty(Op::ReduceSum, DType::F32), {f32({0, 0})});
  expect_results(empty(Op::ReduceProd, DType::I32), {i32({1, 1})});
  expect_results(empty(Op::ReduceMax, DType::F32), {f32({-kInf, -kInf})});
  expect_results(empty(Op::ReduceMin, DType::F16), {vec(DType::F16, {kInf, kInf})});
  expect_results(empty(Op::ReduceMax, DType::F8E4M3FN), {vec(DType::F8E4M3FN, {-448, -448})});
  expect_results(empty(Op::ReduceMax, DType::I64), {ints(DType::I64, {2}, {INT64_MIN, INT64_MIN})});
  expect_results(empty(Op::ReduceMin, DType::U8), {ints(DType::U8, {2}, {255, 255})});
  expect_results(empty(Op::ReduceMax, DType::Bool), {b8({0, 0})});
  expect_results(empty(Op::ReduceAnd, DType::I8), {ints(DType::I8, {2}, {-1, -1})});
  expect_results(empty(Op::ReduceAnd, DType::Bool), {b8({1, 1})});
  expect_results(empty(Op::ReduceOr, DType::U8), {ints(DType::U8, {2}, {0, 0})});
  expect_results(run(Op::ReduceSum, {of(DType::F32, {0, 2}, {})}, axes({1})), {f32({})});
}

TEST(InterpretReduce, WideAccumulation) {
  expect_results(run(Op::ReduceSum, {vec(DType::F16, {2048, 1, 1})}, axes({0})), {of(DType::F16, {}, {2050})});
  expect_results(run(Op::ReduceSum, {f32({16777216, 1, 1})}, axes({0})), {of(DType::F32, {}, {16777218})});
  expect_results(run(Op::ReduceSum, {ints(DType::I8, {2}, {100, 100})}, axes({0})), {ints(DType::I8, {}, {-56})});
  expect_results(run(Op::ReduceSum, {ints(DType::I64, {2}, {INT64_MAX, 1})}, axes({0})), {ints(DType::I64, {}, {INT64_MIN})});
}

TEST(InterpretReduce, SeveralAxesAndNone) {
  const Tensor x = of(DType::F32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_results(run(Op::ReduceSum, {x}, axes({0, 2})), {f32({14, 22})});
  expect_results(run(Op::ReduceSum, {x}, axes({0, 1, 2})), {of(DType::F32, {}, {36})});
  expect_results(run(Op::ReduceMax, {x}, axes({1})), {of(DType::F32, {2, 2}, {3, 4, 7, 8})});
}

Result<Tensors> arg(Op op, const Tensor& x, std::int64_t axis, bool last) {
  return run(op, {x}, attrs({{Attr::Axis, num(axis)}, {Attr::Last, flag(last)}}));
}

TEST(InterpretReduce, ArgReductions) {
  const Tensor x = f32({2, 5, 5, 1, 1}), with_nan = f32({2, kNan, 5, kNan});
  expect_results(arg(Op::ArgMax, x, 0, false), {of(DType::I64, {}, {1})});
  expect_results(arg(Op::ArgMax, x, 0, true), {of(DType::I64, {}, {2})});
  expect_results(arg(Op::ArgMin, x, 0, false), {of(DType::I64, {}, {3})});
  expect_results(arg(Op::ArgMin, x, 0, true), {of(DType::I64, {}, {4})});
  for (Op op : {Op::ArgMax, Op::ArgMin}) {
    expect_results(arg(op, with_nan, 0, false), {of(DType::I64, {}, {1})});
    expect_results(arg(op, with_nan, 0, true), {of(DType::I64, {}, {1})});
  }
  expect_results(arg(Op::ArgMax, of(DType::F32, {2, 2}, {1, 4, 3, 2}), 0, false), {i64({1, 0})});
  expect_error(arg(Op::ArgMax, of(DType::F32, {2, 0}, {}), 1, false), "empty-axis", "arg_max");
  expect_results(arg(Op::ArgMax, of(DType::F32, {0, 2}, {}), 1, false), {i64({})});
}

Result<Tensors> scan(Op op, const Tensor& x, bool exclusive, bool reverse) {
  return run(op, {x}, attrs({{Attr::Axis, num(0)}, {Attr::Exclusive, flag(exclusive)}, {Attr::Reverse, flag(reverse)}}));
}

TEST(InterpretReduce, Scans) {
  expect_results(scan(Op::CumSum, f32({1, 2, 3}), true, true), {f32({5, 3, 0})});
  expect_results(scan(Op::CumSum, f32({1, 2, 3}), false, true), {f32({6, 5, 3})});
  expect_results(scan(Op::CumSum, f32({5}), true, true), {f32({0})});
  expect_results(scan(Op::CumMax, f32({1, kNan, 2}), false, false), {f32({1, kNan, kNan})});
  expect_results(scan(Op::CumMin, i32({3, 1, 2}), true, false), {i32({INT32_MAX, 3, 1})});
  expect_results(scan(Op::CumProd, ints(DType::U8, {3}, {16, 16, 3}), false, false), {ints(DType::U8, {3}, {16, 0, 0})});
  expect_results(scan(Op::CumSum, f32({}), false, false), {f32({})});
}

Result<Tensors> sorted(const Tensor& x, bool descending) {
  return run(Op::Sort, {x}, attrs({{Attr::Axis, num(0)}, {Attr::Descending, flag(descending)}}));
}

TEST(InterpretReduce, SortIsStableAndNanIsLargest) {
  const Tensor x = f32({2, kNan, 1, 2, -kInf, kInf});
  expect_results(sorted(x, false), {f32({-kInf, 1, 2, 2, kInf, kNan}), i64({4, 2, 0, 3, 5, 1})});
  expect_results(sorted(x, true), {f32({kNan, kInf, 2, 2, 1, -kInf}), i64({1, 5, 0, 3, 2, 4})});
  expect_results(sorted(ints(DType::U64, {2}, {-1, 1}), false), {ints(DType::U64, {2}, {1, -1}), i64({1, 0})});
  expect_results(sorted(ints(DType::I4, {3}, {3, -8, 7}), false), {ints(DType::I4, {3}, {-8, 3, 7}), i64({1, 0, 2})});
  expect_results(sorted(f32({}), false), {f32({}), i64({})});
}

TEST(InterpretReduce, TopK) {
  const auto top = [](const Tensor& x, const Dim& k) {
    return run(Op::TopK, {x}, attrs({{Attr::Axis, num(0)}, {Attr::K, dims({k})}, {Attr::Descending, flag(true)}}));
  };
  expect_results(top(f32({1, 3, 3}), 2), {f32({3, 3}), i64({1, 2})});
  expect_results(top(f32({1, 3, 3}), 0), {f32({}), i64({})});
  EXPECT_FALSE(top(f32({1}), 2).ok());
}

}  // namespace
}  // namespace weft::graph
