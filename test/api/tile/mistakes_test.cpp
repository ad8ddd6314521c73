// What is wrong in a kernel or its arguments is an error that says what; what goes wrong in its memory is found.
#include <gmock/gmock.h>

#include "weft/tile.h"

namespace weft::tile {
namespace {

using testing::HasSubstr;

template <class Body>
std::string mistake(Body body) {
  const auto compiled = kernel("wrong", body).compile();
  return compiled.ok() ? "compiles" : compiled.error().what();
}

TEST(TileMistakes, InTheBody) {
  EXPECT_THAT(mistake([](In<float> x, In<std::int32_t> y) { load(x, lanes(4)) + load(y, lanes(4)); }),
              HasSubstr("at 'wrong': add: f32 and i32: cast one"));
  EXPECT_THAT(mistake([](In<float> x) { load(x, lanes(4)) + load(x, lanes(5)); }), HasSubstr("sizes differ: f32[1,4] and f32[1,5]"));
  EXPECT_THAT(mistake([](In<float> x) { store(x, lanes(4), 1.0f); }), HasSubstr("store: the parameter is an In"));
  EXPECT_THAT(mistake([](Out<float> x) { load(x, lanes(4)); }), HasSubstr("load: the parameter is an Out"));
  EXPECT_THAT(mistake([](Out<float> x) { atomic_add(x, lanes(4), 1.0f); }), HasSubstr("not an InOut"));
  EXPECT_THAT(mistake([](InOut<float> x) { atomic_max(x, lanes(4), 1.0f); }), HasSubstr("no such atomic on f32"));
  EXPECT_THAT(mistake([](Out<std::int32_t> x) { store(x, lanes(4), full<float>(1, 4, 0)); }), HasSubstr("f32 into a memory of i32: cast it"));
  EXPECT_THAT(mistake([](Out<float> x) { store(x, program_id(), full<float>(1, 4, 0)); }), HasSubstr("a value of f32[1,4] at an index of i64"));
  EXPECT_THAT(mistake([](In<float> x) { load(x, load(x, lanes(4))); }), HasSubstr("an index of f32"));
  EXPECT_THAT(mistake([](In<float>) { lanes(4) + 1.5; }), HasSubstr("1.5 meets i64"));
  EXPECT_THAT(mistake([](In<float>) { dot(full<float>(4, 8, 0), full<float>(4, 8, 0)); }), HasSubstr("wanted are [r, k] and [k, c]"));
  EXPECT_THAT(mistake([](In<float>) { sum(lanes(4), 2); }), HasSubstr("axis 2"));
  EXPECT_THAT(mistake([](In<float>) { exp(lanes(4)); }), HasSubstr("exp of i64"));
  EXPECT_THAT(mistake([](In<float>) { Var v = zeros<float>(1, 4); v = lanes(4); }), HasSubstr("a variable of f32[1,4] cannot become i64[1,4]"));
  EXPECT_THAT(mistake([](In<float>) { Var v = zeros<float>(1, 4); v = zeros<float>(1, 8); }), HasSubstr("does not stretch"));
  EXPECT_THAT(mistake([](In<float>) { when(lanes(4) == 0, [] {}); }), HasSubstr("instead of a bool scalar"));
  EXPECT_THAT(mistake([](In<float>) { lanes(0); }), HasSubstr("0 indices"));
}

TEST(TileMistakes, ValuesThatLeaveTheirLoop) {
  EXPECT_THAT(mistake([](Out<float> y, Int n) {
                std::vector<Tile> kept;
                for (Tile k : range(0, n)) kept.push_back(cast<float>(k));
                store(y, program_id(), kept[0]);
              }),
              HasSubstr("what leaves one is a Var"));
  EXPECT_THAT(mistake([](Out<float> y, Int n) {
                for (Tile k : range(0, n)) {
                  store(y, k, 1.0f);
                  break;
                }
              }),
              HasSubstr("left by break"));
}

TEST(TileMistakes, OutOfBoundsAndRaces) {
  const auto failure = [](const Kernel& k, std::int64_t grid, const Arguments& arguments) {
    const auto interpreted = k.interpret(grid, arguments), debugged = k.debug(grid, arguments);
    EXPECT_FALSE(interpreted.ok() || debugged.ok());
    if (interpreted.ok() || debugged.ok()) return std::string();
    EXPECT_STREQ(interpreted.error().what(), debugged.error().what());
    return std::string(interpreted.error().what());
  };
  std::vector<float> x(10), y(10);
  EXPECT_THAT(failure(kernel("out", [](In<float> a, Out<float> b) { store(b, lanes(8), load(a, lanes(8) + 4)); }), 1, {x, y}),
              HasSubstr("index 10 of buffer 0 of 10 elements"));
  EXPECT_THAT(failure(kernel("write", [](Out<float> b) { store(b, lanes(4), 1.0f); }), 2, {y}), HasSubstr("another program writes it"));
  EXPECT_THAT(failure(kernel("read", [](InOut<float> b) {
                        const Tile next = load(b, program_id() + 1);
                        store(b, program_id(), next);
                      }), 3, {y}),
              HasSubstr("another program reads it"));
  EXPECT_THAT(failure(kernel("mixed", [](InOut<std::int32_t> b) {
                        atomic_add(b, 0, 1);
                        load(b, 0);
                      }), 2, {std::vector<std::int32_t>(1)}).empty() ? "" : "found", HasSubstr("found"));
}

TEST(TileMistakes, InTheArguments) {
  const Kernel k = kernel("args", [](In<float> x, Out<float> y, Int n) { store(y, lanes(4), load(x, lanes(4), lanes(4) < n)); });
  const CompiledKernel c = k.compile().value();
  const std::vector<float> fixed(4);
  std::vector<float> x(4), y(4);
  std::vector<double> wide(4);
  const auto text = [&](const Arguments& arguments) {
    const auto done = c.run(1, arguments);
    return done.ok() ? std::string("runs") : std::string(done.error().what());
  };
  EXPECT_EQ(text({x, y, 4}), "runs");
  EXPECT_EQ(text({fixed, y, 4}), "runs");
  EXPECT_THAT(text({x, y}), HasSubstr("2 arguments (expected 3"));
  EXPECT_THAT(text({wide, y, 4}), HasSubstr("argument 0 does not fit (expected memory of f32, found f64[4]"));
  EXPECT_THAT(text({x, fixed, 4}), HasSubstr("argument 1 does not fit (expected memory that may be written"));
  EXPECT_THAT(text({x, y, y}), HasSubstr("argument 2 does not fit (expected an integer"));
  EXPECT_THAT(text({1, y, 4}), HasSubstr("found a number"));
  EXPECT_FALSE(c.run(-1, {x, y, 4}).ok());
  EXPECT_TRUE(c.run(0, {x, y, 4}).ok());
  EXPECT_FALSE(Kernel().compile().ok());
  EXPECT_FALSE(CompiledKernel().run(1, {}).ok());
  CompileOptions options;
  options.target = "no-such";
  EXPECT_FALSE(k.compile(options).ok());
  options.target = "sim:opencl+cpu";
  EXPECT_THAT(k.compile(options).error().what(), HasSubstr("runs in one place"));
  EXPECT_THAT(k.text("graph").error().what(), HasSubstr("tile, kernel, llvm and asm"));
}

}  // namespace
}  // namespace weft::tile
