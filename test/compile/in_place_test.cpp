// Outputs in the memory of inputs: which kernels allow it, and that runs do it and stay right.
#include "compile/in_place.h"

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

using Pairs = std::vector<InPlacePair>;

Pairs pairs(const std::string& body) {
  auto group = loop::parse("group \"g\"\n" + body);
  EXPECT_TRUE(group.ok()) << (group.ok() ? "" : group.error().what());
  return group.ok() ? in_place_pairs(*group) : Pairs();
}

TEST(InPlace, ElementForElement) {
  EXPECT_EQ(pairs(R"(  param p0: input f32[n, 8]
  param p1: input f32[8]
  param p2: output f32[n, 8]
  parallel i0: n {
    parallel i1: 8 {
      store p2[i0, i1] = p0[i0, i1] + p1[i1]
    }
  }
)"), (Pairs{{2, 0}}));
}

TEST(InPlace, AnotherShapeOfTheSameAddresses) {
  EXPECT_EQ(pairs(R"(  param p0: input f32[n, 2, 4]
  param p1: output f32[n, 8]
  parallel i0: n {
    parallel i1: 2 {
      parallel i2: 4 {
        store p1[i0, i1 * 4 + i2] = max(p0[i0, i1, i2], f32(0))
      }
    }
  }
)"), (Pairs{{1, 0}}));
}

TEST(InPlace, EpilogueOfAProductButNotItsOperands) {
  EXPECT_EQ(pairs(R"(  param p0: input f32[n, 8]
  param p1: input f32[8, 8]
  param p2: input f32[n, 8]
  param p3: output f32[n, 8]
  parallel i0: n {
    parallel i1: 8 {
      local t0: f32 = f32(0)
      reduce i2: 8 {
        update t0 sum= p0[i0, i2] * p1[i2, i1]
      }
      store p3[i0, i1] = t0 + p2[i0, i1]
    }
  }
)"), (Pairs{{3, 2}}));
}

TEST(InPlace, RowsThatAreReadBeforeTheyAreWritten) {
  EXPECT_EQ(pairs(R"(  param p0: input f32[n, 8]
  param p1: output f32[n, 8]
  parallel i0: n {
    local t0: f32 = f32(0)
    reduce i1: 8 {
      update t0 sum= p0[i0, i1]
    }
    parallel i2: 8 {
      store p1[i0, i2] = p0[i0, i2] / t0
    }
  }
)"), (Pairs{{1, 0}}));
}

TEST(InPlace, RefusedWhereOthersReadIt) {
  // Another element, and one that another iteration writes.
  EXPECT_EQ(pairs(R"(  param p0: input f32[8]
  param p1: output f32[8]
  parallel i0: 8 {
    store p1[i0] = p0[7 - i0]
  }
)"), Pairs{});
  EXPECT_EQ(pairs(R"(  param p0: input f32[4, 4]
  param p1: output f32[4, 4]
  parallel i0: 4 {
    parallel i1: 4 {
      store p1[i0, i1] = p0[i1, i0]
    }
  }
)"), Pairs{});
  // After the write.
  EXPECT_EQ(pairs(R"(  param p0: input f32[8]
  param p1: output f32[8]
  param p2: output f32[8]
  parallel i0: 8 {
    store p1[i0] = p0[i0] + f32(1)
    store p2[i0] = p0[i0] * f32(2)
  }
)"), (Pairs{{2, 0}}));
  // Elements of another width.
  EXPECT_EQ(pairs(R"(  param p0: input f32[8]
  param p1: output f64[8]
  parallel i0: 8 {
    store p1[i0] = cast.f64(p0[i0])
  }
)"), Pairs{});
}

// A product's epilogue reads a value for the last time: the result lies in its memory.
TEST(InPlace, RunsTakeLessMemoryAndStayRight) {
  const std::string text = R"(graph @t(%0 "x": f32[n, 64], %1 "w": f32[64, 64]) -> (f32[n, 64]) where n in 0.. {
    %2 = cum_sum %0 {axis=0, exclusive=false, reverse=false} : f32[n, 64]
    %3 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 64]
    %4 = add %3, %2 : f32[n, 64]
    %5 = cum_sum %4 {axis=0, exclusive=false, reverse=false} : f32[n, 64]
    return %5
  })";
  auto exe = executable(text);
  ASSERT_TRUE(exe);
  const std::int64_t n = 100, value = n * 64 * 4;
  auto memory = exe->memory({{n, 64}, {64, 64}});
  ASSERT_TRUE(memory.ok());
  EXPECT_LE(memory->arena, value) << runtime::print(exe->plan());
  std::mt19937 random(3);
  const Tensors inputs{random_tensor(DType::F32, {n, 64}, random), random_tensor(DType::F32, {64, 64}, random)};
  Tensors outputs;
  ASSERT_TRUE(exe->run(inputs, outputs).ok());
  const Tensors wanted = graph::interpret(parsed(text), inputs).value();
  for (std::int64_t i = 0; i < wanted[0].size(); ++i) ASSERT_EQ(outputs[0].f64(i), wanted[0].f64(i)) << i;
}

}  // namespace
}  // namespace weft::compiler::testing
