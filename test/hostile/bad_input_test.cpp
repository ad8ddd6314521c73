// Files that are wrong, and small files that ask for very much: a clear error each, and little memory until then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "frontend/onnx/reader/build_model.h"
#include "hostile/judge.h"

namespace weft::hostile {
namespace {

using namespace onnx::test;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kBig = std::int64_t{1} << 40, kMax = INT64_MAX;

void expect_refused(const std::string& bytes, const testing::Matcher<std::string>& text) {
  const Judged judged = judge(bytes);
  EXPECT_THAT(judged.faults, IsEmpty());
  EXPECT_EQ(judged.refused, 1u);
  EXPECT_THAT(judged.text, text);
}

// Refused, or accepted because only a run would need the memory.
void expect_no_fault(const std::string& bytes) { EXPECT_THAT(judge(bytes).faults, IsEmpty()); }

Message longs(std::string_view name, const std::vector<std::int64_t>& values) {
  return tensor(name, 7, {static_cast<std::int64_t>(values.size())}).numbers(7, values);
}

Message scalar(std::string_view name, std::int64_t value) { return tensor(name, 7, {}).numbers(7, {value}); }

Message integers(std::string_view name, const std::vector<std::int64_t>& values) {
  return Message().bytes(1, name).number(20, 7).numbers(8, values);
}

// x (float, of the given shape) and i64 constants through one node.
std::string one_op(const char* op, const std::vector<std::int64_t>& shape, const std::vector<Message>& constants,
                   const std::vector<std::string>& inputs, const std::vector<Message>& attributes = {}) {
  Message n = node(op, inputs, {"y"}, "it");
  for (const Message& a : attributes) n.message(5, a);
  Message g = Message().message(1, n).bytes(2, "g");
  for (const Message& c : constants) g.message(5, c);
  g.message(11, value_info("x", 1, shape)).message(12, value_info("y", 1, {}));
  return model(g, 18).data();
}

TEST(BadInput, NoModelAtAll) {
  expect_refused("", HasSubstr(kError));
  expect_refused(std::string(1 << 20, '\0'), HasSubstr(kError));
  expect_refused(std::string(1 << 20, '\xff'), HasSubstr(kError));
  expect_refused("this is text, not a model\n", HasSubstr(kError));
}

TEST(BadInput, EveryPrefixOfAModel) {
  const std::string whole = slurp(WEFT_SOURCE_DIR "/test/models/mlp.onnx");
  ASSERT_GT(whole.size(), 500u);
  Limits limits;
  limits.code_every = 0;
  const Judged judged = judge(whole.size(), [&](std::size_t size) { return whole.substr(0, size); }, limits);
  EXPECT_THAT(judged.faults, IsEmpty());
  EXPECT_GT(judged.refused, whole.size() - 64);  // what is lost at the very end may be no more than a comment
  EXPECT_EQ(judge(whole).accepted, 1u);
}

TEST(BadInput, SizesWhoseProductOverflows) {
  expect_refused(one_op("Add", {2}, {tensor("c", 1, {kBig, kBig}).bytes(9, "abcd")}, {"x", "c"}), HasSubstr(kError));
  expect_refused(one_op("Add", {2}, {tensor("c", 1, {-1, -4}).bytes(9, "abcdefghabcdefgh")}, {"x", "c"}), HasSubstr(kError));
  expect_refused(one_op("Relu", {kBig, kBig, 4}, {}, {"x"}), HasSubstr(kError));
  expect_refused(one_op("Relu", {kMax}, {}, {"x"}), HasSubstr(kError));
  expect_no_fault(one_op("Relu", {2, -3}, {}, {"x"}));  // exporters write -1 for a size that is not known
}

// Operators whose result, or what lies behind it, is far too large or has no size at all.
TEST(BadInput, OperatorsThatAskForTooMuch) {
  const std::vector<std::pair<std::string, std::string>> models{
      {"Expand", one_op("Expand", {2}, {longs("s", {kBig, kBig, 2})}, {"x", "s"})},
      {"Expand large", one_op("Expand", {2}, {longs("s", {kBig, 2})}, {"x", "s"})},
      {"ConstantOfShape", one_op("ConstantOfShape", {2}, {longs("s", {kBig, kBig})}, {"s"})},
      {"ConstantOfShape large", one_op("ConstantOfShape", {2}, {longs("s", {kBig})}, {"s"})},
      {"ConstantOfShape negative", one_op("ConstantOfShape", {2}, {longs("s", {-5})}, {"s"})},
      {"Tile", one_op("Tile", {4}, {longs("s", {kMax})}, {"x", "s"})},
      {"Tile negative", one_op("Tile", {4}, {longs("s", {-1})}, {"x", "s"})},
      {"Pad", one_op("Pad", {4}, {longs("s", {kMax, kMax})}, {"x", "s"})},
      {"Pad negative", one_op("Pad", {4}, {longs("s", {-kMax, -kMax})}, {"x", "s"})},
      {"Reshape", one_op("Reshape", {4}, {longs("s", {kMax, kMax, -1})}, {"x", "s"})},
      {"Reshape twice -1", one_op("Reshape", {4}, {longs("s", {-1, -1})}, {"x", "s"})},
      {"Reshape negative", one_op("Reshape", {4}, {longs("s", {-2})}, {"x", "s"})},
      {"Slice", one_op("Slice", {4}, {longs("a", {INT64_MIN}), longs("b", {kMax}), longs("c", {0}), longs("d", {kMax})},
                       {"x", "a", "b", "c", "d"})},
      {"Slice step 0", one_op("Slice", {4}, {longs("a", {0}), longs("b", {4}), longs("c", {0}), longs("d", {0})},
                              {"x", "a", "b", "c", "d"})},
      {"Slice step MIN", one_op("Slice", {4}, {longs("a", {3}), longs("b", {INT64_MIN}), longs("c", {0}), longs("d", {INT64_MIN})},
                                {"x", "a", "b", "c", "d"})},
      {"Range", one_op("Range", {4}, {scalar("a", INT64_MIN), scalar("b", kMax), scalar("c", 1)}, {"a", "b", "c"})},
      {"Range delta 0", one_op("Range", {4}, {scalar("a", 0), scalar("b", kMax), scalar("c", 0)}, {"a", "b", "c"})},
      {"TopK", one_op("TopK", {4}, {longs("k", {kMax})}, {"x", "k"})},
      {"TopK negative", one_op("TopK", {4}, {longs("k", {-1})}, {"x", "k"})},
      {"OneHot", one_op("OneHot", {4}, {longs("i", {0, 1}), scalar("d", kMax), longs("v", {0, 1})}, {"i", "d", "v"})},
      {"Unsqueeze", one_op("Unsqueeze", {4}, {longs("a", {kMax})}, {"x", "a"})},
      {"Squeeze", one_op("Squeeze", {4}, {longs("a", {INT64_MIN})}, {"x", "a"})},
      {"Transpose", one_op("Transpose", {4, 2}, {}, {"x"}, {integers("perm", {0, kMax})})},
      {"Transpose twice", one_op("Transpose", {4, 2}, {}, {"x"}, {integers("perm", {1, 1})})},
      {"Conv pads", one_op("Conv", {1, 1, 8, 8}, {tensor("w", 1, {1, 1, 1, 1}).floats(4, {1})}, {"x", "w"},
                           {integers("pads", {kMax, kMax, kMax, kMax})})},
      {"Conv dilation", one_op("Conv", {1, 1, 8, 8}, {tensor("w", 1, {1, 1, 2, 2}).floats(4, {1, 1, 1, 1})}, {"x", "w"},
                               {integers("dilations", {kMax, kMax})})},
      {"Conv stride 0", one_op("Conv", {1, 1, 8, 8}, {tensor("w", 1, {1, 1, 1, 1}).floats(4, {1})}, {"x", "w"},
                               {integers("strides", {0, 0})})},
      {"Conv group 0", one_op("Conv", {1, 1, 8, 8}, {tensor("w", 1, {1, 1, 1, 1}).floats(4, {1})}, {"x", "w"},
                              {Message().bytes(1, "group").number(20, 2).number(3, 0)})},
      {"ConvTranspose", one_op("ConvTranspose", {1, 1, 8, 8}, {tensor("w", 1, {1, 1, 1, 1}).floats(4, {1})}, {"x", "w"},
                               {integers("strides", {kMax, kMax})})},
      {"MaxPool", one_op("MaxPool", {1, 1, 8, 8}, {}, {"x"}, {integers("kernel_shape", {kMax, kMax})})},
      {"AveragePool", one_op("AveragePool", {1, 1, 8, 8}, {}, {"x"},
                             {integers("kernel_shape", {2, 2}), integers("pads", {kMax, 1, kMax, 1})})},
      {"MaxPool negative", one_op("MaxPool", {1, 1, 8, 8}, {}, {"x"}, {integers("kernel_shape", {-2, -2})})},
      {"Resize", one_op("Resize", {1, 1, 8, 8}, {longs("s", {1, 1, kMax, kMax})}, {"x", "", "", "s"})},
      {"Resize scale", one_op("Resize", {1, 1, 8, 8}, {tensor("s", 1, {4}).floats(4, {1, 1, 1e38f, -1e38f})}, {"x", "", "s"})},
      {"Split", one_op("Split", {4}, {longs("s", {kMax, kMax})}, {"x", "s"})},
      {"Gather", one_op("Gather", {4}, {longs("i", {INT64_MIN})}, {"x", "i"})},
      {"ScatterND", one_op("ScatterND", {4}, {tensor("i", 7, {1, 1}).numbers(7, {kMax}), tensor("u", 1, {1}).floats(4, {1})},
                           {"x", "i", "u"})},
      {"Trilu", one_op("Trilu", {4, 4}, {scalar("k", INT64_MIN)}, {"x", "k"})},
      {"SpaceToDepth", one_op("SpaceToDepth", {1, 1, 8, 8}, {}, {"x"}, {Message().bytes(1, "blocksize").number(20, 2).number(3, kBig)})},
      {"DepthToSpace", one_op("DepthToSpace", {1, 4, 8, 8}, {}, {"x"}, {Message().bytes(1, "blocksize").number(20, 2).number(3, kMax)})},
      {"DepthToSpace 0", one_op("DepthToSpace", {1, 4, 8, 8}, {}, {"x"}, {Message().bytes(1, "blocksize").number(20, 2).number(3, 0)})},
      {"ReduceSum", one_op("ReduceSum", {4}, {longs("a", {kMax})}, {"x", "a"})},
      {"Softmax", one_op("Softmax", {4}, {}, {"x"}, {Message().bytes(1, "axis").number(20, 2).number(3, INT64_MIN)})},
      {"Concat", one_op("Concat", {kMax / 4}, {}, {"x", "x", "x", "x", "x"}, {Message().bytes(1, "axis").number(20, 2).number(3, 0)})},
      {"Cast", one_op("Cast", {4}, {}, {"x"}, {Message().bytes(1, "to").number(20, 2).number(3, kMax)})},
      {"EyeLike", one_op("EyeLike", {4, 4}, {}, {"x"}, {Message().bytes(1, "k").number(20, 2).number(3, INT64_MIN)})},
      {"Einsum", one_op("Einsum", {4}, {}, {"x", "x"}, {Message().bytes(1, "equation").number(20, 3).bytes(4, std::string(100'000, 'a') + ",b->")})},
      {"LSTM", one_op("LSTM", {1, 1, 1}, {tensor("w", 1, {1, 4, 1}).floats(4, {1, 1, 1, 1}), tensor("r", 1, {1, 4, 1}).floats(4, {1, 1, 1, 1})},
                      {"x", "w", "r"}, {Message().bytes(1, "hidden_size").number(20, 2).number(3, kMax)})},
  };
  std::vector<std::string> faults;
  Limits limits;
  limits.seconds = 10;
  const Judged judged = judge(models.size(), [&](std::size_t i) { return models[i].second; }, limits);
  for (const std::string& fault : judged.faults) ADD_FAILURE() << models[std::stoul(fault.substr(5))].first << ": " << fault;
  EXPECT_GT(judged.refused, models.size() / 2);
}

TEST(BadInput, CyclesAndNamesDefinedTwice) {
  expect_refused(model(graph({node("Neg", {"b"}, {"a"}), node("Neg", {"a"}, {"b"})}, {"x"}, {"b"})).data(),
                 HasSubstr("used before it is produced"));
  expect_refused(model(graph({node("Neg", {"x"}, {"y"}), node("Abs", {"x"}, {"y"})}, {"x"}, {"y"})).data(),
                 HasSubstr("'y' is defined twice"));
  expect_refused(model(graph({node("Neg", {"x"}, {"y"})}, {"x", "x"}, {"y"})).data(), HasSubstr("'x' is defined twice"));
  // Two nodes of one name are legal: names of nodes are labels.
  expect_no_fault(model(graph({node("Neg", {"x"}, {"t"}, "n"), node("Neg", {"t"}, {"y"}, "n")}, {"x"}, {"y"})).data());
}

TEST(BadInput, ExternalDataThatEscapes) {
  for (const char* place : {"../secret", "/etc/passwd", "a/../../secret", "", ".", "/proc/self/mem", "..\\secret", "/dev/zero"}) {
    const Message outside = tensor("c", 1, {2}).number(14, 1).message(13, entry("location", place));
    expect_refused(one_op("Add", {2}, {outside}, {"x", "c"}), HasSubstr(kError));
  }
}

TEST(BadInput, NamesOfAnySize) {
  const std::string name(1 << 20, 'n'), odd("\0\n\xff\"%{}\\", 8);
  for (const std::string& n : {name, odd}) {
    expect_no_fault(model(graph({node("Neg", {n}, {"y"}, n)}, {n}, {"y"})).data());
    Message shape = Message().message(1, Message().bytes(2, n));
    Message x = Message().bytes(1, "x").message(2, Message().message(1, Message().number(1, 1).message(2, shape)));
    expect_no_fault(model(Message().message(1, node("Neg", {"x"}, {"y"})).message(11, x).message(12, value_info("y", 1))).data());
  }
}

}  // namespace
}  // namespace weft::hostile
