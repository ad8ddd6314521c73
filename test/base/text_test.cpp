#include "base/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/dim.h"

namespace weft {
namespace {

TEST(Text, NearestName) {
  const std::vector<std::string> names = {"relu", "gelu", "softmax", "add"};
  EXPECT_EQ(nearest_name("sofmax", names), "softmax");
  EXPECT_EQ(nearest_name("Relu", names), "relu");
  EXPECT_EQ(nearest_name("sotfmax", names), "softmax");
  EXPECT_FALSE(nearest_name("convolution", names));
  EXPECT_FALSE(nearest_name("", names));
  EXPECT_EQ(did_you_mean("ad", names), "did you mean 'add'?");
}

TEST(Text, QuoteIsReadBack) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  all += '\0';
  const std::string text = quote(all);
  Lexer lexer(text);
  EXPECT_EQ(lexer.string().value(), all);
  EXPECT_TRUE(lexer.at_end());
  EXPECT_EQ(name_text("fc.1"), "fc.1");
  EXPECT_EQ(name_text("12"), "12");
  EXPECT_EQ(name_text("a/b"), "\"a/b\"");
}

TEST(Text, FloatsAreReadBack) {
  const double values[] = {0.0, -0.0, 1, 0.1, 1e300, -2.5e-310, 3e20, std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(), std::nan(""),
                           std::bit_cast<double>(0xfff4000000000001ull)};
  for (const double v : values) {
    const std::string text = float_text(v);
    Lexer lexer(text);
    const double back = lexer.number().value();
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(v)) << text;
    EXPECT_TRUE(lexer.at_end());
  }
  EXPECT_EQ(float_text(1), "1.0");
}

TEST(Lexer, Tokens) {
  Lexer l("%x.1 = add(%0, @k, -12) : f32[n..8] // comment\n-> %\"a b\" 0x1F 1.5 2e-3 1. ==");
  EXPECT_EQ(l.value_name().value(), "x.1");
  EXPECT_TRUE(l.expect("=").ok());
  EXPECT_EQ(l.identifier().value(), "add");
  EXPECT_TRUE(l.accept("("));
  EXPECT_EQ(l.value_name().value(), "0");
  EXPECT_TRUE(l.accept(","));
  EXPECT_EQ(l.global_name().value(), "k");
  EXPECT_TRUE(l.accept(","));
  EXPECT_EQ(l.integer().value(), -12);
  EXPECT_TRUE(l.accept(")") && l.accept(":"));
  EXPECT_EQ(l.identifier().value(), "f32");
  EXPECT_TRUE(l.accept("["));
  EXPECT_EQ(parse_dim(l).value(), Dim::symbol("n"));
  EXPECT_TRUE(l.accept(".."));
  EXPECT_EQ(l.integer().value(), 8);
  EXPECT_TRUE(l.accept("]") && l.accept("->"));
  EXPECT_EQ(l.value_name().value(), "a b");
  EXPECT_EQ(l.unsigned_integer().value(), 31u);
  EXPECT_EQ(l.number().value(), 1.5);
  EXPECT_EQ(l.number().value(), 2e-3);
  EXPECT_EQ(l.number().value(), 1.0);
  EXPECT_TRUE(l.accept("=="));
  EXPECT_TRUE(l.expect_end().ok());
}

TEST(Lexer, ErrorsSayWhere) {
  Lexer l("add\n  12", "model");
  EXPECT_TRUE(l.accept("add"));
  const auto r = l.identifier("an op");
  EXPECT_EQ(r.error().where(), "model:2:3");
  EXPECT_EQ(r.error().message(), "expected an op, found '12'");
  for (const char* bad : {"\"open", "\"a\nb\"", "\"\\q\"", "\"\\x1\"", "12ab", "%\"open", "1e999"}) {
    Lexer lexer(bad);
    EXPECT_FALSE(lexer.string().ok()) << bad;
    EXPECT_FALSE(lexer.number().ok()) << bad;
  }
  Lexer big("99999999999999999999 9223372036854775808 -9223372036854775808");
  EXPECT_FALSE(big.integer().ok());
  EXPECT_FALSE(big.integer().ok());
  EXPECT_EQ(big.integer().value(), INT64_MIN);
}

}  // namespace
}  // namespace weft
