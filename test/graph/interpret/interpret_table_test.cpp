// At least one value for every op of the table.
#include <set>

#include "support.h"

namespace weft::graph {
namespace {

using namespace testing;

struct TableCase {
  Op op;
  Tensors operands;
  Attrs attributes;
  Tensors results;
  Regions regions = {};
};

TableCase unary(Op op, double x, double y) { return {op, {f32({x})}, {}, {f32({y})}}; }
TableCase binary(Op op, double a, double b, double y) { return {op, {f32({a}), f32({b})}, {}, {f32({y})}}; }
TableCase integer(Op op, double a, double b, double y) { return {op, {i32({a}), i32({b})}, {}, {i32({y})}}; }
TableCase compare(Op op, std::vector<double> y) { return {op, {f32({1, 2, 3}), f32({2, 2, 2})}, {}, {b8(y)}}; }

std::vector<TableCase> elementwise_cases() {
  return {
      unary(Op::Abs, -2, 2), unary(Op::Neg, 2, -2), unary(Op::Sign, -3, -1), unary(Op::Ceil, 1.25, 2),
      unary(Op::Floor, -1.25, -2), unary(Op::Round, 2.5, 2), unary(Op::Trunc, -1.75, -1),
      unary(Op::Exp, 1, 2.718281828459045), unary(Op::Expm1, 1, 1.718281828459045), unary(Op::Log, 10, 2.302585092994046),
      unary(Op::Log1p, 1, 0.6931471805599453), unary(Op::Sqrt, 2, 1.4142135623730951), unary(Op::Rsqrt, 4, 0.5),
      unary(Op::Reciprocal, 3, 1.0 / 3), unary(Op::Sin, 1, 0.8414709848078965), unary(Op::Cos, 1, 0.5403023058681398),
      unary(Op::Tan, 1, 1.5574077246549023), unary(Op::Asin, 1, 1.5707963267948966),
      unary(Op::Acos, -1, 3.141592653589793), unary(Op::Atan, 1, 0.7853981633974483),
      unary(Op::Sinh, 1, 1.1752011936438014), unary(Op::Cosh, 1, 1.5430806348152437),
      unary(Op::Tanh, 1, 0.7615941559557649), unary(Op::Asinh, 1, 0.881373587019543),
      unary(Op::Acosh, 2, 1.3169578969248166), unary(Op::Atanh, 0.5, 0.5493061443340549),
      unary(Op::Erf, 1, 0.8427007929497149), unary(Op::Sigmoid, 0, 0.5),
      {Op::Not, {b8({0, 1})}, {}, {b8({1, 0})}},
      {Op::IsNan, {f32({kNan, 1})}, {}, {b8({1, 0})}},
      {Op::IsInf, {f32({-kInf, kNan})}, {}, {b8({1, 0})}},
      binary(Op::Add, 1, 2, 3), binary(Op::Sub, 1, 2, -1), binary(Op::Mul, 3, 2, 6), binary(Op::Div, 1, 4, 0.25),
      binary(Op::Fmod, -5, 3, -2), binary(Op::Mod, -5, 3, 1), binary(Op::Pow, 2, 10, 1024), binary(Op::Max, 1, 2, 2),
      binary(Op::Min, 1, 2, 1), binary(Op::Atan2, 1, -1, 2.356194490192345),
      integer(Op::And, 6, 3, 2), integer(Op::Or, 6, 3, 7), integer(Op::Xor, 6, 3, 5), integer(Op::Shl, 3, 4, 48),
      integer(Op::Shr, -16, 2, -4),
      compare(Op::Eq, {0, 1, 0}), compare(Op::Ne, {1, 0, 1}), compare(Op::Lt, {1, 0, 0}), compare(Op::Le, {1, 1, 0}),
      compare(Op::Gt, {0, 0, 1}), compare(Op::Ge, {0, 1, 1}),
      {Op::Select, {b8({1, 0}), f32({1, 2}), f32({3, 4})}, {}, {f32({1, 4})}},
      {Op::Cast, {f32({1.75, -1.75})}, attrs({{Attr::DType, type(DType::I32)}}), {i32({1, -1})}},
      {Op::Bitcast, {f32({1})}, attrs({{Attr::DType, type(DType::I32)}}), {i32({0x3f800000})}},
  };
}

std::vector<TableCase> movement_cases() {
  const Tensor x = of(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor zero = of(DType::F32, {}, {0});
  return {
      {Op::Reshape, {x}, attrs({{Attr::Shape, dims({3, 2})}}), {of(DType::F32, {3, 2}, {1, 2, 3, 4, 5, 6})}},
      {Op::Transpose, {x}, attrs({{Attr::Axes, list({1, 0})}}), {of(DType::F32, {3, 2}, {1, 4, 2, 5, 3, 6})}},
      {Op::Broadcast, {f32({1, 2})}, attrs({{Attr::Shape, dims({2, 2})}, {Attr::Axes, list({0})}}),
       {of(DType::F32, {2, 2}, {1, 1, 2, 2})}},
      {Op::Slice, {x},
       attrs({{Attr::Starts, dims({1, 2})}, {Attr::Sizes, dims({1, 2})}, {Attr::Steps, list({1, -2})}}),
       {of(DType::F32, {1, 2}, {6, 4})}},
      {Op::Pad, {f32({1, 2}), zero},
       attrs({{Attr::Lo, dims({1})}, {Attr::Hi, dims({2})}, {Attr::Mode, text("constant")}}), {f32({0, 1, 2, 0, 0})}},
      {Op::Concat, {x, x}, attrs({{Attr::Axis, num(1)}}),
       {of(DType::F32, {2, 6}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6})}},
      {Op::Reverse, {x}, attrs({{Attr::Axes, list({1})}}), {of(DType::F32, {2, 3}, {3, 2, 1, 6, 5, 4})}},
      {Op::Constant, {}, attrs({{Attr::Data, AttrValue(f32({7}))}}), {f32({7})}},
      {Op::Iota, {}, attrs({{Attr::DType, type(DType::I32)}, {Attr::Shape, dims({2, 2})}, {Attr::Axis, num(1)}}),
       {of(DType::I32, {2, 2}, {0, 1, 0, 1})}},
      {Op::ShapeValue, {}, attrs({{Attr::Shape, dims({3, Dim(2) * 4})}}), {i64({3, 8})}},
      {Op::Bind, {i64({3})}, attrs({{Attr::Shape, dims({Dim::symbol("n")})}}), {}},
      {Op::RandomBits, {ints(DType::U64, {2}, {0, 0})},
       attrs({{Attr::DType, type(DType::U32)}, {Attr::Shape, dims({1})}}), {ints(DType::U32, {1}, {0x6627e8d5})}},
  };
}

std::vector<TableCase> indexing_cases() {
  const Tensor x = of(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor at = of(DType::I64, {1, 2}, {1, -1});
  return {
      {Op::Gather, {x, i64({2, -3})}, attrs({{Attr::Axis, num(1)}}), {of(DType::F32, {2, 2}, {3, 1, 6, 4})}},
      {Op::GatherElements, {x, of(DType::I64, {2, 1}, {2, 0})}, attrs({{Attr::Axis, num(1)}}),
       {of(DType::F32, {2, 1}, {3, 4})}},
      {Op::GatherNd, {x, at}, attrs({{Attr::Batch, num(0)}}), {f32({6})}},
      {Op::ScatterElements, {f32({1, 2, 3}), i64({2, 0}), f32({9, 8})},
       attrs({{Attr::Axis, num(0)}, {Attr::Combine, text("none")}}), {f32({8, 2, 9})}},
      {Op::ScatterNd, {x, at, f32({10})}, attrs({{Attr::Combine, text("add")}}),
       {of(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 16})}},
  };
}

std::vector<TableCase> reduction_cases() {
  const Tensor x = of(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Attrs last_axis = attrs({{Attr::Axes, list({1})}}), first_axis = attrs({{Attr::Axes, list({0})}});
  const Attrs arg = attrs({{Attr::Axis, num(1)}, {Attr::Last, flag(false)}});
  const auto scan = [](bool exclusive, bool reverse) {
    return attrs({{Attr::Axis, num(0)}, {Attr::Exclusive, flag(exclusive)}, {Attr::Reverse, flag(reverse)}});
  };
  const Attrs down = attrs({{Attr::Axis, num(0)}, {Attr::Descending, flag(true)}});
  Attrs top = down;
  top.set(Attr::K, dims({2}));
  return {
      {Op::ReduceSum, {x}, first_axis, {f32({5, 7, 9})}},
      {Op::ReduceProd, {x}, last_axis, {f32({6, 120})}},
      {Op::ReduceMax, {x}, last_axis, {f32({3, 6})}},
      {Op::ReduceMin, {x}, first_axis, {f32({1, 2, 3})}},
      {Op::ReduceAnd, {i32({7, 6})}, first_axis, {of(DType::I32, {}, {6})}},
      {Op::ReduceOr, {b8({0, 1})}, first_axis, {of(DType::Bool, {}, {1})}},
      {Op::ArgMax, {x}, arg, {i64({2, 2})}},
      {Op::ArgMin, {x}, arg, {i64({0, 0})}},
      {Op::CumSum, {f32({1, 2, 3})}, scan(false, false), {f32({1, 3, 6})}},
      {Op::CumProd, {f32({1, 2, 3})}, scan(true, false), {f32({1, 1, 2})}},
      {Op::CumMax, {f32({1, 3, 2})}, scan(false, true), {f32({3, 3, 2})}},
      {Op::CumMin, {f32({2, 1, 3})}, scan(true, true), {f32({1, 3, kInf})}},
      {Op::Sort, {f32({2, 3, 1})}, down, {f32({3, 2, 1}), i64({1, 0, 2})}},
      {Op::TopK, {f32({2, 3, 1})}, top, {f32({3, 2}), i64({1, 0})}},
  };
}

Attrs window_attrs() {
  return attrs({{Attr::Window, list({2})}, {Attr::Strides, list({1})}, {Attr::Lo, dims({1})}, {Attr::Hi, dims({0})},
                {Attr::Dilations, list({1})}});
}

std::vector<TableCase> contraction_cases() {
  const Attrs dot = attrs({{Attr::LhsBatch, list({})}, {Attr::RhsBatch, list({})}, {Attr::LhsContract, list({1})},
                           {Attr::RhsContract, list({0})}, {Attr::DType, type(DType::F32)}});
  const Attrs conv = attrs({{Attr::Strides, list({2})}, {Attr::Lo, dims({1})}, {Attr::Hi, dims({0})},
                            {Attr::Dilations, list({1})}, {Attr::BaseDilations, list({1})}, {Attr::Groups, num(1)},
                            {Attr::ChannelsLast, flag(false)}, {Attr::DType, type(DType::F32)}});
  return {
      {Op::Dot, {of(DType::F32, {2, 2}, {1, 2, 3, 4}), of(DType::F32, {2, 1}, {5, 6})}, dot,
       {of(DType::F32, {2, 1}, {17, 39})}},
      {Op::Conv, {of(DType::F32, {1, 1, 4}, {1, 2, 3, 4}), of(DType::F32, {1, 1, 2}, {1, 10})}, conv,
       {of(DType::F32, {1, 1, 2}, {10, 32})}},
      // The sum of 3 x 3 neighbours: all weights are 1, and G turns three ones into 1, 1.5, 0.5, 1.
      {Op::ConvWinograd,
       {of(DType::F32, {1, 4, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}),
        of(DType::F32, {16, 1, 1}, {1, 1.5, 0.5, 1, 1.5, 2.25, 0.75, 1.5, 0.5, 0.75, 0.25, 0.5, 1, 1.5, 0.5, 1})},
       attrs({{Attr::Tile, num(2)}, {Attr::Lo, dims({0, 0})}, {Attr::Hi, dims({0, 0})}, {Attr::DType, type(DType::F32)}}),
       {of(DType::F32, {1, 2, 2, 1}, {54, 63, 90, 99})}},
      {Op::WindowSum, {f32({1, 3, 2})}, window_attrs(), {f32({1, 4, 5})}},
      {Op::WindowMax, {f32({1, 3, 2})}, window_attrs(), {f32({1, 3, 3})}},
      {Op::WindowArgMax, {f32({1, 3, 2})}, window_attrs(), {i64({0, 1, 1})}},
  };
}

std::shared_ptr<const Graph> binary_region(Op op) {
  auto g = std::make_shared<Graph>();
  const ValueId a = g->add_input({DType::F32, {1}}), b = g->add_input({DType::F32, {1}});
  const NodeId n = g->add_node(op, {a, b}, {}).value();
  g->set_outputs(g->node(n).results);
  return g;
}

// carried += captured; the old carried value is stacked.
std::shared_ptr<const Graph> step_region(bool loop) {
  auto g = std::make_shared<Graph>();
  ValueId go = -1;
  if (loop) {
    g->add_input({DType::I64, {}});
    go = g->add_input({DType::Bool, {}});
  }
  const ValueId carried = g->add_input({DType::F32, {}}), other = g->add_input({DType::F32, {}});
  const NodeId n = g->add_node(Op::Add, {carried, other}, {}).value();
  std::vector<ValueId> outputs{g->node(n).results[0], carried};
  if (loop) outputs.insert(outputs.begin(), go);
  g->set_outputs(outputs);
  return g;
}

std::vector<TableCase> control_and_host_cases() {
  const Tensor one = of(DType::F32, {}, {1}), ten = of(DType::F32, {}, {10});
  const Tensor yes = of(DType::Bool, {}, {1}), no = of(DType::Bool, {}, {0}), three = of(DType::I64, {}, {3});
  const Shape n{Dim::symbol("n")};
  return {
      {Op::If, {no, f32({1}), f32({2})}, {}, {f32({2})}, {binary_region(Op::Add), binary_region(Op::Mul)}},
      {Op::Loop, {three, yes, one, ten}, attrs({{Attr::Carried, num(1)}, {Attr::Symbol, dims(n)}}),
       {of(DType::F32, {}, {31}), f32({1, 11, 21})}, {step_region(true)}},
      {Op::Scan, {one, f32({2, 3})}, attrs({{Attr::Carried, num(1)}, {Attr::Xs, num(1)}}),
       {of(DType::F32, {}, {6}), f32({1, 3})}, {step_region(false)}},
      {Op::Composite, {f32({1}), f32({2})}, attrs({{Attr::Name, text("sum")}}), {f32({3})}, {binary_region(Op::Add)}},
      {Op::NonZero, {of(DType::F32, {2, 2}, {0, 1, kNan, 0})}, attrs({{Attr::Symbol, dims(n)}}),
       {of(DType::I64, {2, 2}, {0, 1, 1, 0})}},
      {Op::Unique, {f32({3, 1, 3})}, attrs({{Attr::Symbol, dims(n)}, {Attr::Sorted, flag(true)}}),
       {f32({1, 3}), i64({1, 0}), i64({1, 0, 1}), i64({1, 2})}},
      {Op::NonMaxSuppression,
       {of(DType::F32, {1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9, 2, 2, 3, 3}), of(DType::F32, {1, 1, 3}, {0.8, 0.9, 0.7}),
        three, of(DType::F32, {}, {0.5}), of(DType::F32, {}, {0})},
       attrs({{Attr::Symbol, dims(n)}, {Attr::Center, flag(false)}}), {of(DType::I64, {2, 3}, {0, 0, 1, 0, 0, 2})}},
  };
}

std::vector<TableCase> all_cases() {
  std::vector<TableCase> all;
  for (auto part : {elementwise_cases(), movement_cases(), indexing_cases(), reduction_cases(), contraction_cases(),
                    control_and_host_cases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(InterpretTable, EveryCaseGivesItsValue) {
  for (const TableCase& c : all_cases()) {
    SCOPED_TRACE(info(c.op).name);
    expect_results(run(c.op, c.operands, c.attributes, c.regions), c.results);
  }
}

// custom_call has no meaning of its own: it is refused by name.
TEST(InterpretTable, FailFails) {
  const auto r = run(Op::Fail, {}, attrs({{Attr::Name, text("the reason")}}));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code(), "failed");
  EXPECT_NE(std::string(r.error().what()).find("the reason"), std::string::npos);
}

TEST(InterpretTable, CustomCallsAreRefused) {
  const auto r = run(Op::CustomCall, {f32({1})}, attrs({{Attr::Name, text("mine")}, {Attr::Types, text("f32[1]")}}));
  expect_error(r, "custom-call", "mine");
}

TEST(InterpretTable, EveryOpHasACase) {
  std::set<Op> seen{Op::CustomCall, Op::Fail};
  for (const TableCase& c : all_cases()) seen.insert(c.op);
  for (int i = 0; i < op_count(); ++i) {
    EXPECT_TRUE(seen.count(static_cast<Op>(i))) << info(static_cast<Op>(i)).name << " has no case here";
  }
}

// Each elementwise op takes every dtype of the classes in its row, and gives as many elements back.
TEST(InterpretTable, ElementwiseOpsTakeEveryDType) {
  const std::string letters = "biufcs";
  for (int i = 0; i < op_count(); ++i) {
    const OpInfo& op = info(static_cast<Op>(i));
    if (op.family != Family::Unary && op.family != Family::Binary) continue;
    for (int d = 0; d < dtype_count(); ++d) {
      const DType t = static_cast<DType>(d);
      if (std::string(op.dtypes).find(letters[static_cast<int>(info(t).cls)]) == std::string::npos) continue;
      SCOPED_TRACE(std::string(op.name) + " " + name(t));
      Tensor x = is_string(t) ? strs({"a", "b", "c"}) : Tensor::zeros(t, {3}).value();
      const auto y = run(static_cast<Op>(i), Tensors(static_cast<std::size_t>(op.min_operands), x));
      ASSERT_TRUE(y.ok()) << y.error().what();
      EXPECT_EQ((*y)[0].size(), 3);
    }
  }
}

}  // namespace
}  // namespace weft::graph
