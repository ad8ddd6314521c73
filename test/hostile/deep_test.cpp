// Depth and length: what nests 10,000 levels is refused, chains of 100,000 nodes go through, and what is small but
// unfolds into very much is refused before it does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/onnx/reader/build_model.h"
#include "hostile/judge.h"

namespace weft::hostile {
namespace {

using namespace onnx::test;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kDeep = 10'000, kLong = 100'000;

void expect_refused(const std::string& bytes, const char* text) {
  const Judged judged = judge(bytes);
  EXPECT_THAT(judged.faults, IsEmpty());
  EXPECT_EQ(judged.refused, 1u);
  EXPECT_THAT(judged.text, HasSubstr(text));
}

std::string varint(std::uint64_t v) {
  std::string s;
  for (; v >= 0x80; v >>= 7) s += static_cast<char>(v | 0x80);
  return s + static_cast<char>(v);
}

// Wraps `inner` into `levels` of the fields given, outermost first; without copying what is inside again and again.
std::string nested(std::string inner, int levels, const std::vector<int>& fields) {
  std::vector<std::string> heads;
  std::size_t size = inner.size();
  for (int i = 0; i < levels; ++i) {
    for (auto f = fields.rbegin(); f != fields.rend(); ++f) {
      heads.push_back(varint(static_cast<std::uint64_t>(*f) << 3 | 2) + varint(size));
      size += heads.back().size();
    }
  }
  std::string out;
  for (auto h = heads.rbegin(); h != heads.rend(); ++h) out += *h;
  return out + inner;
}

TEST(Deep, GraphsInGraphs) {
  // graph.node.attribute.g
  const std::string inside = nested(graph({}, {}, {}).data(), kDeep, {1, 5, 6});
  expect_refused(model(Message().bytes(1, "")).data() + Message().bytes(7, inside).data(), kError);
  const std::string list = nested(graph({}, {}, {}).data(), kDeep, {1, 5, 11});
  expect_refused(Message().number(1, 10).bytes(7, list).message(8, opset(21)).data(), kError);
}

TEST(Deep, TypesInTypes) {
  for (const int kind : {4, 9}) {  // sequences, optionals: type.kind.elem_type
    const std::string type = nested(Message().message(1, Message().number(1, 1)).data(), kDeep, {kind, 1});
    const Message x = Message().bytes(1, "x").bytes(2, type);
    expect_refused(model(Message().message(1, node("Identity", {"x"}, {"y"})).message(11, x).message(12, value_info("y", 1))).data(), kError);
  }
}

TEST(Deep, Groups) {
  for (const int field : {1, 7, 15, 100}) {
    std::string open, close;
    for (int i = 0; i < kDeep; ++i) {
      open += varint(static_cast<std::uint64_t>(field) << 3 | 3);
      close += varint(static_cast<std::uint64_t>(field) << 3 | 4);
    }
    expect_refused(open, kError);
    expect_refused(open + close, kError);
  }
}

Message function(const std::string& name, const std::vector<std::string>& callees) {
  Message f = Message().bytes(1, name).bytes(4, "a").bytes(5, "b").bytes(10, "local");
  for (std::size_t i = 0; i < callees.size(); ++i) {
    const std::string in = i == 0 ? "a" : "t" + std::to_string(i - 1);
    const std::string out = i + 1 == callees.size() ? "b" : "t" + std::to_string(i);
    Message n = node(callees[i], {in}, {out});
    if (callees[i] != "Neg") n.bytes(7, "local");
    f.message(7, n);
  }
  return f.message(9, opset(21)).message(9, opset(1, "local"));
}

std::string calls(int depth, int width, const char* last = "Neg") {
  Message m = model(graph({node("f0", {"x"}, {"y"}).bytes(7, "local")}, {"x"}, {"y"})).message(8, opset(1, "local"));
  for (int i = 0; i < depth; ++i) {
    const std::string callee = i + 1 == depth ? last : "f" + std::to_string(i + 1);
    m.message(25, function("f" + std::to_string(i), std::vector<std::string>(static_cast<std::size_t>(width), callee)));
  }
  return m.data();
}

TEST(Deep, Functions) {
  expect_refused(calls(kDeep, 1), "too deep");
  expect_refused(calls(60, 2), kError);      // 2^60 nodes when inlined
  expect_refused(calls(8, 10), kError);      // 10^8
  expect_refused(calls(20, 2, "Foo"), kError);  // 10^6 of an operator that there is not
  EXPECT_THAT(judge(calls(10, 2)).faults, IsEmpty());
}

Message int_attribute(const char* name, std::int64_t value) { return Message().bytes(1, name).number(20, 2).number(3, value); }

using Link = std::function<Message(const std::string& in, const std::string& out)>;

std::string chain(int length, const Link& link) {
  Message g;
  for (int i = 0; i < length; ++i) {
    g.message(1, link(i == 0 ? "x" : "v" + std::to_string(i), i + 1 == length ? "y" : "v" + std::to_string(i + 1)));
  }
  Message shape = Message().message(1, Message().bytes(2, "n")).message(1, Message().number(1, 4));
  Message x = Message().bytes(1, "x").message(2, Message().message(1, Message().number(1, 1).message(2, shape)));
  g.message(5, tensor("one", 7, {}).numbers(7, {1})).message(5, tensor("two", 7, {2}).numbers(7, {2, 3}));
  return model(g.bytes(2, "g").message(11, x).message(12, value_info("y", 1)), 18).data();
}

TEST(Deep, LongChains) {
  Limits limits;
  limits.code_every = 0;
  limits.seconds = 60;
  struct {
    const char* name;
    int length;
    Link link;
  } const chains[] = {
      {"Neg", kLong, [](auto& in, auto& out) { return node("Neg", {in}, {out}); }},
      {"Add with itself", kLong / 10, [](auto& in, auto& out) { return node("Add", {in, in}, {out}); }},
      {"Transpose", kLong / 10, [](auto& in, auto& out) { return node("Transpose", {in}, {out}); }},
      {"Softmax", kLong / 100, [](auto& in, auto& out) { return node("Softmax", {in}, {out}); }},
  };
  for (const auto& [name, length, link] : chains) {
    SCOPED_TRACE(name);
    const Judged judged = judge(chain(length, link), limits);
    EXPECT_THAT(judged.faults, IsEmpty());
    EXPECT_EQ(judged.accepted, 1u) << judged.text;
  }
}

// Sizes that grow with every node: expressions of sizes, and the sizes themselves.
TEST(Deep, SizesThatGrow) {
  Limits limits;
  limits.code_every = 0;
  const auto shapes = [](const std::vector<const char*>& ops, int rounds) {
    Message g;
    std::string at = "s";
    g.message(1, node("Shape", {"x"}, {"s"})).message(5, tensor("c", 7, {2}).numbers(7, {3, 5}));
    for (int i = 0; i < rounds; ++i) {
      for (const char* op : ops) {
        const std::string next = "s" + std::to_string(i) + op;
        g.message(1, op == std::string("Mul") ? node(op, {at, at}, {next}) : node(op, {at, "c"}, {next}));
        at = next;
      }
    }
    Message shape = Message().message(1, Message().bytes(2, "n")).message(1, Message().bytes(2, "m"));
    Message x = Message().bytes(1, "x").message(2, Message().message(1, Message().number(1, 1).message(2, shape)));
    g.message(1, node("ConstantOfShape", {at}, {"y"}));
    return model(g.bytes(2, "g").message(11, x).message(12, value_info("y", 1)), 18).data();
  };
  EXPECT_THAT(judge(shapes({"Mul", "Add"}, 64), limits).faults, IsEmpty());
  EXPECT_THAT(judge(shapes({"Div", "Add", "Mul"}, 64), limits).faults, IsEmpty());
  EXPECT_THAT(judge(shapes({"Add"}, 20'000), limits).faults, IsEmpty());
  EXPECT_THAT(judge(shapes({"Div", "Add"}, 10'000), limits).faults, IsEmpty());
  EXPECT_THAT(judge(shapes({"Max", "Min", "Sub"}, 2'000), limits).faults, IsEmpty());
  EXPECT_THAT(judge(chain(2'000, [](auto& in, auto& out) { return node("Concat", {in, in}, {out}).message(5, int_attribute("axis", 0)); }), limits).faults, IsEmpty());
  EXPECT_THAT(judge(chain(200, [](auto& in, auto& out) { return node("Tile", {in, "two"}, {out}); }), limits).faults, IsEmpty());
}

}  // namespace
}  // namespace weft::hostile
