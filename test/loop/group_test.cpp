#include "loop/group.h"

#include <gtest/gtest.h>

namespace weft::loop {
namespace {

TEST(Fold, HashConses) {
  Group g;
  const auto p = g.add_param({Role::Input, DType::F32, {Dim::symbol("n")}, {}, false});
  const auto i = g.index(g.add_loop(LoopKind::Parallel, Dim::symbol("n")));
  const auto x = g.load(p, {i});
  EXPECT_EQ(x, g.load(p, {i}));
  EXPECT_EQ(g.scalar(ScalarOp::Add, DType::F32, {x, x}),
            g.scalar(ScalarOp::Add, DType::F32, {x, x}));
  EXPECT_EQ(g.scalar(ScalarOp::Mul, DType::F32, {x, g.constant(DType::F32, 1)}), x);
  EXPECT_NE(g.scalar(ScalarOp::Add, DType::F32, {x, g.constant(DType::F32, 0)}), x);  // -0 + 0 is 0
  EXPECT_EQ(g.constant(DType::F32, 0.1), g.constant(DType::F32, 0.1));
  EXPECT_NE(g.constant(DType::F32, 0.0), g.constant(DType::F32, -0.0));
}

TEST(Fold, IndexArithmetic) {
  Group g;
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  const auto i = g.index(g.add_loop(LoopKind::Parallel, n));
  const auto j = g.index(g.add_loop(LoopKind::Parallel, m));
  const auto k = g.index(g.add_loop(LoopKind::Parallel, 6));
  const auto c = [&](std::int64_t v) { return g.constant_i64(v); };
  EXPECT_EQ(g.iadd(g.iadd(i, c(3)), c(-3)), i);
  EXPECT_EQ(g.isub(g.size(n), g.size(n)), c(0));
  // A flattened pair splits back.
  const auto flat = g.iadd(g.imul(i, g.size(m)), j);
  EXPECT_EQ(g.ifloordiv(flat, g.size(m)), i);
  EXPECT_EQ(g.imod(flat, g.size(m)), j);
  const auto flat6 = g.iadd(g.imul(i, c(6)), k);
  EXPECT_EQ(g.ifloordiv(flat6, c(6)), i);
  EXPECT_EQ(g.imod(flat6, c(6)), k);
  EXPECT_EQ(g.ifloordiv(flat6, c(3)), g.iadd(g.imul(i, c(2)), g.ifloordiv(k, c(3))));
  EXPECT_EQ(g.ifloordiv(k, c(6)), c(0));
  EXPECT_EQ(g.imod(k, c(6)), k);
  EXPECT_EQ(g.ifloordiv(g.iadd(g.imul(k, c(4)), c(3)), c(8)), g.ifloordiv(k, c(2)));
  // A symbolic divisor may be 0 unless the loop runs over it.
  EXPECT_NE(g.ifloordiv(g.imul(i, g.size(m)), g.size(m)), i);
  // Sums of data may overflow.
  const auto p = g.add_param({Role::Input, DType::I64, {n}, {}, false});
  const auto data = g.imul(g.load(p, {i}), c(8));
  EXPECT_EQ(g.expr(g.ifloordiv(data, c(8))).op, Op::FloorDiv);
}

TEST(Affine, Addresses) {
  Group g;
  const Dim n = Dim::symbol("n");
  const auto i = g.add_loop(LoopKind::Parallel, n), j = g.add_loop(LoopKind::Parallel, 10);
  const auto p = g.add_param({Role::Input, DType::F32, {n, 10}, {}, false});
  const auto q = g.add_param({Role::Input, DType::F32, {n, 10}, {{1, 0}}, false});
  const std::vector<ExprId> at{g.index(i), g.iadd(g.index(j), g.constant_i64(1))};
  const Affine a = address(g, p, at);
  ASSERT_TRUE(a.valid);
  EXPECT_EQ(a.coefficient(i), Dim(10));
  EXPECT_EQ(a.coefficient(j), Dim(1));
  EXPECT_EQ(a.constant, Dim(1));
  const Affine t = address(g, q, at);
  EXPECT_EQ(t.coefficient(i), Dim(1));
  EXPECT_EQ(t.coefficient(j), n);
  EXPECT_FALSE(affine(g, g.imul(g.index(i), g.index(j))).valid);
}

constexpr const char* kSoftmax = R"(group "softmax"
  check 1 "a \"quoted\" message"
  origin "prob"
  param p0: input f32[n, 1000]
  param p1: input f32[768, 1000] const order(1, 0) panel(1, 32)
  param p2: output f32[n, 1000]
  parallel i0: n {
    local t0: f32 = f32(-inf)
    reduce i1: 1000 {
      update t0 max= p0[i0, i1]
    }
    local t1: f32 = f32(0)
    reduce i2: 1000 {
      update t1 sum= exp(p0[i0, i2] - t0)
    }
    parallel i3: 1000 {
      %0 = p0[i0, i3] - t0
      store p2[i0, i3] = exp(%0) / (t1 + %0 * %0) + f32(0.1)
    }
  }
)";

TEST(Text, RoundTrip) {
  auto g = parse(kSoftmax);
  ASSERT_TRUE(g.ok()) << g.error().what();
  EXPECT_EQ(print(*g), kSoftmax);
  auto again = parse(print(*g));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(print(*again), print(*g));
  EXPECT_EQ(again->hash(), g->hash());
  again->name = "other";
  again->origins.clear();
  EXPECT_EQ(again->hash(), g->hash());
  again->loops[1].extent = 999;
  EXPECT_NE(again->hash(), g->hash());
}

TEST(Text, IsLinearInTheDag) {
  Group g;
  const auto p = g.add_param({Role::InOut, DType::I64, {4}, {}, false});
  auto x = g.load(p, {g.constant_i64(0)});
  for (int i = 0; i < 200; ++i) x = g.scalar(ScalarOp::Xor, DType::I64, {g.iadd(x, x), x});
  for (int i = 0; i < 300; ++i)
    x = g.scalar(ScalarOp::Not, DType::I64, {g.scalar(ScalarOp::Neg, DType::I64, {x})});
  g.body = {store_stmt(p, {g.constant_i64(1)}, x)};
  const std::string text = print(g);
  EXPECT_LT(text.size(), 20000u);
  auto back = parse(text);
  ASSERT_TRUE(back.ok()) << back.error().what();
  EXPECT_EQ(print(*back), text);
}

TEST(Text, Refuses) {
  const auto error = [](const char* body) {
    const auto g = parse(
        std::string("group \"g\"\n param p0: input f32[4]\n param p1: output f32[4]\n") + body);
    return g.ok() ? std::string() : std::string(g.error().what());
  };
  EXPECT_NE(error("store p0[0] = f32(0)").find("input p0 is written"), std::string::npos);
  EXPECT_NE(error("store p1[0] = 0").find("value is i64"), std::string::npos);
  EXPECT_NE(error("store p1[0] = p1[0]").find("output p1 is read"), std::string::npos);
  EXPECT_NE(error("store p1[0] = t0").find("local"), std::string::npos);
  EXPECT_NE(error("parallel i0: 4 { } store p1[i0] = f32(0)").find("outside its loop"),
            std::string::npos);
  EXPECT_NE(error("local t0: f32 = f32(0) parallel i0: 4 { set t0 = f32(1) }").find("independent"),
            std::string::npos);
  EXPECT_NE(error("parallel i0: 4 { } parallel i0: 4 { }").find("twice"), std::string::npos);
  EXPECT_NE(error("parallel i0: 4 { when lt(i0, 2) store p1[i0] = f32(0) }").find("is not serial"), std::string::npos);
  EXPECT_NE(error("serial i0: 4 { when i0 }").find("value is i64"), std::string::npos);
  EXPECT_NE(error("serial i0: 4 { store p1[i0] = f32(0) when lt(i0, 2) }").find("unknown statement"), std::string::npos);
  EXPECT_NE(error("store p1[0] = f32(1) + 1").find("differ"), std::string::npos);
  EXPECT_NE(error("store p1[0] = nothing(1)").find("unknown op"), std::string::npos);
  EXPECT_NE(error(("store p1[0] = " + std::string(100000, '(')).c_str()).find("deeply"),
            std::string::npos);
  EXPECT_FALSE(parse("").ok());
  EXPECT_FALSE(parse("group \"").ok());
}

TEST(Interpret, Softmax) {
  auto g = parse(R"(group "softmax"
  param p0: input f32[n, 3]
  param p1: output f32[n, 3]
  parallel i0: n {
    local t1: f32 = f32(0)
    reduce i2: 3 { update t1 sum= exp(p0[i0, i2]) }
    parallel i3: 3 { store p1[i0, i3] = exp(p0[i0, i3]) / t1 }
  })");
  ASSERT_TRUE(g.ok()) << g.error().what();
  std::vector<float> x{0, 0, 0, 0, 0, 0}, y(6, -1);
  const auto run = interpret(*g, {{x.data(), 6}, {y.data(), 6}}, {{"n", 2}});
  ASSERT_TRUE(run.ok()) << run.error().what();
  for (float v : y) EXPECT_FLOAT_EQ(v, 1.0f / 3);
  EXPECT_FALSE(interpret(*g, {{x.data(), 6}, {y.data(), 6}}, {{"n", 3}}).ok());
}

TEST(Interpret, GatherWrapsAndChecks) {
  auto g = parse(R"(group "gather"
  check 1 "index out of range"
  param p0: input f32[4]
  param p1: input i64[3]
  param p2: output f32[3]
  parallel i0: 3 { store p2[i0] = p0[wrap(p1[i0], 4, 1)] })");
  ASSERT_TRUE(g.ok()) << g.error().what();
  std::vector<float> x{1, 2, 3, 4}, y(3);
  std::vector<std::int64_t> at{-1, 0, 3};
  ASSERT_TRUE(interpret(*g, {{x.data(), 4}, {at.data(), 3}, {y.data(), 3}}, {}).ok());
  EXPECT_EQ(y, (std::vector<float>{4, 1, 4}));
  at[1] = 4;
  const auto failed = interpret(*g, {{x.data(), 4}, {at.data(), 3}, {y.data(), 3}}, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message(), "index out of range");
}

TEST(Interpret, SerialScanAndScatter) {
  auto g = parse(R"(group "scan"
  param p0: input i64[5]
  param p1: output i64[5]
  param p2: inout i64[2]
  local t0: i64 = 0
  serial i0: 5 {
    set t0 = t0 + p0[i0]
    store p1[i0] = t0
    store p2[mod(i0, 2)] sum= p0[i0]
  })");
  ASSERT_TRUE(g.ok()) << g.error().what();
  std::vector<std::int64_t> x{1, 2, 3, 4, 5}, y(5), z{10, 20};
  ASSERT_TRUE(interpret(*g, {{x.data(), 5}, {y.data(), 5}, {z.data(), 2}}, {}).ok());
  EXPECT_EQ(y, (std::vector<std::int64_t>{1, 3, 6, 10, 15}));
  EXPECT_EQ(z, (std::vector<std::int64_t>{19, 26}));
}

TEST(Interpret, LeavesIterationsOut) {
  const char* text = R"(group "positive"
  param p0: input i64[5]
  param p1: output i64[]
  local t0: i64 = 0
  serial i0: 5 {
    when gt(p0[i0], 0)
    set t0 = t0 + p0[i0]
  }
  store p1[] = t0
)";
  auto g = parse(text);
  ASSERT_TRUE(g.ok()) << g.error().what();
  EXPECT_EQ(print(*g), print(*parse(print(*g))));
  EXPECT_NE(print(*g).find("when gt("), std::string::npos) << print(*g);
  std::vector<std::int64_t> x{1, -2, 3, 0, 5};
  std::int64_t y = 0;
  ASSERT_TRUE(interpret(*g, {{x.data(), 5}, {&y, 1}}, {}).ok());
  EXPECT_EQ(y, 9);
}

}  // namespace
}  // namespace weft::loop
