#include "support.h"

namespace weft::graph {
namespace {

using namespace testing;

Attrs pad_attrs(std::int64_t lo, std::int64_t hi, const char* mode) {
  return attrs({{Attr::Lo, dims({lo})}, {Attr::Hi, dims({hi})}, {Attr::Mode, text(mode)}});
}

TEST(InterpretMovement, PackedElementsMove) {
  const Tensor x = ints(DType::I4, {2, 3}, {1, 2, 3, -4, -5, -6});
  expect_results(run(Op::Transpose, {x}, attrs({{Attr::Axes, list({1, 0})}})),
                 {ints(DType::I4, {3, 2}, {1, -4, 2, -5, 3, -6})});
  expect_results(run(Op::Concat, {ints(DType::U2, {3}, {1, 2, 3}), ints(DType::U2, {2}, {0, 3})}, attrs({{Attr::Axis, num(0)}})),
                 {ints(DType::U2, {5}, {1, 2, 3, 0, 3})});
  expect_results(run(Op::Pad, {ints(DType::U4, {1}, {9}), ints(DType::U4, {}, {5})}, pad_attrs(1, 1, "constant")),
                 {ints(DType::U4, {3}, {5, 9, 5})});
  expect_results(run(Op::Reverse, {vec(DType::F4E2M1, {0.5, -6, 3})}, attrs({{Attr::Axes, list({0})}})),
                 {vec(DType::F4E2M1, {3, -6, 0.5})});
}

TEST(InterpretMovement, StringsAndComplexMove) {
  expect_results(run(Op::Gather, {strs({"a", "b", "c"}), i64({2, 0})}, attrs({{Attr::Axis, num(0)}})), {strs({"c", "a"})});
  expect_results(run(Op::Reverse, {strs({"a", "b"})}, attrs({{Attr::Axes, list({0})}})), {strs({"b", "a"})});
  const auto z = [](std::vector<WideComplex> v) { return narrow(DType::C128, {2}, v).value(); };
  expect_results(run(Op::Reverse, {z({{1, 2}, {3, 4}})}, attrs({{Attr::Axes, list({0})}})), {z({{3, 4}, {1, 2}})});
}

TEST(InterpretMovement, PadModes) {
  const Tensor x = f32({1, 2, 3}), zero = of(DType::F32, {}, {0});
  expect_results(run(Op::Pad, {x, zero}, pad_attrs(2, 1, "reflect")), {f32({3, 2, 1, 2, 3, 2})});
  expect_error(run(Op::Pad, {x, zero}, pad_attrs(3, 0, "reflect")), "bad-attribute", "reflect");
  expect_results(run(Op::Pad, {x, zero}, pad_attrs(2, 1, "edge")), {f32({1, 1, 1, 2, 3, 3})});
  expect_results(run(Op::Pad, {x, zero}, pad_attrs(4, 1, "wrap")), {f32({3, 1, 2, 3, 1, 2, 3, 1})});
  expect_results(run(Op::Pad, {f32({}), zero}, pad_attrs(1, 1, "constant")), {f32({0, 0})});
}

TEST(InterpretMovement, PadOfNothingByRepetitionIsAnError) {
  Graph g;
  const ValueId x = g.add_input({DType::F32, {Dim::symbol("n")}}), zero = g.add_input({DType::F32, {}});
  const NodeId node = g.add_node(Op::Pad, {x, zero}, pad_attrs(1, 0, "edge"), {},
                                 std::make_shared<Origin>(Origin{"case", ""})).value();
  g.set_outputs(g.node(node).results);
  expect_error(interpret(g, {f32({}), of(DType::F32, {}, {0})}), "empty-axis", "axis 0");
}

TEST(InterpretMovement, ReflectionBeyondTheAxisIsAnError) {
  Graph g;
  const ValueId x = g.add_input({DType::F32, {Dim::symbol("n")}}), zero = g.add_input({DType::F32, {}});
  const NodeId node = g.add_node(Op::Pad, {x, zero}, pad_attrs(2, 0, "reflect"), {},
                                 std::make_shared<Origin>(Origin{"case", ""})).value();
  g.set_outputs(g.node(node).results);
  expect_results(interpret(g, {f32({1, 2, 3}), of(DType::F32, {}, {0})}), {f32({3, 2, 1, 2, 3})});
  expect_error(interpret(g, {f32({1, 2}), of(DType::F32, {}, {0})}), "bad-attribute", "axis 0");
}

TEST(InterpretMovement, NothingMoves) {
  const Tensor x = of(DType::F32, {0, 3}, {});
  expect_results(run(Op::Transpose, {x}, attrs({{Attr::Axes, list({1, 0})}})), {of(DType::F32, {3, 0}, {})});
  expect_results(run(Op::Concat, {x, of(DType::F32, {1, 3}, {1, 2, 3})}, attrs({{Attr::Axis, num(0)}})),
                 {of(DType::F32, {1, 3}, {1, 2, 3})});
  expect_results(run(Op::Reshape, {x}, attrs({{Attr::Shape, dims({3, 0})}})), {of(DType::F32, {3, 0}, {})});
}

TEST(InterpretMovement, RankZero) {
  expect_results(run(Op::Broadcast, {of(DType::F32, {}, {4})}, attrs({{Attr::Shape, dims({2})}, {Attr::Axes, list({})}})),
                 {f32({4, 4})});
  expect_results(run(Op::Transpose, {of(DType::F32, {}, {4})}, attrs({{Attr::Axes, list({})}})), {of(DType::F32, {}, {4})});
}

// Sizes that only come out at run time.
TEST(InterpretMovement, SlicesBeyondTheEndAreAnError) {
  Graph g;
  const Dim n = Dim::symbol("n");
  g.facts.declare("n", {});
  const ValueId x = g.add_input({DType::F32, {n}}), y = g.add_input({DType::F32, {Dim::symbol("m")}});
  const NodeId node = g.add_node(Op::Slice, {y}, attrs({{Attr::Starts, dims({0})}, {Attr::Sizes, dims({n})}, {Attr::Steps, list({1})}}),
                                 {}, std::make_shared<Origin>(Origin{"case", ""})).value();
  g.set_outputs({g.node(node).results[0], x});
  expect_results(interpret(g, {f32({1}), f32({5, 6})}), {f32({5}), f32({1})});
  expect_error(interpret(g, {f32({1, 2, 3}), f32({5, 6})}), "slice-out-of-range", "axis 0 of extent 2");
}

TEST(InterpretMovement, IotaAndRandomBits) {
  const auto iota = [](DType t, Sizes shape, std::int64_t axis) {
    return run(Op::Iota, {}, attrs({{Attr::DType, type(t)}, {Attr::Shape, dims(Shape(shape.begin(), shape.end()))}, {Attr::Axis, num(axis)}}));
  };
  expect_results(iota(DType::F32, {2, 2}, 0), {of(DType::F32, {2, 2}, {0, 0, 1, 1})});
  expect_results(iota(DType::I4, {3}, 0), {ints(DType::I4, {3}, {0, 1, 2})});
  expect_results(iota(DType::F32, {0, 2}, 1), {of(DType::F32, {0, 2}, {})});
  // The published vector of Philox 4x32-10 for an all-zero counter and key.
  const auto bits = [](std::vector<std::int64_t> key, DType t) {
    return run(Op::RandomBits, {ints(DType::U64, {2}, key)}, attrs({{Attr::DType, type(t)}, {Attr::Shape, dims({1})}}));
  };
  expect_results(bits({0, 0}, DType::U64), {ints(DType::U64, {1}, {static_cast<std::int64_t>(0xe169c58d6627e8d5u)})});
}

}  // namespace
}  // namespace weft::graph
