#include "support.h"

namespace weft::graph {
namespace {

using namespace testing;

constexpr std::int64_t kMin64 = INT64_MIN, kMax64 = INT64_MAX;

void expect_ints(Op op, DType t, std::vector<std::int64_t> a, std::vector<std::int64_t> b,
                 std::vector<std::int64_t> y) {
  const auto n = static_cast<std::int64_t>(a.size());
  SCOPED_TRACE(std::string(info(op).name) + " " + name(t));
  expect_results(run(op, {ints(t, {n}, a), ints(t, {n}, b)}), {ints(t, {n}, y)});
}

void expect_floats(Op op, std::vector<double> a, std::vector<double> b, std::vector<double> y, DType t = DType::F32) {
  SCOPED_TRACE(info(op).name);
  expect_results(run(op, {vec(t, a), vec(t, b)}), {vec(t, y)});
}

TEST(InterpretElementwise, IntegersWrap) {
  expect_ints(Op::Add, DType::I8, {127, -128}, {1, -1}, {-128, 127});
  expect_ints(Op::Add, DType::I64, {kMax64}, {1}, {kMin64});
  expect_ints(Op::Sub, DType::U8, {0}, {1}, {255});
  expect_ints(Op::Mul, DType::I32, {65536}, {65536}, {0});
  expect_ints(Op::Mul, DType::U64, {-1}, {-1}, {1});
  expect_ints(Op::Add, DType::I4, {7, -8, 3}, {1, -1, 2}, {-8, 7, 5});
  expect_ints(Op::Add, DType::U2, {3, 1, 0, 2, 3}, {1, 1, 0, 3, 3}, {0, 2, 0, 1, 2});
  expect_results(run(Op::Neg, {ints(DType::I64, {2}, {kMin64, 5})}), {ints(DType::I64, {2}, {kMin64, -5})});
  expect_results(run(Op::Abs, {ints(DType::I8, {2}, {-128, -1})}), {ints(DType::I8, {2}, {-128, 1})});
  expect_results(run(Op::Neg, {ints(DType::U8, {1}, {1})}), {ints(DType::U8, {1}, {255})});
}

TEST(InterpretElementwise, IntegerDivision) {
  expect_ints(Op::Div, DType::I32, {7, -7, 7, 0}, {2, 2, 0, 0}, {3, -3, 0, 0});
  expect_ints(Op::Div, DType::I64, {kMin64}, {-1}, {kMin64});
  expect_ints(Op::Div, DType::I8, {-128}, {-1}, {-128});
  expect_ints(Op::Div, DType::U64, {-1}, {2}, {kMax64});
  expect_ints(Op::Fmod, DType::I32, {-7, 7, 7}, {3, -3, 0}, {-1, 1, 0});
  expect_ints(Op::Mod, DType::I32, {-7, 7, 7}, {3, -3, 0}, {2, -2, 0});
  expect_ints(Op::Mod, DType::I64, {kMin64, kMin64}, {-1, 0}, {0, 0});
  expect_ints(Op::Mod, DType::U64, {-1}, {10}, {5});
}

TEST(InterpretElementwise, IntegerPower) {
  expect_ints(Op::Pow, DType::I32, {3, 2, -2, 0, 0, 1, -1, -1, 2}, {4, 32, 3, 0, -1, -5, -3, -2, -1},
              {81, 0, -8, 1, 0, 1, -1, 1, 0});
  expect_ints(Op::Pow, DType::U8, {3}, {6}, {217});
}

TEST(InterpretElementwise, Shifts) {
  expect_ints(Op::Shl, DType::U8, {1, 1, 255}, {7, 8, 200}, {128, 0, 0});
  expect_ints(Op::Shl, DType::I64, {1, 1}, {63, 64}, {kMin64, 0});
  expect_ints(Op::Shr, DType::I8, {-128, -1, 5, -5}, {7, 100, 8, -1}, {-1, -1, 0, -1});
  expect_ints(Op::Shr, DType::U64, {-1, -1}, {63, 64}, {1, 0});
}

TEST(InterpretElementwise, BitsOfBoolAndIntegers) {
  expect_ints(Op::And, DType::Bool, {0, 1, 1}, {1, 1, 0}, {0, 1, 0});
  expect_ints(Op::Xor, DType::I8, {-1}, {15}, {-16});
  expect_results(run(Op::Not, {ints(DType::U4, {3}, {0, 15, 5})}), {ints(DType::U4, {3}, {15, 0, 10})});
  expect_results(run(Op::Not, {ints(DType::I64, {1}, {0})}), {ints(DType::I64, {1}, {-1})});
}

TEST(InterpretElementwise, NanPropagatesThroughMaxAndMin) {
  for (Op op : {Op::Max, Op::Min}) {
    expect_floats(op, {kNan, 1, kNan, kInf}, {1, kNan, kNan, kInf}, {kNan, kNan, kNan, kInf});
  }
  expect_ints(Op::Max, DType::U64, {-1}, {1}, {-1});
  expect_ints(Op::Min, DType::Bool, {0, 1}, {1, 1}, {0, 1});
}

TEST(InterpretElementwise, NanComparesUnequal) {
  const Tensors x{f32({kNan, 1}), f32({kNan, kNan})};
  for (Op op : {Op::Eq, Op::Lt, Op::Le, Op::Gt, Op::Ge}) expect_results(run(op, x), {b8({0, 0})});
  expect_results(run(Op::Ne, x), {b8({1, 1})});
  expect_results(run(Op::Lt, {ints(DType::U64, {1}, {1}), ints(DType::U64, {1}, {-1})}), {b8({1})});
}

TEST(InterpretElementwise, FloatEdges) {
  expect_floats(Op::Mod, {-1, 5.5, kInf, 1, 1}, {3, -2, 2, 0, kInf}, {2, -0.5, kNan, kNan, 1});
  expect_floats(Op::Fmod, {-1, 5.5}, {3, -2}, {-1, 1.5});
  expect_floats(Op::Div, {1, -1, 0}, {0, 0, 0}, {kInf, -kInf, kNan});
  expect_floats(Op::Pow, {0, -8, kNan}, {0, 1.0 / 3, 0}, {1, kNan, 1});
  expect_results(run(Op::Sign, {f32({kNan, -0.0, -kInf})}), {f32({kNan, -0.0, -1})});
  expect_results(run(Op::Round, {f32({0.5, 1.5, -0.5, 2.5})}), {f32({0, 2, -0.0, 2})});
  expect_results(run(Op::Sigmoid, {f32({-1000, 1000, kNan})}), {f32({0, 1, kNan})});
  expect_results(run(Op::Log, {f32({-1, 0})}), {f32({kNan, -kInf})});
  expect_results(run(Op::Sinh, {f32({89})}), {f32({std::sinh(89.0)})});
}

TEST(InterpretElementwise, NarrowFloatsRoundOnce) {
  expect_floats(Op::Add, {2048, 1}, {1, 0.00048828125}, {2048, 1}, DType::F16);
  expect_floats(Op::Add, {65504}, {65504}, {kInf}, DType::F16);
  expect_floats(Op::Mul, {448}, {2}, {kNan}, DType::F8E4M3FN);
  expect_floats(Op::Mul, {57344}, {2}, {kInf}, DType::F8E5M2);
  expect_floats(Op::Add, {6, 0.5}, {6, 0.5}, {6, 1}, DType::F4E2M1);
  expect_floats(Op::Add, {256}, {1}, {256}, DType::BF16);
}

TEST(InterpretElementwise, Complex) {
  const auto z = [](std::vector<WideComplex> v) { return narrow(DType::C64, {static_cast<std::int64_t>(v.size())}, v).value(); };
  expect_results(run(Op::Mul, {z({{1, 2}}), z({{3, 4}})}), {z({{-5, 10}})});
  expect_results(run(Op::Div, {z({{-5, 10}}), z({{3, 4}})}), {z({{1, 2}})});
  expect_results(run(Op::Abs, {z({{3, 4}})}), {z({{5, 0}})});
  expect_results(run(Op::Eq, {z({{3, 4}, {1, 1}}), z({{3, 4}, {1, 2}})}), {b8({1, 0})});
}

TEST(InterpretElementwise, StringsCompare) {
  expect_results(run(Op::Eq, {strs({"a", "b"}), strs({"a", "c"})}), {b8({1, 0})});
  expect_results(run(Op::Ne, {strs({"a", "b"}), strs({"a", "c"})}), {b8({0, 1})});
}

TEST(InterpretElementwise, SelectOfAnyDType) {
  expect_results(run(Op::Select, {b8({1, 0, 1}), ints(DType::I4, {3}, {1, 2, -3}), ints(DType::I4, {3}, {4, 5, 6})}),
                 {ints(DType::I4, {3}, {1, 5, -3})});
  expect_results(run(Op::Select, {b8({1, 0}), strs({"a", "b"}), strs({"c", "d"})}), {strs({"a", "d"})});
}

TEST(InterpretElementwise, NothingAndManyChunks) {
  expect_results(run(Op::Add, {f32({}), f32({})}), {f32({})});
  std::vector<double> x(2500), y(2500);
  for (int i = 0; i < 2500; ++i) x[i] = i, y[i] = 2 * i;
  expect_results(run(Op::Add, {f32(x), f32(x)}), {f32(y)});
}

TEST(InterpretElementwise, ShapesThatDifferAtRunTimeAreAnError) {
  Graph g;
  const Type n{DType::F32, {Dim::symbol("n")}};
  const ValueId a = g.add_input(n), b = g.add_input(n);
  const NodeId node = g.add_node(Op::Add, {a, b}, {}, {}, std::make_shared<Origin>(Origin{"case", ""})).value();
  g.set_outputs(g.node(node).results);
  Bindings bindings;
  expect_error(interpret_node(g, g.node(node), {f32({1}), f32({1, 2})}, bindings), "shape-mismatch", "add");
}

}  // namespace
}  // namespace weft::graph
