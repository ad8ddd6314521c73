// Kernels of the tile language: recorded, interpreted, stepped through and compiled, with one result.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <random>

#include "weft/tile.h"

namespace weft::tile {
namespace {

using testing::HasSubstr;

std::vector<float> numbers(std::size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (float& v : x) v = std::uniform_real_distribution<float>(-2, 2)(random);
  return x;
}

// Runs it in every way; `arguments` makes fresh ones and `check` looks at what they became.
template <class Make, class Check>
void everywhere(const Kernel& k, std::int64_t grid, Make make, Check check) {
  for (const std::string way : {"interpret", "debug", "cpu", "opencl"}) {
    SCOPED_TRACE(way);
    auto data = make();
    std::optional<Error> error;
    if (way == "interpret" || way == "debug") {
      const auto done = way == "debug" ? k.debug(grid, data.arguments()) : k.interpret(grid, data.arguments());
      if (!done.ok()) error = done.error();
    } else {
      CompileOptions options;
      options.target = way;
      const auto compiled = k.compile(options);
      ASSERT_TRUE(compiled.ok()) << compiled.error().what();
      const auto done = compiled->run(grid, data.arguments());
      if (!done.ok()) error = done.error();
    }
    ASSERT_FALSE(error) << error->what();
    check(data);
  }
}

TEST(TileKernel, VectorAdd) {
  const Kernel add = kernel("add", [](In<float> x, In<float> y, Out<float> sum, Int n) {
    const Tile i = program_id() * 64 + lanes(64);
    store(sum, i, load(x, i, i < n) + load(y, i, i < n), i < n);
  });
  struct Data {
    std::vector<float> x = numbers(1000, 1), y = numbers(1000, 2), sum = std::vector<float>(1000);
    Arguments arguments() { return {x, y, sum, 1000}; }
  };
  everywhere(add, 16, [] { return Data(); }, [](const Data& d) {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(d.sum[i], d.x[i] + d.y[i]) << i;
  });
  Data d;
  const Traffic traffic = add.interpret(16, d.arguments()).value();
  EXPECT_EQ(traffic.loaded, 8000);
  EXPECT_EQ(traffic.stored, 4000);
}

TEST(TileKernel, SoftmaxOfRowsWithALoop) {
  const int width = 100, block = 32;
  const Kernel softmax = kernel("softmax", [=](In<float> x, Out<float> y, Int n) {
    const Tile row = program_id() * n;
    Var most = full<float>(1, block, -INFINITY), total = zeros<float>(1, block);
    for (Tile k : range(0, n, block)) {
      const Tile j = k + lanes(block);
      const Tile v = where(j < n, load(x, row + j, j < n), -INFINITY);
      const Tile higher = maximum(most, v);
      total = total * where(most == -INFINITY, 0.0f, exp(most - higher)) + where(j < n, exp(v - higher), 0.0f);
      most = higher;
    }
    const Tile top = max(most);
    const Tile scale = sum(where(most == -INFINITY, 0.0f, total * exp(most - top)));
    for (Tile k : range(0, n, block)) {
      const Tile j = k + lanes(block);
      store(y, row + j, exp(load(x, row + j, j < n) - top) / scale, j < n);
    }
  });
  struct Data {
    std::vector<float> x = numbers(300), y = std::vector<float>(300);
    Arguments arguments() { return {x, y, 100}; }
  };
  everywhere(softmax, 3, [] { return Data(); }, [&](const Data& d) {
    for (int row = 0; row < 3; ++row) {
      double most = -INFINITY, total = 0;
      for (int i = 0; i < width; ++i) most = std::max<double>(most, d.x[row * width + i]);
      for (int i = 0; i < width; ++i) total += std::exp(d.x[row * width + i] - most);
      for (int i = 0; i < width; ++i)
        ASSERT_NEAR(d.y[row * width + i], std::exp(d.x[row * width + i] - most) / total, 1e-6) << row << " " << i;
    }
  });
}

template <int R, int C, int K>
void matmul(In<float> a, In<float> b, Out<float> c, Int m, Int n, Int depth) {
  const Tile across = (n + (C - 1)) / C;
  const Tile i = program_id() / across * R + tile::rows(R), j = program_id() % across * C + lanes(C);
  const Matrix left(a, m, depth), right(b, depth, n), out(c, m, n);
  Var acc = zeros<float>(R, C);
  for (Tile k : range(0, depth, K)) acc = dot(left.load(i, k + lanes(K)), right.load(k + tile::rows(K), j), acc);
  out.store(i, j, maximum(acc, 0.0f));
}

TEST(TileKernel, MatrixProductWithEpilogue) {
  const Kernel k = kernel("matmul", matmul<8, 32, 4>);
  struct Data {
    std::vector<float> a = numbers(19 * 23, 1), b = numbers(23 * 45, 2), c = std::vector<float>(19 * 45);
    Arguments arguments() { return {a, b, c, 19, 45, 23}; }
  };
  everywhere(k, 3 * 2, [] { return Data(); }, [](const Data& d) {
    for (int i = 0; i < 19; ++i) {
      for (int j = 0; j < 45; ++j) {
        double sum = 0;
        for (int q = 0; q < 23; ++q) sum += double{d.a[i * 23 + q]} * d.b[q * 45 + j];
        ASSERT_NEAR(d.c[i * 45 + j], std::max(sum, 0.0), 1e-4) << i << " " << j;
      }
    }
  });
}

TEST(TileKernel, HistogramWithAtomics) {
  const Kernel k = kernel("histogram", [](In<std::int32_t> x, InOut<std::int32_t> counts, Int n) {
    const Tile i = program_id() * 32 + lanes(32);
    atomic_add(counts, load(x, i, i < n), 1, i < n);
  });
  struct Data {
    std::vector<std::int32_t> x = std::vector<std::int32_t>(5000), counts = std::vector<std::int32_t>(10);
    Arguments arguments() { return {x, counts, 5000}; }
  };
  const auto make = [] {
    Data d;
    for (int i = 0; i < 5000; ++i) d.x[i] = i * i % 10;
    return d;
  };
  everywhere(k, 157, make, [](const Data& d) {
    std::vector<std::int32_t> expected(10);
    for (const int v : d.x) ++expected[v];
    EXPECT_EQ(d.counts, expected);
  });
}

TEST(TileKernel, RunningSumBranchesAndIntegers) {
  const Kernel k = kernel("running", [](In<std::int64_t> x, Out<std::int64_t> y, Out<std::uint8_t> even) {
    const Tile i = tile::rows(4) * 8 + lanes(8);
    Var v = load(x, i);
    Var factor = 1;
    when(program_id() % 2 == 0, [&] { factor = 3; }, [&] { v = -v; });
    const Tile shifted = (cumsum(v) * factor + 1) / 2;
    store(y, program_id() * 32 + i, shifted);
    store(even, program_id() * 32 + i, cast<std::uint8_t>((shifted & 1) == 0));
  });
  struct Data {
    std::vector<std::int64_t> x = std::vector<std::int64_t>(32), y = std::vector<std::int64_t>(64);
    std::vector<std::uint8_t> even = std::vector<std::uint8_t>(64);
    Arguments arguments() {
      std::iota(x.begin(), x.end(), -7);
      return {x, y, even};
    }
  };
  everywhere(k, 2, [] { return Data(); }, [](const Data& d) {
    for (int p = 0; p < 2; ++p) {
      for (int i = 0; i < 32; ++i) {
        std::int64_t sum = 0;
        for (int q = i / 8 * 8; q <= i; ++q) sum += d.x[q];
        const std::int64_t value = (p == 0 ? sum * 3 : -sum) + 1;
        const std::int64_t half = value >= 0 ? value / 2 : -((1 - value) / 2);
        ASSERT_EQ(d.y[p * 32 + i], half) << p << " " << i;
        ASSERT_EQ(d.even[p * 32 + i], half % 2 == 0) << p << " " << i;
      }
    }
  });
}

TEST(TileKernel, NarrowFloatsAreComputedInF32) {
  const Kernel k = kernel("half", [](InOut<F16> x) {
    const Tile i = lanes(16);
    store(x, i, load(x, i) * 0.5f + 1);
  });
  struct Data {
    std::vector<std::uint16_t> x = std::vector<std::uint16_t>(16, 0x3c00);  // 1
    Arguments arguments() { return {Tensor::mutable_view(DType::F16, {16}, x.data())}; }
  };
  everywhere(k, 1, [] { return Data(); }, [](const Data& d) {
    EXPECT_EQ(d.x, std::vector<std::uint16_t>(16, 0x3e00));  // 1.5
  });
}

TEST(TileKernel, AVariableThatALoopLeavesAloneStaysWhatItWas) {
  const Kernel k = kernel("loop", [](Out<float> y, Int n) {
    Var base = program_id() * 16, sum = zeros<float>(1, 16);
    for (Tile i : range(0, n)) sum += cast<float>(i);
    store(y, base + lanes(16), sum);
  });
  const std::string text = k.text("tile").value();
  EXPECT_THAT(text, HasSubstr(": f32[1,16] {"));  // carries the sum alone
  std::vector<float> y(32);
  k.compile().value().run(2, {y, 5}).value();
  EXPECT_EQ(y, std::vector<float>(32, 10));
  k.compile().value().run(2, {y, 0}).value();
  EXPECT_EQ(y, std::vector<float>(32, 0));
}

TEST(TileKernel, DebugShowsValues) {
  double seen = 0;
  int programs = 0;
  const Kernel k = kernel("look", [&](In<float> x, Out<float> y) {
    const Tile v = load(x, program_id() * 4 + lanes(4)) * 2.0f;
    seen += sum(v).at();
    ++programs;
    store(y, program_id() * 4 + lanes(4), v);
  });
  programs = 0, seen = 0;  // the body ran once to be recorded
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, y(8);
  k.debug(2, {x, y}).value();
  EXPECT_EQ(programs, 2);
  EXPECT_EQ(seen, 72);
  EXPECT_EQ(y[7], 16);
}

TEST(TileKernel, PrintsByProgram) {
  const Kernel k = kernel("print", [](In<float> x) {
    const Tile i = program_id() * 4 + lanes(4);
    print("x", load(x, i));
    when(program_id() == 1, [&] { print("i", i); });
  });
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8.5};
  const std::string expected = "x [program 0]: 1 2 3 4\nx [program 1]: 5 6 7 8.5\ni [program 1]: 4 5 6 7\n";
  for (const std::string target : {"cpu", "ref", "opencl"}) {
    CompileOptions options;
    options.target = target;
    const CompiledKernel compiled = k.compile(options).value();
    testing::internal::CaptureStderr();
    compiled.run(2, {x}).value();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), expected) << target;
  }
  testing::internal::CaptureStderr();
  k.debug(2, {x}).value();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), expected);
}

TEST(TileKernel, ChecksFailEverywhere) {
  const Kernel k = kernel("checked", [](In<float> x) { check(load(x, lanes(4)) > 0.0f, "x is positive"); });
  const std::vector<float> good = {1, 1, 1, 1}, bad = {1, 1, 0, 1};
  for (const std::string target : {"cpu", "opencl"}) {
    CompileOptions options;
    options.target = target;
    const CompiledKernel compiled = k.compile(options).value();
    EXPECT_TRUE(compiled.run(1, {good}).ok()) << target;
    const auto failed = compiled.run(1, {bad});
    ASSERT_FALSE(failed.ok()) << target;
    EXPECT_STREQ(failed.error().what(), "error[check-failed] at 'checked': x is positive");
  }
  EXPECT_FALSE(k.interpret(1, {bad}).ok());
  EXPECT_FALSE(k.debug(1, {bad}).ok());
}

}  // namespace
}  // namespace weft::tile
