// Softmax by its nodes, as machine code beside the interpreter: rows that are kept on chip and rows too long for it.
#include <fmt/format.h>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

// Over the given axis of [2, rows, columns]; `sum`: the exponentials' sum is an output too.
std::string softmax(const std::string& dtype, const std::string& rows, const std::string& columns, int axis, bool sum) {
  const std::string full = fmt::format("[2, {}, {}]", rows, columns), type = dtype + full;
  const std::string outer = axis == 2 ? fmt::format("[2, {}]", rows) : fmt::format("[2, {}]", columns);
  const std::string axes = axis == 2 ? "[0, 1]" : "[0, 2]";
  std::string text = fmt::format("graph @softmax(%0 \"x\": {}) -> ({}{}){} {{\n", type, type, sum ? ", " + dtype + outer : "",
                                 columns == "n" ? " where n in 0.." : "");
  text += fmt::format("  %1 = reduce_max %0 {{axes=[{}]}} : {}{}\n", axis, dtype, outer);
  text += fmt::format("  %2 = broadcast %1 {{axes={}, shape={}}} : {}\n", axes, full, type);
  text += fmt::format("  %3 = sub %0, %2 : {}\n  %4 = exp %3 : {}\n", type, type);
  text += fmt::format("  %5 = reduce_sum %4 {{axes=[{}]}} : {}{}\n", axis, dtype, outer);
  text += fmt::format("  %6 = broadcast %5 {{axes={}, shape={}}} : {}\n", axes, full, type);
  text += fmt::format("  %7 = div %4, %6 : {}\n  return %7{}\n}}\n", type, sum ? ", %5" : "");
  return text;
}

struct Softmax {
  const char *dtype, *columns;
  std::int64_t n;
  int axis;
};

TEST(Softmax, IsTheInterpreters) {
  for (const Softmax& c : {Softmax{"f32", "1", 1, 2}, {"f32", "77", 77, 2}, {"f32", "1024", 1024, 2}, {"f32", "9001", 9001, 2}, {"f32", "n", 130, 2},
                        {"f32", "n", 0, 2}, {"f32", "96", 96, 1}, {"f64", "100", 100, 2}, {"f16", "100", 100, 2}}) {
    for (const bool sum : {false, true}) {
      const graph::Graph g = parsed(softmax(c.dtype, "5", c.columns, c.axis, sum));
      const auto exe = executable(g);
      ASSERT_NE(exe, nullptr);
      for (const bool special : {false, true}) {
        std::mt19937 random(7);
        std::normal_distribution<double> normal(0, 3);
        Tensor x = Tensor::zeros(*parse_dtype(c.dtype), {2, 5, c.n}).value();
        for (std::int64_t i = 0; i < x.size(); ++i) x.set_f64(i, normal(random));
        if (special && c.n > 0) {
          for (std::int64_t i = 0; i < c.n; ++i) x.set_f64(i, -INFINITY);  // a row of nothing
          x.set_f64(c.n, -INFINITY), x.set_f64(2 * c.n, INFINITY), x.set_f64(4 * c.n - 1, std::nan("")), x.set_f64(5 * c.n - 1, 1e4);
        }
        auto want = graph::interpret(g, {x});
        ASSERT_TRUE(want.ok()) << want.error().what();
        const Tensors got = run(*exe, {x}, 2);
        const double tolerance = x.dtype() == DType::F16 ? 2e-3 : 1e-6;
        for (std::size_t k = 0; k < got.size(); ++k) {
          EXPECT_EQ(difference(got[k], (*want)[k], tolerance), "") << c.dtype << " " << c.columns << " axis " << c.axis << " special " << special;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::compiler::testing
