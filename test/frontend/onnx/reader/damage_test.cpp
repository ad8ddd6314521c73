// Damaged files: every prefix of a model, and random mutations. Nothing may crash; run under sanitizers for the rest.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "frontend/onnx/reader/build_model.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {
namespace {

using namespace test;

std::string small_model() {
  const Message w = tensor("w", 1, {2}).bytes(9, raw<float>({1, 2}));
  return model(graph({node("Add", {"x", "w"}, {"t"}, "n1"), node("Relu", {"t"}, {"y"}, "n2")}, {"x"}, {"y"}, {w})).data();
}

std::string typed_model() {
  const Message half = tensor("h", 10, {3}).numbers(5, {0x3c00, 0x4000, 1});
  const Message text = tensor("s", 8, {2}).bytes(6, "one").bytes(6, "two");
  const Message longs = tensor("l", 7, {2, 2}).numbers(7, {1, -2, 3, INT64_MAX});
  const Message sparse = Message().message(1, tensor("sp", 11, {1}).f64(10, 0.5)).message(2, tensor("", 7, {1}).numbers(7, {3})).numbers(3, {2, 2});
  const Message outside = tensor("e", 1, {4}).number(14, 1).message(13, entry("location", "w.bin")).message(13, entry("offset", "8"));
  Message n = node("Foo", {"h", "", "s"}, {"y", "z"}, "foo");
  n.message(5, Message().bytes(1, "ints").number(20, 7).numbers(8, {1, 2, 3}));
  n.message(5, Message().bytes(1, "value").number(20, 4).message(5, tensor("", 21, {3}).numbers(5, {0x21, 3})));
  n.message(5, Message().bytes(1, "tp").number(20, 13).message(14, Message().message(4, Message().message(1, Message().message(1, Message().number(1, 1))))));
  return model(graph({n}, {}, {"y"}, {half, text, longs, outside}).message(15, sparse)).data();
}

std::string nested_model() {
  Message body = graph({node("Neg", {"x"}, {"r0"})}, {}, {"r0"});
  for (int i = 0; i < 4; ++i) {
    const Message a = Message().bytes(1, "body").number(20, 5).message(6, body);
    body = graph({node("If", {"x"}, {"r"}, "if").message(5, a)}, {}, {"r"});
  }
  Message f = Message().bytes(1, "fn").bytes(4, "a").bytes(5, "b").bytes(6, "alpha").bytes(10, "local");
  f.message(7, node("Neg", {"a"}, {"b"}).message(5, Message().bytes(1, "k").number(20, 2).bytes(21, "alpha"))).message(9, opset(18));
  const Message g = graph({node("fn", {"x"}, {"y"}).bytes(7, "local"), node("If", {"x"}, {"z"}).message(5, Message().bytes(1, "body").number(20, 5).message(6, body))}, {"x"}, {"y", "z"});
  return model(g).message(8, opset(1, "local")).message(25, f).data();
}

// Reads from a buffer of exactly the right size, so that a sanitizer sees every step outside it.
bool accepts(const std::string& bytes) {
  std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  auto read = read_model_bytes({copy.get(), bytes.size()}, "/nonexistent", {}, copy);
  if (read) {
    for (const NamedTensor& t : read->graph ? read->graph->initializers : std::vector<NamedTensor>()) {
      if (!is_string(t.tensor.dtype())) (void)t.tensor.content_hash();  // touches every byte
    }
    return validate(*read).ok();
  }
  EXPECT_FALSE(std::string(read.error().what()).empty());
  Type sequence, optional;
  sequence.kind = Type::Kind::Sequence;
  optional.kind = Type::Kind::Optional;
  for (const Type& type : {Type(), sequence, optional}) (void)read_data_bytes({copy.get(), bytes.size()}, type);
  return false;
}

TEST(Damage, EveryPrefixIsRefused) {
  for (const std::string& whole : {small_model(), nested_model()}) {
    EXPECT_TRUE(accepts(whole));
    // The opset imports stand at the end of the file: a prefix lacks them, or ends between fields after them.
    const std::size_t last = whole.size() - 1;
    for (std::size_t size = 0; size <= last; ++size) {
      const bool between_fields = whole.size() > 4 && size > whole.rfind(opset(21).data());
      EXPECT_TRUE(!accepts(whole.substr(0, size)) || between_fields) << size;
    }
  }
}

std::string mutate(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t edits = 1 + below(4); edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = below(bytes.size());
    switch (below(6)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2: bytes.insert(at, 1 + below(4), static_cast<char>(random())); break;
      case 3: bytes.erase(at, 1 + below(8)); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size()), below(64))); break;
      default: bytes.replace(at, std::min<std::size_t>(9, bytes.size() - at), "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"); break;
    }
  }
  return bytes;
}

TEST(Damage, MutationsNeverCrash) {
  std::mt19937 random(20261130);
  const std::string models[] = {small_model(), typed_model(), nested_model()};
  int accepted = 0;
  for (int i = 0; i < 10'000; ++i) accepted += accepts(mutate(models[i % 3], random));
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 10'000);
}

}  // namespace
}  // namespace weft::onnx
