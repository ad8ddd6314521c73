// What `weft verify MODEL` chooses by itself, and what it compares with, for a model that is not compiled for every size and value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "frontend/onnx/reader/build_model.h"

namespace {

namespace fs = std::filesystem;
using namespace weft::onnx::test;
using testing::HasSubstr;

Message typed(const char* name, int type, const Message& shape) {
  return Message().bytes(1, name).message(2, Message().message(1, Message().number(1, type).message(2, shape)));
}

// A float whose shape is not declared.
Message unshaped(const char* name) {
  return Message().bytes(1, name).message(2, Message().message(1, Message().number(1, 1)));
}

Message branch(const char* attribute, const Message& body_node, const char* output) {
  const Message g = Message().message(1, body_node).bytes(2, attribute).message(12, unshaped(output));
  return Message().bytes(1, attribute).number(20, 5).message(6, g);
}

// y = mode == 3 ? reshape(x[n], [4, 8]) : -x; the ranks differ, and only 32 elements make 4 x 8.
std::string moded_model() {
  Message choice = node("If", {"is_3"}, {"y"}, "choice");
  choice.message(5, branch("then_branch", node("Reshape", {"x", "shape"}, {"a"}), "a"));
  choice.message(5, branch("else_branch", node("Neg", {"x"}, {"b"}), "b"));
  Message g = Message().message(1, node("Equal", {"mode", "three"}, {"is_3"})).message(1, choice).bytes(2, "g");
  g.message(5, tensor("three", 7, {}).numbers(7, {3})).message(5, tensor("shape", 7, {2}).numbers(7, {4, 8}));
  g.message(11, typed("x", 1, Message().message(1, Message().bytes(2, "n")))).message(11, typed("mode", 7, Message()));
  g.message(12, unshaped("y"));
  return model(g, 18).data();
}

// The exit code and all that is printed.
std::pair<int, std::string> weft(const std::string& arguments) {
  FILE* pipe = popen(("WEFT_CACHE_DIR=off '" WEFT_BINARY "' " + arguments + " 2>&1").c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

// y = x[n] + w[m].
std::string sum_model() {
  Message g = Message().message(1, node("Add", {"x", "w"}, {"y"})).bytes(2, "g");
  g.message(11, typed("x", 1, Message().message(1, Message().bytes(2, "n"))));
  g.message(11, typed("w", 1, Message().message(1, Message().bytes(2, "m")))).message(12, unshaped("y"));
  return model(g, 18).data();
}

TEST(Defaults, ASizeOf1IsSpreadAsTheProgramSpreadsIt) {
  const fs::path file = fs::temp_directory_path() / ("weft-sum-" + std::to_string(getpid()) + ".onnx");
  std::ofstream(file, std::ios::binary) << sum_model();
  const auto [code, text] = weft("verify '" + file.string() + "' --dim n=5 --dim m=1");
  EXPECT_EQ(code, 0) << text;
  EXPECT_THAT(text, HasSubstr("[5]"));
  fs::remove(file);
}

TEST(Defaults, AreValuesTheModelComparesWithAndSizesItRunsWith) {
  const fs::path file = fs::temp_directory_path() / ("weft-defaults-" + std::to_string(getpid()) + ".onnx");
  std::ofstream(file, std::ios::binary) << moded_model();
  const auto [code, text] = weft("verify '" + file.string() + "'");
  EXPECT_EQ(code, 0) << text;
  EXPECT_THAT(text, HasSubstr("n=32"));
  EXPECT_THAT(text, HasSubstr("[4, 8]"));
  fs::remove(file);
}

}  // namespace
