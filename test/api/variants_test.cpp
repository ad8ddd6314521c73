// Sizes with names of their own that meet in one operator: equal, or one of them is 1; a program takes both.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "frontend/onnx/reader/build_model.h"
#include "weft/weft.h"

namespace weft {
namespace {

using namespace onnx::test;

// A float input of one dimension that is called `size`.
Message vector_input(const char* name, const char* size) {
  const Message dims = Message().message(1, Message().bytes(2, size));
  return Message().bytes(1, name).message(2, Message().message(1, Message().number(1, 1).message(2, dims)));
}

// y = x[n] + w[m], in a file that lives as long as this.
class SumFile {
 public:
  SumFile() : path_(std::filesystem::temp_directory_path() / ("weft-variants-" + std::to_string(getpid()) + ".onnx")) {
    Message g = Message().message(1, node("Add", {"x", "w"}, {"y"})).bytes(2, "g");
    g.message(11, vector_input("x", "n")).message(11, vector_input("w", "m")).message(12, vector_input("y", "k"));
    std::ofstream(path_, std::ios::binary) << onnx::test::model(g, 18).data();
  }
  ~SumFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

Tensor counting(std::int64_t size) {
  Tensor t = Tensor::zeros(DType::F32, {size}).value();
  for (std::int64_t i = 0; i < size; ++i) t.set_f64(i, static_cast<double>(i + 1));
  return t;
}

Program program_of(const std::string& path, const char* target = "cpu") {
  CompileOptions options;
  options.target = target;
  options.cache = false;
  return compile(load(path).value(), options).value();
}

// What is wrong with the sum of vectors of these sizes, or "".
std::string fault(const Program& program, std::int64_t n, std::int64_t m) {
  const auto outputs = program.run({counting(n), counting(m)});
  if (!outputs.ok()) return outputs.error().what();
  const Tensor& y = (*outputs)[0];
  if (y.size() != std::max(n, m)) return "the size is " + std::to_string(y.size());
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const double want = static_cast<double>((n == 1 ? 1 : i + 1) + (m == 1 ? 1 : i + 1));
    if (y.f64(i) != want) return "element " + std::to_string(i) + " is " + std::to_string(y.f64(i));
  }
  return "";
}

TEST(Variants, TakeASizeOf1WhereItIsSpreadOut) {
  const SumFile file;
  for (const char* target : {"cpu", "ref"}) {
    const Program program = program_of(file.path(), target);
    for (const auto& [n, m] : {std::pair{5, 5}, {5, 1}, {1, 7}, {1, 1}, {5, 1}, {6, 6}}) {
      EXPECT_EQ(fault(program, n, m), "") << target << " " << n << " + " << m;
    }
  }
}

TEST(Variants, StillRefuseSizesThatDoNotMeet) {
  const SumFile file;
  const Program program = program_of(file.path());
  EXPECT_NE(fault(program, 5, 3), "");
  EXPECT_EQ(fault(program, 5, 5), "");
}

TEST(Variants, AreMadeForMoreSizesThanAreKept) {
  const SumFile file;
  const Program program = program_of(file.path());
  for (std::int64_t n = 2; n < 20; ++n) EXPECT_EQ(fault(program, n, 1), "") << n;
  EXPECT_EQ(fault(program, 2, 1), "");
}

TEST(Variants, ServeManyCallers) {
  const SumFile file;
  const Program program = program_of(file.path());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 10; ++k) wrong += !fault(program, 2 + (t + k) % 3, 1).empty();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace weft
