#include "frontend/onnx/reader/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/onnx/reader/build_model.h"

namespace weft::onnx {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Model> read(const Message& m, const Limits& limits = {}) { return read_model_bytes(bytes_of(m.data()), {}, limits); }

Result<Model> read_tensor(const Message& t, const Limits& limits = {}) {
  return read(model(graph({}, {}, {"w"}, {t})), limits);
}

std::string refusal(const Result<Model>& r) { return r ? "accepted" : r.error().what(); }

const Tensor& first(const Model& m) { return m.graph->initializers.at(0).tensor; }

// The model keeps views of the message, which must live as long.
#define READ_TENSOR(var, message)                               \
  const Message var##_bytes = model(graph({}, {}, {"w"}, {message})); \
  auto var##_model = read(var##_bytes);                         \
  ASSERT_TRUE(var##_model) << var##_model.error().what();       \
  const Tensor& var = first(*var##_model)

TEST(Reader, ModelFields) {
  Message m = model(graph({node("Add", {"x", ""}, {"y"}, "n").bytes(7, "ai.onnx").message(9, entry("k", "v"))}, {"x"}, {"y"}));
  m.bytes(2, "maker").bytes(3, "1.2").number(5, 7).message(14, entry("a", "b")).message(8, opset(3, "com.x"));
  m.message(20, Message()).number(999, 1);
  auto got = read(m);
  ASSERT_TRUE(got) << got.error().what();
  EXPECT_EQ(got->ir_version, 10);
  EXPECT_EQ(got->producer_name, "maker");
  EXPECT_EQ(got->model_version, 7);
  EXPECT_TRUE(got->has_training_info);
  EXPECT_THAT(got->opset_imports, ElementsAre(std::pair<const std::string, std::int64_t>("", 21),
                                              std::pair<const std::string, std::int64_t>("com.x", 3)));
  EXPECT_EQ(got->metadata_props, (Properties{{"a", "b"}}));
  const Node& n = got->graph->nodes.at(0);
  EXPECT_EQ(n.op_type, "Add");
  EXPECT_EQ(n.domain, "");
  EXPECT_THAT(n.inputs, ElementsAre("x", ""));
  EXPECT_EQ(n.metadata_props, (Properties{{"k", "v"}}));
  EXPECT_EQ(n.label(), "Add n");
  EXPECT_EQ(*got->graph->inputs.at(0).type.elem, DType::F32);
  EXPECT_EQ(got->graph->inputs.at(0).type.shape->at(0).value, 2);
}

TEST(Reader, Types) {
  const Message tensor_type = Message().message(1, Message().number(1, 7).message(2, Message()
                                  .message(1, Message().number(1, 3)).message(1, Message().bytes(2, "n"))
                                  .message(1, Message()).message(1, Message().number(1, -1))));
  const Message sequence = Message().message(4, Message().message(1, tensor_type));
  const Message optional = Message().message(9, Message().message(1, sequence));
  const Message map = Message().message(5, Message().number(1, 8).message(2, tensor_type));
  Message g = graph({}, {}, {});
  g.message(11, Message().bytes(1, "a").message(2, optional)).message(11, Message().bytes(1, "b").message(2, map));
  g.message(11, Message().bytes(1, "c"));
  auto got = read(model(g));
  ASSERT_TRUE(got) << got.error().what();
  const Type& a = got->graph->inputs.at(0).type;
  ASSERT_EQ(a.kind, Type::Kind::Optional);
  ASSERT_EQ(a.element->kind, Type::Kind::Sequence);
  const Type& t = *a.element->element;
  EXPECT_EQ(*t.elem, DType::I64);
  ASSERT_EQ(t.shape->size(), 4u);
  EXPECT_EQ(t.shape->at(0).value, 3);
  EXPECT_EQ(t.shape->at(1).param, "n");
  EXPECT_FALSE(t.shape->at(2).known());
  EXPECT_FALSE(t.shape->at(3).known());
  EXPECT_EQ(got->graph->inputs.at(1).type.kind, Type::Kind::Map);
  EXPECT_EQ(*got->graph->inputs.at(1).type.elem, DType::Str);
  EXPECT_EQ(got->graph->inputs.at(2).type.kind, Type::Kind::Unset);
}

TEST(Reader, Attributes) {
  const auto attribute = [](std::string_view name, int type) { return Message().bytes(1, name).number(20, type); };
  Message n = node("Foo", {}, {"y"});
  n.message(5, attribute("f", 1).f32(2, 1.5f)).message(5, attribute("i", 2).number(3, -4));
  n.message(5, attribute("zero", 2)).message(5, attribute("s", 3).bytes(4, "text"));
  n.message(5, attribute("t", 4).message(5, tensor("", 7, {1}).numbers(7, {9})));
  n.message(5, attribute("g", 5).message(6, graph({}, {}, {})));
  n.message(5, attribute("fs", 6).floats(7, {1, 2}).f32(7, 3));
  n.message(5, attribute("is", 7).numbers(8, {1, -2}).number(8, 3));
  n.message(5, attribute("none", 7)).message(5, attribute("ss", 8).bytes(9, "a").bytes(9, "b"));
  n.message(5, attribute("tp", 13).message(14, Message().message(1, Message().number(1, 1))));
  n.message(5, Message().bytes(1, "undeclared").number(3, 5));
  n.message(5, attribute("r", 2).bytes(21, "outer"));
  const Message m = model(graph({n}, {}, {"y"}));
  auto got = read(m);
  ASSERT_TRUE(got) << got.error().what();
  const Node& node = got->graph->nodes.at(0);
  EXPECT_EQ(*node.find_attribute("f")->as<float>(), 1.5f);
  EXPECT_EQ(*node.find_attribute("i")->as<std::int64_t>(), -4);
  EXPECT_EQ(*node.find_attribute("zero")->as<std::int64_t>(), 0);
  EXPECT_EQ(*node.find_attribute("s")->as<std::string>(), "text");
  EXPECT_EQ(node.find_attribute("t")->as<Tensor>()->i64(0), 9);
  EXPECT_EQ((*node.find_attribute("g")->as<GraphPtr>())->name, "g");
  EXPECT_THAT(*node.find_attribute("fs")->as<std::vector<float>>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(*node.find_attribute("is")->as<std::vector<std::int64_t>>(), ElementsAre(1, -2, 3));
  EXPECT_TRUE(node.find_attribute("none")->as<std::vector<std::int64_t>>()->empty());
  EXPECT_THAT(*node.find_attribute("ss")->as<std::vector<std::string>>(), ElementsAre("a", "b"));
  EXPECT_EQ(node.find_attribute("tp")->type(), AttributeType::TypeProto);
  EXPECT_EQ(node.find_attribute("undeclared")->declared, AttributeType::Int);
  EXPECT_TRUE(node.find_attribute("r")->is_reference());
  EXPECT_EQ(node.find_attribute("absent"), nullptr);
}

TEST(Reader, WrongAttributesAreRefused) {
  const auto with = [](const Message& a) { return refusal(read(model(graph({node("Foo", {}, {"y"}, "n1").message(5, a)}, {}, {"y"})))); };
  EXPECT_THAT(with(Message().bytes(1, "a").number(20, 1).number(3, 5)), HasSubstr("another type than declared"));
  EXPECT_THAT(with(Message().bytes(1, "a").number(3, 1).bytes(4, "x")), HasSubstr("two values"));
  EXPECT_THAT(with(Message().bytes(1, "a").number(20, 4)), HasSubstr("has no value"));
  EXPECT_THAT(with(Message().bytes(1, "a").number(20, 99)), HasSubstr("type 99"));
  EXPECT_THAT(with(Message().bytes(1, "a").bytes(3, "x")), HasSubstr("wire type"));
  EXPECT_THAT(with(Message().bytes(1, "slope").number(20, 4)), HasSubstr("Foo n1"));
}

TEST(Reader, TensorsInRawData) {
  READ_TENSOR(f, tensor("w", 1, {2}).bytes(9, raw<float>({1.5f, -2})));
  EXPECT_EQ(f.f64(1), -2);
  READ_TENSOR(u4, tensor("w", 21, {3}).bytes(9, raw<std::uint8_t>({0x21, 0x03})));
  EXPECT_EQ(u4.i64(1), 2);
  EXPECT_EQ(u4.i64(2), 3);
  READ_TENSOR(i2, tensor("w", 26, {5}).bytes(9, raw<std::uint8_t>({0xe4, 0x01})));
  EXPECT_EQ(i2.i64(3), -1);
  EXPECT_EQ(i2.i64(4), 1);
  READ_TENSOR(truth, tensor("w", 9, {3}).bytes(9, raw<std::uint8_t>({0, 1, 255})));
  EXPECT_EQ(truth.as<std::uint8_t>()[2], 1);
  READ_TENSOR(none, tensor("w", 1, {2, 0}));
  EXPECT_EQ(none.size(), 0);
  READ_TENSOR(scalar, tensor("w", 11, {}).bytes(9, raw<double>({0.25})));
  EXPECT_EQ(scalar.f64(0), 0.25);
  EXPECT_EQ(scalar.rank(), 0);
}

TEST(Reader, TensorsInTypedFields) {
  READ_TENSOR(f, tensor("w", 1, {3}).floats(4, {1, 2}).f32(4, 3));
  EXPECT_EQ(f.f64(2), 3);
  READ_TENSOR(d, tensor("w", 11, {1}).f64(10, 0.1));
  EXPECT_EQ(d.f64(0), 0.1);
  READ_TENSOR(c, tensor("w", 14, {1}).floats(4, {1, 2}));
  EXPECT_EQ(c.as<float>()[1], 2);
  READ_TENSOR(half, tensor("w", 10, {2}).numbers(5, {0x3c00, 0xbc00}));
  EXPECT_EQ(half.f64(0), 1);
  EXPECT_EQ(half.f64(1), -1);
  READ_TENSOR(i8, tensor("w", 3, {3}).numbers(5, {-1, 127}).number(5, -128));
  EXPECT_EQ(i8.i64(0), -1);
  EXPECT_EQ(i8.i64(2), -128);
  READ_TENSOR(u16, tensor("w", 4, {1}).numbers(5, {65535}));
  EXPECT_EQ(u16.i64(0), 65535);
  READ_TENSOR(i4, tensor("w", 22, {3}).numbers(5, {0x2f, 0x03}));
  EXPECT_EQ(i4.i64(0), -1);
  EXPECT_EQ(i4.i64(1), 2);
  EXPECT_EQ(i4.i64(2), 3);
  READ_TENSOR(u32, tensor("w", 12, {1}).numbers(11, {4294967295}));
  EXPECT_EQ(u32.i64(0), 4294967295);
  READ_TENSOR(i64, tensor("w", 7, {2}).numbers(7, {INT64_MIN, INT64_MAX}));
  EXPECT_EQ(i64.i64(0), INT64_MIN);
  READ_TENSOR(truth, tensor("w", 9, {2}).numbers(5, {0, 7}));
  EXPECT_EQ(truth.i64(1), 1);
  READ_TENSOR(text, tensor("w", 8, {2}).bytes(6, "a").bytes(6, "longer than inline text"));
  EXPECT_THAT(text.string_values(), ElementsAre("a", "longer than inline text"));
}

TEST(Reader, WrongTensorsAreRefusedByName) {
  const auto with = [](const Message& t) { return refusal(read_tensor(t)); };
  EXPECT_THAT(with(tensor("wtab", 1, {3}).bytes(9, raw<float>({1, 2}))), HasSubstr("at 'wtab'"));
  EXPECT_THAT(with(tensor("w", 1, {3}).bytes(9, raw<float>({1, 2}))), HasSubstr("expected 12 bytes, found 8"));
  EXPECT_THAT(with(tensor("w", 1, {3})), HasSubstr("do not fit its shape"));
  EXPECT_THAT(with(tensor("w", 1, {-1})), HasSubstr("negative dimension"));
  EXPECT_THAT(with(tensor("w", 1, {INT64_MAX, INT64_MAX})), HasSubstr("too many elements"));
  EXPECT_THAT(with(tensor("w", 1, {0, INT64_MAX, INT64_MAX})), HasSubstr("too many elements"));
  EXPECT_THAT(with(tensor("w", 1, std::vector<std::int64_t>(65, 1))), HasSubstr("more than 64"));
  EXPECT_THAT(with(tensor("w", 99, {1})), HasSubstr("element type 99"));
  EXPECT_THAT(with(tensor("w", 0, {1})), HasSubstr("no element type"));
  EXPECT_THAT(with(tensor("w", 1, {1}).numbers(5, {1})), HasSubstr("wrong field"));
  EXPECT_THAT(with(tensor("w", 1, {1}).floats(4, {1}).bytes(9, raw<float>({1}))), HasSubstr("two places"));
  EXPECT_THAT(with(tensor("w", 1, {1}).floats(4, {1}).number(5, 1)), HasSubstr("two fields"));
  EXPECT_THAT(with(tensor("w", 3, {1}).numbers(5, {300})), HasSubstr("300 does not fit i8"));
  EXPECT_THAT(with(tensor("w", 12, {1}).numbers(11, {4294967296})), HasSubstr("does not fit u32"));
  EXPECT_THAT(with(tensor("w", 8, {2}).bytes(6, "a")), HasSubstr("number of strings"));
  EXPECT_THAT(with(tensor("w", 8, {1}).bytes(9, "a")), HasSubstr("outside string_data"));
  EXPECT_THAT(with(tensor("w", 1, {1}).number(14, 1)), HasSubstr("read from a file"));
  EXPECT_THAT(with(tensor("w", 1, {1}).bytes(4, "abc")), HasSubstr("wire type"));
}

TEST(Reader, SparseTensors) {
  const auto with = [](std::vector<std::int64_t> indices, std::vector<std::int64_t> shape) {
    const Message sparse = Message().message(1, tensor("sp", 1, {2}).floats(4, {5, 6}))
                               .message(2, tensor("", 7, shape).numbers(7, indices)).numbers(3, {3, 4});
    return read(model(graph({}, {}, {"sp"}).message(15, sparse)));
  };
  auto got = with({1, 11}, {2});
  ASSERT_TRUE(got) << got.error().what();
  EXPECT_EQ(got->graph->sparse_initializers.at(0).name, "sp");
  EXPECT_TRUE(with({0, 1, 2, 3}, {2, 2}));
  EXPECT_THAT(refusal(with({1, 12}, {2})), HasSubstr("out of range"));
  EXPECT_THAT(refusal(with({11, 1}, {2})), HasSubstr("do not ascend"));
  EXPECT_THAT(refusal(with({0, 1, 3, 0}, {2, 2})), HasSubstr("out of range"));
  EXPECT_THAT(refusal(with({0, 1, 2}, {3})), HasSubstr("do not fit"));
}

TEST(Reader, Functions) {
  Message f = Message().bytes(1, "fn").bytes(4, "a").bytes(5, "b").bytes(6, "alpha").bytes(10, "local").bytes(13, "o");
  f.message(7, node("Neg", {"a"}, {"b"})).message(9, opset(18)).message(11, Message().bytes(1, "beta").number(20, 2));
  auto got = read(model(graph({}, {}, {})).message(25, f));
  ASSERT_TRUE(got) << got.error().what();
  const Function& fn = got->functions.at(0);
  EXPECT_EQ(fn.domain, "local");
  EXPECT_EQ(fn.overload, "o");
  EXPECT_THAT(fn.attributes, ElementsAre("alpha"));
  EXPECT_EQ(fn.attribute_defaults.at(0).name, "beta");
  EXPECT_EQ(fn.opset_imports.at(""), 18);
}

Message nest(int depth) {
  Message g = graph({}, {}, {});
  for (int i = 1; i < depth; ++i) {
    const Message a = Message().bytes(1, "body").message(6, g).number(20, 5);
    g = graph({node("Loop", {}, {"y"}).message(5, a)}, {}, {});
  }
  return g;
}

TEST(Reader, LimitsHold) {
  EXPECT_TRUE(read(model(nest(64))));
  EXPECT_THAT(refusal(read(model(nest(65)))), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refusal(read(model(nest(3000)))), HasSubstr("nested more than 64 deep"));
  Message type = Message().message(1, Message().number(1, 1));
  for (int i = 0; i < 100; ++i) type = Message().message(4, Message().message(1, type));
  EXPECT_THAT(refusal(read(model(graph({}, {}, {}).message(11, Message().bytes(1, "x").message(2, type))))),
              HasSubstr("types are nested"));
  Limits two;
  two.nodes = 2;
  const std::vector<Message> nodes(3, node("Neg", {"x"}, {"y"}));
  EXPECT_THAT(refusal(read(model(graph(nodes, {"x"}, {})), two)), HasSubstr("more than 2 nodes"));
  Limits text;
  text.string_bytes = 10;
  EXPECT_THAT(refusal(read(model(graph({node("Neg", {"longer than ten"}, {})}, {}, {})), text)), HasSubstr("15 bytes"));
}

// Two bytes of file each, 150 bytes of memory: the budget stops them.
TEST(Reader, AmplificationIsRefused) {
  std::string many;
  for (int i = 0; i < 2'000'000; ++i) many += std::string_view("\x2a\x00", 2);  // empty attributes
  Message n = node("Foo", {}, {});
  const std::string bytes = model(Message().bytes(1, n.data() + many)).data();
  EXPECT_THAT(refusal(read_model_bytes(bytes_of(bytes))), HasSubstr("more memory"));
  std::string initializers;
  for (int i = 0; i < 4'000'000; ++i) initializers += std::string_view("\x2a\x00", 2);
  EXPECT_FALSE(read(model(Message().bytes(1, "").bytes(2, "g").bytes(7, initializers).bytes(5, ""))));
  Message ints = Message().bytes(1, "a").number(20, 7).bytes(8, std::string(20'000'000, '\1'));
  EXPECT_THAT(refusal(read(model(graph({node("Foo", {}, {}).message(5, ints)}, {}, {})))), HasSubstr("more memory"));
}

TEST(Reader, DamagedFilesSayWhere) {
  EXPECT_THAT(refusal(read_model_bytes(bytes_of("\x08"))), HasSubstr("in ModelProto at byte 0"));
  const std::string cut("\x08\x0a\x3a\x7f", 4);
  EXPECT_THAT(refusal(read_model_bytes(bytes_of(cut))), HasSubstr("longer than what holds it in ModelProto at byte 2"));
  const std::string group("\x0b", 1);
  EXPECT_THAT(refusal(read_model_bytes(bytes_of(group))), HasSubstr("wire type"));
  EXPECT_THAT(refusal(read_model_file("/nonexistent/model.onnx")), HasSubstr("cannot open"));
  EXPECT_THAT(refusal(read_model_file("/")), HasSubstr("not a regular file"));
  EXPECT_TRUE(read_model_bytes({}));  // an empty message: the validator refuses it
}

TEST(Reader, TestData) {
  const Message one = tensor("a", 7, {1}).numbers(7, {4});
  const Message sequence = Message().bytes(1, "s").number(2, 1).message(3, one).message(3, one);
  const auto read_as = [](Type::Kind kind, const Message& m) {
    Type type;
    type.kind = kind;
    return read_data_bytes(bytes_of(m.data()), type);
  };
  auto t = read_as(Type::Kind::Tensor, one);
  ASSERT_TRUE(t);
  EXPECT_EQ(t->name, "a");
  EXPECT_EQ(std::get<Tensor>(t->value).i64(0), 4);
  auto s = read_as(Type::Kind::Sequence, sequence);
  ASSERT_TRUE(s);
  EXPECT_EQ(std::get<DataValues>(s->value).size(), 2u);
  auto o = read_as(Type::Kind::Optional, Message().number(2, 3).message(5, sequence));
  ASSERT_TRUE(o);
  EXPECT_EQ(std::get<DataValues>(o->value).size(), 2u);
  auto empty = read_as(Type::Kind::Optional, Message().bytes(1, "o"));
  ASSERT_TRUE(empty);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(empty->value));
  EXPECT_FALSE(read_as(Type::Kind::Map, one));
  Message deep = sequence;
  for (int i = 0; i < 100; ++i) deep = Message().message(5, deep);
  EXPECT_FALSE(read_as(Type::Kind::Sequence, deep));
}

}  // namespace
}  // namespace weft::onnx
