#include "support.h"

namespace weft::graph {
namespace {

using namespace testing;

const Attrs kAxis0 = attrs({{Attr::Axis, num(0)}});

TEST(InterpretIndexing, IndicesOutOfRangeAreNamed) {
  const Tensor x = f32({1, 2, 3});
  expect_error(run(Op::Gather, {x, i64({3})}, kAxis0), "index-out-of-range",
               "gather: index 3 is out of range on axis 0 of extent 3");
  expect_error(run(Op::Gather, {x, i64({-4})}, kAxis0), "index-out-of-range", "index -4");
  expect_error(run(Op::GatherElements, {x, i32({7})}, kAxis0), "index-out-of-range", "index 7");
  expect_error(run(Op::GatherNd, {x, of(DType::I64, {1, 1}, {3})}, attrs({{Attr::Batch, num(0)}})), "index-out-of-range");
  expect_error(run(Op::ScatterElements, {x, i64({5}), f32({1})}, attrs({{Attr::Axis, num(0)}, {Attr::Combine, text("none")}})),
               "index-out-of-range", "scatter_elements: index 5");
  expect_error(run(Op::ScatterNd, {x, of(DType::I64, {1, 1}, {-4}), f32({1})}, attrs({{Attr::Combine, text("add")}})),
               "index-out-of-range", "axis 0 of extent 3");
  expect_error(run(Op::Gather, {of(DType::F32, {0}, {}), i64({0})}, kAxis0), "index-out-of-range", "extent 0");
}

TEST(InterpretIndexing, GatherShapes) {
  const Tensor x = of(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  expect_results(run(Op::Gather, {x, of(DType::I32, {}, {1})}, kAxis0), {f32({4, 5, 6})});
  expect_results(run(Op::Gather, {x, of(DType::I64, {1, 2}, {0, 0})}, attrs({{Attr::Axis, num(1)}})),
                 {of(DType::F32, {2, 1, 2}, {1, 1, 4, 4})});
  expect_results(run(Op::Gather, {x, i64({})}, kAxis0), {of(DType::F32, {0, 3}, {})});
}

TEST(InterpretIndexing, GatherNdWithBatchAndSlices) {
  const Tensor x = of(DType::F32, {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_results(run(Op::GatherNd, {x, of(DType::I64, {2, 1}, {1, 0})}, attrs({{Attr::Batch, num(1)}})),
                 {of(DType::F32, {2, 2}, {2, 3, 4, 5})});
  expect_results(run(Op::GatherNd, {x, of(DType::I64, {1, 2}, {0, 1})}, attrs({{Attr::Batch, num(0)}})),
                 {of(DType::F32, {1, 2}, {2, 3})});
}

TEST(InterpretIndexing, ScatterCombines) {
  const Tensor x = f32({1, 2, 3}), at = i64({0, 0, 2});
  const auto scatter = [&](const char* how, const Tensor& u) {
    return run(Op::ScatterElements, {x, at, u}, attrs({{Attr::Axis, num(0)}, {Attr::Combine, text(how)}}));
  };
  const Tensor updates = f32({5, 0.5, kNan});
  expect_results(scatter("none", updates), {f32({0.5, 2, kNan})});
  expect_results(scatter("add", updates), {f32({6.5, 2, kNan})});
  expect_results(scatter("mul", updates), {f32({2.5, 2, kNan})});
  expect_results(scatter("max", updates), {f32({5, 2, kNan})});
  expect_results(scatter("min", updates), {f32({0.5, 2, kNan})});
}

TEST(InterpretIndexing, ScatterNdSlicesAndOtherDTypes) {
  expect_results(run(Op::ScatterNd, {of(DType::F32, {2, 2}, {1, 2, 3, 4}), of(DType::I64, {1, 1}, {-1}), of(DType::F32, {1, 2}, {8, 9})},
                     attrs({{Attr::Combine, text("none")}})),
                 {of(DType::F32, {2, 2}, {1, 2, 8, 9})});
  expect_results(run(Op::ScatterElements, {strs({"a", "b"}), i64({1}), strs({"z"})},
                     attrs({{Attr::Axis, num(0)}, {Attr::Combine, text("none")}})),
                 {strs({"a", "z"})});
  expect_results(run(Op::ScatterElements, {ints(DType::I4, {3}, {1, 2, 3}), i64({1}), ints(DType::I4, {1}, {-8})},
                     attrs({{Attr::Axis, num(0)}, {Attr::Combine, text("add")}})),
                 {ints(DType::I4, {3}, {1, -6, 3})});
}

}  // namespace
}  // namespace weft::graph
