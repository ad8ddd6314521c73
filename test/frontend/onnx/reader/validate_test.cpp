#include "frontend/onnx/reader/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/onnx/reader/build_model.h"
#include "frontend/onnx/reader/reader.h"

namespace weft::onnx {
namespace {

using namespace test;
using testing::HasSubstr;

std::string verdict(const Message& m) {
  auto read = read_model_bytes(bytes_of(m.data()));
  if (!read) return read.error().what();
  auto valid = validate(*read);
  return valid ? "valid" : valid.error().what();
}

Message neg() { return graph({node("Neg", {"x"}, {"y"}, "n")}, {"x"}, {"y"}); }

Message with_body(const Message& body) { return Message().bytes(1, "body").message(6, body).number(20, 5); }

TEST(Validate, Versions) {
  EXPECT_EQ(verdict(model(neg())), "valid");
  EXPECT_EQ(verdict(model(neg(), 7, 3)), "valid");
  EXPECT_EQ(verdict(model(neg(), 27, 13)), "valid");
  EXPECT_THAT(verdict(model(neg(), 28)), HasSubstr("unsupported[opset-unsupported]: opset 28"));
  EXPECT_EQ(verdict(model(neg(), 1)), "valid");
  EXPECT_THAT(verdict(model(neg(), 1000)), HasSubstr("expected opset 1 to 27, found 1000"));
  EXPECT_THAT(verdict(model(neg(), 0)), HasSubstr("opset 0 of ai.onnx does not exist"));
  EXPECT_THAT(verdict(model(neg(), -1)), HasSubstr("opset -1 of ai.onnx does not exist"));
  EXPECT_THAT(verdict(model(neg(), 21, 14)), HasSubstr("IR version 14 is newer than Weft reads (expected 3 to 13"));
  EXPECT_THAT(verdict(model(neg(), 21, 2)), HasSubstr("IR version 2 is older"));
  EXPECT_THAT(verdict(model(neg(), 21, 0)), HasSubstr("no IR version"));
  EXPECT_THAT(verdict(Message().number(1, 10).message(7, neg())), HasSubstr("opset_import"));
  EXPECT_THAT(verdict(Message().number(1, 10).message(8, opset(21))), HasSubstr("no graph"));
  EXPECT_THAT(verdict(Message()), HasSubstr("no IR version"));
  EXPECT_THAT(verdict(model(neg()).message(8, opset(20))), HasSubstr("imported as version 21 and 20"));
}

TEST(Validate, Domains) {
  const Message g = graph({node("Foo", {"x"}, {"y"}, "n").bytes(7, "example.org")}, {"x"}, {"y"});
  EXPECT_THAT(verdict(model(g)), HasSubstr("'example.org', which is not imported"));
  EXPECT_EQ(verdict(model(g).message(8, opset(1, "example.org"))), "valid");
}

TEST(Validate, NamesAndOrder) {
  EXPECT_THAT(verdict(model(graph({node("Neg", {"x"}, {"y"}), node("Abs", {"x"}, {"y"}, "again")}, {"x"}, {"y"}))),
              HasSubstr("at 'Abs again': value 'y' is defined twice"));
  EXPECT_THAT(verdict(model(graph({node("Neg", {"x"}, {"x"})}, {"x"}, {"x"}))), HasSubstr("'x' is defined twice"));
  EXPECT_THAT(verdict(model(graph({}, {"x", "x"}, {}))), HasSubstr("input 'x' is defined twice"));
  EXPECT_THAT(verdict(model(graph({node("Neg", {"z"}, {"y"}, "n")}, {"x"}, {"y"}))),
              HasSubstr("at 'Neg n': the value 'z' is not defined"));
  EXPECT_THAT(verdict(model(graph({}, {"x"}, {"q"}))), HasSubstr("output q"));
  EXPECT_THAT(verdict(model(graph({node("Neg", {"b"}, {"a"}, "n1"), node("Neg", {"a"}, {"b"}, "n2")}, {}, {"b"}))),
              HasSubstr("at 'Neg n1': the value 'b' is used before it is produced, by Neg n2"));
  EXPECT_THAT(verdict(model(graph({node("Neg", {"a"}, {"a"}, "self")}, {}, {}))), HasSubstr("Neg self"));
  EXPECT_THAT(verdict(model(graph({node("", {}, {"a"})}, {}, {}))), HasSubstr("no operator"));
  const Message w = tensor("w", 1, {1}).floats(4, {1});
  EXPECT_THAT(verdict(model(graph({}, {}, {"w"}, {w, w}))), HasSubstr("initializer 'w' is defined twice"));
  EXPECT_EQ(verdict(model(graph({}, {"w"}, {"w"}, {w}))), "valid");  // an input with a default
  EXPECT_THAT(verdict(model(graph({node("Neg", {"w"}, {"w"})}, {}, {}, {w}))), HasSubstr("defined twice"));
  EXPECT_EQ(verdict(model(graph({node("Split", {"x", ""}, {"", "y"})}, {"x"}, {"y"}))), "valid");
  const Message twice = node("Neg", {"x"}, {"y"}).message(5, Message().bytes(1, "a").number(3, 1))
                            .message(5, Message().bytes(1, "a").number(3, 1));
  EXPECT_THAT(verdict(model(graph({twice}, {"x"}, {"y"}))), HasSubstr("attribute 'a' is defined twice"));
  EXPECT_THAT(verdict(model(graph({}, {}, {}).message(11, Message().bytes(1, "x")))), HasSubstr("no element type"));
}

TEST(Validate, Subgraphs) {
  const auto outer = [](const Message& body) {
    return model(graph({node("Abs", {"x"}, {"a"}), node("If", {"x"}, {"y"}, "if").message(5, with_body(body)),
                        node("Neg", {"y"}, {"z"}, "after")}, {"x"}, {"z"}));
  };
  EXPECT_EQ(verdict(outer(graph({node("Neg", {"a"}, {"r"})}, {}, {"r"}))), "valid");
  EXPECT_EQ(verdict(outer(graph({}, {}, {"a"}))), "valid");
  EXPECT_EQ(verdict(outer(graph({node("Neg", {"a"}, {"r"})}, {"a"}, {"r"}))), "valid");  // hides the outer a
  EXPECT_THAT(verdict(outer(graph({node("Neg", {"z"}, {"r"})}, {}, {"r"}))), HasSubstr("used before it is produced, by Neg after"));
  EXPECT_THAT(verdict(outer(graph({node("Neg", {"y"}, {"r"})}, {}, {"r"}))), HasSubstr("used before"));
  // The body's own x comes later: an outer x is not what is meant.
  EXPECT_THAT(verdict(outer(graph({node("Neg", {"x"}, {"r"}), node("Abs", {"r"}, {"x"})}, {}, {"r"}))),
              HasSubstr("used before"));
}

Message function(std::string_view name, const std::vector<Message>& nodes) {
  Message f = Message().bytes(1, name).bytes(4, "a").bytes(5, "b").bytes(6, "alpha").bytes(10, "local");
  for (const Message& n : nodes) f.message(7, n);
  return f.message(9, opset(18)).message(9, opset(1, "local"));
}

Message call(std::string_view name) { return node(name, {"a"}, {"b"}).bytes(7, "local"); }

TEST(Validate, Functions) {
  const auto with = [](const std::vector<Message>& functions) {
    Message m = model(neg()).message(8, opset(1, "local"));
    for (const Message& f : functions) m.message(25, f);
    return verdict(m);
  };
  const Message plain = function("f", {node("Neg", {"a"}, {"b"})});
  EXPECT_EQ(with({plain}), "valid");
  EXPECT_THAT(with({plain, plain}), HasSubstr("function 'f' is defined twice"));
  EXPECT_THAT(with({function("f", {node("Neg", {"x"}, {"b"})})}), HasSubstr("at 'function f, Neg producing b'"));
  EXPECT_THAT(with({function("f", {})}), HasSubstr("'b' is not defined"));
  EXPECT_THAT(with({function("f", {call("f")})}), HasSubstr("calls itself"));
  EXPECT_THAT(with({function("f", {call("g")}), function("g", {call("f")})}), HasSubstr("calls itself"));
  EXPECT_EQ(with({function("f", {call("g")}), function("g", {call("h")}), function("h", {node("Neg", {"a"}, {"b"})})}), "valid");
  const auto reference = [](std::string_view to) { return Message().bytes(1, "axis").number(20, 2).bytes(21, to); };
  EXPECT_EQ(with({function("f", {node("Neg", {"a"}, {"b"}).message(5, reference("alpha"))})}), "valid");
  EXPECT_THAT(with({function("f", {node("Neg", {"a"}, {"b"}).message(5, reference("beta"))})}),
              HasSubstr("refers to 'beta'"));
  EXPECT_THAT(verdict(model(graph({node("Neg", {"x"}, {"y"}).message(5, reference("q"))}, {"x"}, {"y"}))),
              HasSubstr("outside any function"));
}

}  // namespace
}  // namespace weft::onnx
