// What a run promises: errors that name things, the caller's memory, same bits for any number of threads.
#include <atomic>
#include <cstring>
#include <thread>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

const char* kHead = R"(graph @head(%0 "x": f32[n, 8], %1 "scale": f32[8]) -> (f32[n, 8], f32[n]) where n in 0..64 {
  %2 = broadcast %1 {shape=[n, 8], axes=[1]} : f32[n, 8]
  %3 = mul %0, %2 : f32[n, 8]
  %4 = tanh %3 : f32[n, 8]
  %5 = reduce_sum %4 {axes=[1]} : f32[n]
  return %4, %5
})";

Tensor ramp(Sizes shape) {
  Tensor t = Tensor::zeros(DType::F32, std::move(shape)).value();
  for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, 0.01 * static_cast<double>(i % 97) - 0.4);
  return t;
}

std::string error_of(const runtime::Executable& exe, const Tensors& inputs, Tensors outputs = {}) {
  auto status = exe.run(inputs, outputs);
  return status.ok() ? "" : status.error().what();
}

TEST(Errors, NameWhatIsWrongWithInputs) {
  auto exe = executable(kHead);
  Tensor x = ramp({2, 8}), s = ramp({8});
  EXPECT_EQ(error_of(*exe, {x, s}), "");
  EXPECT_EQ(error_of(*exe, {x}), "error[wrong-input-count]: the number of inputs is wrong (expected 2, found 1)");
  EXPECT_EQ(error_of(*exe, {x, i64({8}, std::vector<double>(8, 1))}), "error[dtype-mismatch] at 'scale': the input has the wrong element type (expected f32, found i64)");
  EXPECT_EQ(error_of(*exe, {ramp({8}), s}),
            "error[rank-mismatch] at 'x': the input has the wrong number of dimensions (expected [n, 8], found [8])");
  EXPECT_EQ(error_of(*exe, {ramp({2, 7}), s}),
            "error[shape-mismatch] at 'x': dimension 1 of the input has the wrong size (expected 8, found 7)");
  EXPECT_EQ(error_of(*exe, {ramp({65, 8}), s}),
            "error[size-out-of-range]: dimension 'n' is outside the range this was compiled for (expected 0 <= n <= 64, found 65)");
  EXPECT_NE(error_of(*exe, {Tensor::view(DType::F32, {2, 8}, nullptr, nullptr), s}), "");
  EXPECT_EQ(error_of(*exe, {Tensor::view(DType::F32, {0, 8}, nullptr, nullptr), s}), "");
}

TEST(Errors, NameWhatIsWrongWithOutputs) {
  auto exe = executable(kHead);
  Tensor x = ramp({2, 8}), s = ramp({8});
  Tensor a = ramp({2, 8}), b = ramp({2});
  EXPECT_EQ(error_of(*exe, {x, s}, {a, b}), "");
  std::string wrong = exe->plan().output_names[1];
  EXPECT_EQ(error_of(*exe, {x, s}, {a, ramp({3})}),
            "error[output-mismatch] at '" + wrong + "': the tensor given for the output does not fit (expected f32[2], found f32[3])");
  EXPECT_NE(error_of(*exe, {x, s}, {a, i64({2}, {0, 0})}).find("output-mismatch"), std::string::npos);
  EXPECT_NE(error_of(*exe, {x, s}, {a, Tensor::view(DType::F32, {2}, b.data(), nullptr)}).find("output-read-only"), std::string::npos);
  EXPECT_NE(error_of(*exe, {x, s}, {x, b}).find("is also that of input 'x'"), std::string::npos);
  EXPECT_NE(error_of(*exe, {x, s}, {a, Tensor::mutable_view(DType::F32, {2}, a.mutable_data())}).find("output-overlaps"),
            std::string::npos);
}

TEST(Errors, NameTheNodeOfABadIndex) {
  auto exe = executable(R"(graph @t(%0 "x": f32[n], %1 "at": i64[k]) -> (f32[k]) where n in 0.., k in 0.. {
    %2 = gather %0, %1 {axis=0} : f32[k]  # node "/emb/Gather" op "Gather"
    return %2
  })");
  Tensor x = f32({3}, {5, 6, 7});
  expect_same(run(*exe, {x, i64({4}, {0, -1, 2, -3})}), {f32({4}, {5, 7, 7, 5})});
  for (double bad : {3.0, -4.0, 1e18}) {
    std::string text = error_of(*exe, {x, i64({2}, {0, bad})});
    EXPECT_NE(text.find("index-out-of-range"), std::string::npos) << text;
    EXPECT_NE(text.find("/emb/Gather"), std::string::npos) << text;
  }
  EXPECT_NE(error_of(*exe, {f32({0}, {}), i64({1}, {0})}), "");
  EXPECT_EQ(error_of(*exe, {f32({0}, {}), i64({0}, {})}), "");
}

TEST(Errors, SizesThatMustBeEqual) {
  auto exe = executable(R"(graph @t(%0 "x": f32[n, 4], %1 "y": f32[m]) -> (f32[m]) where n in 0.., m in 0.. {
    %2 = reshape %0 {shape=[m]} : f32[m]  # node "/flat/Reshape" op "Reshape"
    %3 = add %2, %1 : f32[m]
    return %3
  })");
  EXPECT_EQ(error_of(*exe, {ramp({2, 4}), ramp({8})}), "");
  std::string text = error_of(*exe, {ramp({2, 4}), ramp({9})});
  EXPECT_NE(text.find("shape-mismatch"), std::string::npos) << text;
  EXPECT_NE(text.find("/flat/Reshape"), std::string::npos) << text;
}

TEST(Binding, SolvesALinearSize) {
  const char* text = R"(graph @t(%0 "x": f32[n*2 + 1]) -> (f32[n]) where n in 1..10 {
    %1 = slice %0 {starts=[1], sizes=[n], steps=[2]} : f32[n]
    return %1
  })";
  check(text, {{ramp({3})}, {ramp({21})}});
  auto exe = executable(text);
  EXPECT_EQ(error_of(*exe, {ramp({4})}),
            "error[shape-mismatch] at 'x': dimension 0 of the input has the wrong size (expected n*2 + 1, found 4)");
  EXPECT_NE(error_of(*exe, {ramp({23})}).find("size-out-of-range"), std::string::npos);
}

TEST(Binding, OneSymbolInTwoInputs) {
  auto exe = executable(R"(graph @t(%0 "x": f32[n], %1 "y": f32[n]) -> (f32[n]) where n in 0..100 multiple 2 {
    %2 = add %0, %1 : f32[n]
    return %2
  })");
  EXPECT_EQ(error_of(*exe, {ramp({4}), ramp({4})}), "");
  EXPECT_EQ(error_of(*exe, {ramp({4}), ramp({6})}),
            "error[shape-mismatch] at 'y': dimension 0 of the input has the wrong size (expected n = 4, found 6)");
  EXPECT_EQ(error_of(*exe, {ramp({3}), ramp({3})}),
            "error[size-not-a-multiple]: dimension 'n' does not divide as compiled for (expected a multiple of 2, found 3)");
}

TEST(Run, WritesIntoTheCallersMemory) {
  auto exe = executable(kHead);
  const Tensor x = ramp({3, 8}), s = ramp({8});
  Tensors want = run(*exe, {x, s});
  std::vector<float> memory(24 + 3 + 2, 77);
  Tensors outputs{Tensor::mutable_view(DType::F32, {3, 8}, &memory[1]), Tensor::mutable_view(DType::F32, {3}, &memory[25])};
  ASSERT_TRUE(exe->run({x, s}, outputs).ok());
  EXPECT_EQ(std::memcmp(&memory[1], want[0].data(), 24 * 4), 0);
  EXPECT_EQ(std::memcmp(&memory[25], want[1].data(), 3 * 4), 0);
  EXPECT_EQ(memory[0], 77);
  EXPECT_EQ(memory[28], 77);
}

TEST(Run, ZeroRows) {
  auto exe = executable(kHead);
  Tensors got = run(*exe, {ramp({0, 8}), ramp({8})});
  EXPECT_EQ(got[0].shape(), (Sizes{0, 8}));
  EXPECT_EQ(got[1].shape(), (Sizes{0}));
}

// Enough work that every number of threads is really used.
const char* kWide = R"(graph @wide(%0 "x": f32[n, 96], %1 "w": f32[96, 64]) -> (f32[n, 64], f32[64]) where n in 0.. {
  %2 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 64]
  %3 = tanh %2 : f32[n, 64]
  %4 = exp %3 : f32[n, 64]
  %5 = reduce_sum %4 {axes=[0]} : f32[64]
  return %4, %5
})";

bool same_bits(const Tensors& a, const Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].byte_size() != b[i].byte_size() || std::memcmp(a[i].data(), b[i].data(), a[i].byte_size()) != 0) return false;
  }
  return a.size() == b.size();
}

TEST(Run, SameBitsForAnyNumberOfThreads) {
  auto exe = executable(kWide);
  Tensor x = ramp({1531, 96}), w = ramp({96, 64});
  Tensors one = run(*exe, {x, w}, 1);
  for (int threads : {2, 3, 8, 100000}) EXPECT_TRUE(same_bits(one, run(*exe, {x, w}, threads))) << threads;
}

TEST(Run, SameBitsFromEightThreadsAtOnce) {
  auto exe = executable(kWide);
  Tensor w = ramp({96, 64});
  std::vector<Tensor> xs;
  std::vector<Tensors> want;
  for (int k = 0; k < 4; ++k) {
    xs.push_back(ramp({200 + 37 * k, 96}));
    want.push_back(run(*exe, {xs.back(), w}, 1));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&, t] {
      for (int k = 0; k < 20; ++k) {
        std::size_t which = static_cast<std::size_t>(t + k) % xs.size();
        runtime::RunOptions options;
        options.threads = 1 + k % 3;
        Tensors got;
        wrong += !exe->run({xs[which], w}, got, options).ok() || !same_bits(got, want[which]);
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Stop, EndsALoopThatWouldNot) {
  auto exe = executable(R"(graph @t(%0 "x": f32[]) -> (f32[]) {
    %1 = constant {data=i64[](9223372036854775807)} : i64[]
    %2 = constant {data=bool[](true)} : bool[]
    %3 = loop %1, %2, %0 {carried=1} : f32[] regions {
      graph @body(%0: i64[], %1: bool[], %2: f32[]) -> (bool[], f32[]) {
        %3 = neg %2 : f32[]
        return %1, %3
      }
    }
    return %3
  })");
  std::atomic<bool> stop{false};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop = true;
  });
  runtime::RunOptions options;
  options.stop = &stop;
  Tensors outputs;
  auto status = exe->run({f32({}, {1})}, outputs, options);
  later.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), "stopped");
}

TEST(Stop, BeforeTheFirstStep) {
  auto exe = executable(kHead);
  std::atomic<bool> stop{true};
  runtime::RunOptions options;
  options.stop = &stop;
  Tensors outputs;
  auto status = exe->run({ramp({2, 8}), ramp({8})}, outputs, options);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), "stopped");
}

TEST(Print, ListsSlotsAndSteps) {
  auto exe = executable(kHead);
  std::string text = runtime::print(exe->plan());
  for (const char* part : {"plan @head {", "input 0 \"x\" : f32[n, 8]", "output 1", "launch ", " grid ", "return ("}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

}  // namespace
}  // namespace weft::compiler::testing
