#include "support.h"

namespace weft::graph {
namespace {

const Dim kFound = Dim::symbol("n");

using namespace testing;

std::shared_ptr<Origin> origin() { return std::make_shared<Origin>(Origin{"case", "Case"}); }

// while (carried < limit) carried *= 2, at most `trips` times; stacks the values before.
Result<Tensors> doubling(std::int64_t trips, bool go, float start) {
  auto body = std::make_shared<Graph>();
  body->add_input({DType::I64, {}});
  body->add_input({DType::Bool, {}});
  const ValueId x = body->add_input({DType::F32, {}}), limit = body->add_input({DType::F32, {}});
  const NodeId sum = body->add_node(Op::Add, {x, x}, {}).value();
  const ValueId next = body->node(sum).results[0];
  const NodeId test = body->add_node(Op::Lt, {next, limit}, {}).value();
  body->set_outputs({body->node(test).results[0], next, x});
  return run(Op::Loop,
             {ints(DType::I64, {}, {trips}), ints(DType::Bool, {}, {go}), of(DType::F32, {}, {start}), of(DType::F32, {}, {100})},
             attrs({{Attr::Carried, num(1)}, {Attr::Symbol, dims({kFound})}}), {body});
}

TEST(InterpretControl, LoopsStopByCountOrCondition) {
  expect_results(doubling(3, true, 1), {of(DType::F32, {}, {8}), f32({1, 2, 4})});
  expect_results(doubling(100, true, 30), {of(DType::F32, {}, {120}), f32({30, 60})});
  expect_results(doubling(0, true, 1), {of(DType::F32, {}, {1}), f32({})});
  expect_results(doubling(-5, true, 1), {of(DType::F32, {}, {1}), f32({})});
  expect_results(doubling(5, false, 1), {of(DType::F32, {}, {1}), f32({})});
}

TEST(InterpretControl, ScanOverNothing) {
  auto body = std::make_shared<Graph>();
  const ValueId carried = body->add_input({DType::F32, {}}), x = body->add_input({DType::F32, {2}});
  body->set_outputs({carried, x});
  expect_results(run(Op::Scan, {of(DType::F32, {}, {4}), of(DType::F32, {0, 2}, {})},
                     attrs({{Attr::Carried, num(1)}, {Attr::Xs, num(1)}}), {body}),
                 {of(DType::F32, {}, {4}), of(DType::F32, {0, 2}, {})});
}

TEST(InterpretControl, RegionsNestOnlySoDeep) {
  std::shared_ptr<const Graph> inner = [] {
    auto g = std::make_shared<Graph>();
    g->set_outputs({g->add_input({DType::F32, {1}})});
    return g;
  }();
  for (int i = 0; i < 200; ++i) {
    auto g = std::make_shared<Graph>();
    const ValueId x = g->add_input({DType::F32, {1}});
    const auto node = g->add_node(Op::Composite, {x}, attrs({{Attr::Name, text("nest")}}), {inner}, origin());
    if (!node.ok()) return;  // refused when built, which is as good
    g->set_outputs(g->node(*node).results);
    inner = g;
  }
  const auto r = interpret(*inner, {f32({1})});
  expect_error(r, "too-deep");
}

TEST(InterpretControl, InputsBindSymbols) {
  Graph g;
  g.facts.declare("n", {1, 8, 1});
  const ValueId a = g.add_input({DType::F32, {kFound, 2}}, "a"), b = g.add_input({DType::F32, {kFound * 2 + 1}}, "b");
  g.set_outputs({a, b});
  EXPECT_EQ(bind_inputs(g, {{3, 2}, {7}})->at("n"), 3);
  EXPECT_EQ(bind_inputs(g, {{3, 2}, {8}}).error().code(), "shape-mismatch");
  EXPECT_EQ(bind_inputs(g, {{3, 2}, {8}}).error().where(), "b");
  EXPECT_FALSE(bind_inputs(g, {{3, 4}, {7}}).ok());
  EXPECT_FALSE(bind_inputs(g, {{3, 2, 1}, {7}}).ok());
  EXPECT_FALSE(bind_inputs(g, {{3, 2}}).ok());
  EXPECT_FALSE(bind_inputs(g, {{9, 2}, {19}}).ok());  // out of the declared range
  EXPECT_EQ(interpret(g, {i64({1}), f32({1})}).error().code(), "shape-mismatch");
  EXPECT_EQ(interpret(g, {of(DType::I64, {1, 2}, {1, 2}), f32({1, 2, 3})}).error().code(), "dtype-mismatch");
}

TEST(InterpretControl, LinearSizesAreSolved) {
  Graph g;
  g.set_outputs({g.add_input({DType::F32, {kFound * 3 + 2}})});
  EXPECT_EQ(bind_inputs(g, {{11}})->at("n"), 3);
  EXPECT_FALSE(bind_inputs(g, {{12}}).ok());
  EXPECT_FALSE(bind_inputs(g, {{0}}).ok());
}

TEST(InterpretControl, BindGivesSymbolsTheirValues) {
  Graph g;
  const ValueId sizes = g.add_input({DType::I64, {2}});
  ASSERT_TRUE(g.add_node(Op::Bind, {sizes}, attrs({{Attr::Shape, dims({Dim::symbol("p"), Dim::symbol("q")})}}), {}, origin()).ok());
  const NodeId iota = g.add_node(Op::Iota, {}, attrs({{Attr::DType, type(DType::I32)}, {Attr::Shape, dims({Dim::symbol("p") + Dim::symbol("q")})}, {Attr::Axis, num(0)}})).value();
  g.set_outputs(g.node(iota).results);
  expect_results(interpret(g, {i64({1, 2})}), {i32({0, 1, 2})});
  expect_error(interpret(g, {i64({1, -2})}), "size-out-of-range", "q");
}

TEST(InterpretControl, HostOpsBindTheirSizes) {
  Graph g;
  const ValueId x = g.add_input({DType::F32, {4}});
  const NodeId found = g.add_node(Op::NonZero, {x}, attrs({{Attr::Symbol, dims({kFound})}})).value();
  const NodeId size = g.add_node(Op::ShapeValue, {}, attrs({{Attr::Shape, dims({kFound * 10})}})).value();
  g.set_outputs({g.node(found).results[0], g.node(size).results[0]});
  expect_results(interpret(g, {f32({0, 1, 0, 2})}), {of(DType::I64, {1, 2}, {1, 3}), i64({20})});
  expect_results(interpret(g, {f32({0, 0, 0, 0})}), {of(DType::I64, {1, 0}, {}), i64({0})});
}

Result<Tensors> unique(const Tensor& x, bool sorted, std::optional<std::int64_t> axis = {}) {
  Attrs a = attrs({{Attr::Symbol, dims({kFound})}, {Attr::Sorted, flag(sorted)}});
  if (axis) a.set(Attr::Axis, num(*axis));
  return run(Op::Unique, {x}, a);
}

TEST(InterpretControl, Unique) {
  expect_results(unique(f32({3, kNan, 1, kNan, 3}), true),
                 {f32({1, 3, kNan}), i64({2, 0, 1}), i64({1, 2, 0, 2, 1}), i64({1, 2, 2})});
  expect_results(unique(f32({3, 1, 3}), false), {f32({3, 1}), i64({0, 1}), i64({0, 1, 0}), i64({2, 1})});
  expect_results(unique(strs({"b", "a", "b"}), true), {strs({"a", "b"}), i64({1, 0}), i64({1, 0, 1}), i64({1, 2})});
  expect_results(unique(of(DType::I32, {2, 3}, {2, 1, 2, 5, 4, 5}), true, 1),
                 {of(DType::I32, {2, 2}, {1, 2, 4, 5}), i64({1, 0}), i64({1, 0, 1}), i64({1, 2})});
  expect_results(unique(f32({}), true), {f32({}), i64({}), i64({}), i64({})});
}

Result<Tensors> nms(const Tensor& boxes, const Tensor& scores, std::int64_t most, double iou, double score, bool center) {
  return run(Op::NonMaxSuppression,
             {boxes, scores, ints(DType::I64, {}, {most}), of(DType::F32, {}, {iou}), of(DType::F32, {}, {score})},
             attrs({{Attr::Symbol, dims({kFound})}, {Attr::Center, flag(center)}}));
}

TEST(InterpretControl, NonMaxSuppression) {
  const Tensor boxes = of(DType::F32, {1, 3, 4}, {1, 1, 0, 0, 0, 0.1, 1, 1.1, 0, 10, 1, 11});
  const Tensor scores = of(DType::F32, {1, 1, 3}, {0.9, kNan, 0.9});
  expect_results(nms(boxes, scores, 3, 0.5, 0, false), {of(DType::I64, {2, 3}, {0, 0, 0, 0, 0, 2})});
  expect_results(nms(boxes, scores, 1, 0.5, 0, false), {of(DType::I64, {1, 3}, {0, 0, 0})});
  expect_results(nms(boxes, scores, 0, 0.5, 0, false), {of(DType::I64, {0, 3}, {})});
  expect_results(nms(boxes, scores, 3, 0.5, 0.95, false), {of(DType::I64, {0, 3}, {})});
  const Tensor centered = of(DType::F32, {1, 2, 4}, {0.5, 0.5, 1, 1, 0.5, 0.6, 1, 1});
  expect_results(nms(centered, of(DType::F32, {1, 1, 2}, {0.5, 0.6}), 2, 0.5, 0, true), {of(DType::I64, {1, 3}, {0, 0, 1})});
}

TEST(InterpretControl, ErrorsNameTheUsersNode) {
  const auto r = run(Op::Gather, {f32({1}), i64({1})}, attrs({{Attr::Axis, num(0)}}));
  ASSERT_FALSE(r.ok());
  EXPECT_STREQ(r.error().what(), "error[index-out-of-range] at 'case (Case)': gather: index 1 is out of range on axis 0 of extent 1");
}

}  // namespace
}  // namespace weft::graph
