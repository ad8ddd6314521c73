#include "base/dim.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace weft {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");

Dim parsed(std::string_view text) { return Dim::parse(text).value(); }

TEST(Dim, EqualPolynomialsAreEqual) {
  EXPECT_EQ((n + 1) * 2, Dim(2) * n + 2);
  EXPECT_EQ((n + m) * (n - m), n * n - m * m);
  EXPECT_EQ((n + 3) * (m + 5), n * m + n * 5 + m * 3 + 15);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_TRUE((n - n).is_const());
  EXPECT_NE(n, m);
  EXPECT_EQ((n * m + k).hash(), (k + m * n).hash());
  EXPECT_EQ(n.as_symbol(), "n");
  EXPECT_FALSE((n + 1).as_symbol());
  EXPECT_EQ(product({n, 3, m}), n * m * 3);
}

TEST(Dim, DivisionSimplifies) {
  EXPECT_EQ(floor_div(n * 768, 768), n);
  EXPECT_EQ(floor_div(n * 64 * 12, 12 * 64), n);
  EXPECT_EQ(floor_div(m * k + n, k), m + floor_div(n, k));
  EXPECT_EQ(floor_div(n * m * 6, m * 3), n * 2);
  EXPECT_EQ(floor_div(n * m * 6, m * 4), floor_div(n * 3, 2));
  EXPECT_EQ(floor_div((n + 1) * (m + 2), n + 1), m + 2);
  EXPECT_EQ(floor_div(n * n - 1, n + 1), n - 1);
  EXPECT_EQ(floor_div(floor_div(n, 4), 6), floor_div(n, 24));
  EXPECT_EQ(floor_div(floor_div(n - 1, 2) + 1 - 1, 2), floor_div(n - 1, 4));
  EXPECT_EQ(floor_div(n * 4 + 3, 8), floor_div(n, 2));
  EXPECT_EQ(floor_div(n + 17, 8), floor_div(n + 1, 8) + 2);
  EXPECT_EQ(ceil_div(n, 8), floor_div(n + 7, 8));
  EXPECT_EQ(ceil_div(n * 768, 768), n);
  EXPECT_EQ(ceil_div(m * k + n, k), m + ceil_div(n, k));
  EXPECT_EQ(mod(n * 8, 8), Dim(0));
  EXPECT_EQ(mod(n * k, k), Dim(0));
  EXPECT_EQ(mod(Dim(-7), 4), Dim(1));
  EXPECT_EQ(floor_div(Dim(-7), 4), Dim(-2));
  EXPECT_EQ(floor_div(Dim(7), -4), Dim(-2));
  EXPECT_EQ(ceil_div(Dim(-7), 4), Dim(-1));
}

TEST(Dim, MaxAndMin) {
  EXPECT_EQ(max(n, n + 3), n + 3);
  EXPECT_EQ(min(n, n + 3), n);
  EXPECT_EQ(max(max(n, 1), max(m, 2)), max(max(m, n), 2));
  EXPECT_EQ(max(Dim(3), 5), Dim(5));
  EXPECT_EQ(max(n, m), max(m, n));
}

TEST(Dim, Text) {
  EXPECT_EQ((n * 2 + 7).str(), "n*2 + 7");
  EXPECT_EQ((Dim(7) - n * m).str(), "-m*n + 7");
  EXPECT_EQ(floor_div(n + 7, 8).str(), "floordiv(n + 7, 8)");
  EXPECT_EQ(max(n, 1).str(), "max(1, n)");
  EXPECT_EQ(parsed("ceildiv(n, 8)"), ceil_div(n, 8));
  EXPECT_EQ(parsed("mod(n, 8)"), mod(n, 8));
  EXPECT_EQ(parsed("-(n - 3)*2"), Dim(6) - n * 2);
  EXPECT_EQ(parsed("-9223372036854775808"), Dim(INT64_MIN));
  EXPECT_EQ(Dim::symbol("batch size").str(), "\"batch size\"");
  for (const char* name : {"batch size", "max", "a.b", "n\"\\\n", "7", ""}) {
    EXPECT_EQ(parsed(Dim::symbol(name).str()), Dim::symbol(name)) << name;
  }
  EXPECT_EQ(str(Shape{n, 768}), "[n, 768]");
}

TEST(Dim, MalformedTextIsAnError) {
  for (const char* text : {"", "n +", "n 3", "floordiv(n)", "floordiv(n, 2, 3)", "max(n)", "(n", "9223372036854775808",
                           "99999999999999999999", "\"open", "n*", "@n", "1.5", "overflow(", "3n"}) {
    const auto r = Dim::parse(text);
    ASSERT_FALSE(r.ok()) << text;
    EXPECT_EQ(r.error().code(), "syntax");
  }
  EXPECT_FALSE(Dim::parse(std::string(100000, '(')).ok());
  EXPECT_TRUE(Dim::parse(std::string(100000, '-') + "n").ok());
}

TEST(Dim, OverflowIsReportedWhenEvaluated) {
  const Dim big = Dim(INT64_MAX) + 1;
  EXPECT_EQ(big.evaluate({}).error().code(), "size-overflow");
  EXPECT_EQ((big - 1).evaluate({}).error().code(), "size-overflow");
  EXPECT_EQ(parsed(big.str()), big);
  EXPECT_EQ((n * n).evaluate({{"n", INT64_MAX}}).error().code(), "size-overflow");
  EXPECT_EQ((n * 3).evaluate({{"n", INT64_MAX / 3}}).value(), INT64_MAX / 3 * 3);
  EXPECT_EQ(floor_div(n, 0).evaluate({{"n", 1}}).error().code(), "size-division-by-zero");
  EXPECT_EQ(floor_div(Dim(1), m).evaluate({{"m", 0}}).error().code(), "size-division-by-zero");
  EXPECT_EQ(n.evaluate({}).error().code(), "unbound-size");
  EXPECT_EQ(evaluate(Shape{n - 1}, {{"n", 0}}).error().code(), "negative-size");
}

TEST(Dim, GrowthIsBounded) {
  Dim d = n;
  for (int i = 0; i < 500; ++i) d = floor_div(d * d + m, 3);
  EXPECT_FALSE(d.evaluate({{"n", 0}, {"m", 0}}).ok());
  Dim sum = 0, square = 1;
  for (int i = 0; i < 200; ++i) sum = sum + Dim::symbol("s" + std::to_string(i));
  for (int i = 0; i < 10; ++i) square = square * sum;
  EXPECT_FALSE(square.evaluate({}).ok());
  Dim deep = n;
  for (int i = 0; i < 3000; ++i) deep = max(floor_div(deep, 2), m) + 1;
  EXPECT_FALSE(deep.evaluate({{"n", 1}, {"m", 1}}).ok());
}

TEST(Dim, Substitute) {
  EXPECT_EQ(floor_div(n + 7, 8).substitute({{"n", m * 8}}), m);
  EXPECT_EQ(max(n, m).substitute({{"n", 3}, {"m", 5}}), Dim(5));
  EXPECT_EQ((n * n).substitute({{"n", n + 1}}), n * n + n * 2 + 1);
  EXPECT_EQ(floor_div(n, m).symbols(), (std::set<std::string>{"m", "n"}));
}

// A random expression, built as a Dim and as a function that computes it plainly.
struct Random {
  Dim dim;
  std::function<std::optional<std::int64_t>(const Bindings&)> plain;
};

class Expressions {
 public:
  explicit Expressions(unsigned seed) : rng_(seed) {}
  int pick(int count) { return static_cast<int>(rng_() % static_cast<unsigned>(count)); }

  Random make(int depth) {
    if (depth == 0 || pick(5) == 0) return leaf();
    Random a = make(depth - 1), b = make(depth - 1);
    const int op = pick(8);
    const Dim d = op == 0   ? a.dim + b.dim
                  : op == 1 ? a.dim - b.dim
                  : op == 2 ? a.dim * b.dim
                  : op == 3 ? floor_div(a.dim, b.dim)
                  : op == 4 ? ceil_div(a.dim, b.dim)
                  : op == 5 ? mod(a.dim, b.dim)
                  : op == 6 ? max(a.dim, b.dim)
                            : min(a.dim, b.dim);
    return {d, [=](const Bindings& v) { return apply(op, a.plain(v), b.plain(v)); }};
  }

  Bindings bindings(std::int64_t lo, std::int64_t hi) {
    Bindings v;
    for (const char* name : {"n", "m", "k"}) v[name] = lo + pick(static_cast<int>(hi - lo + 1));
    return v;
  }

 private:
  Random leaf() {
    if (pick(2) == 0) {
      const std::int64_t c = pick(4) == 0 ? pick(40) - 10 : 1 + pick(12);
      return {Dim(c), [=](const Bindings&) { return c; }};
    }
    const std::string name = std::string(1, "nmk"[pick(3)]);
    return {Dim::symbol(name), [=](const Bindings& v) { return v.find(name)->second; }};
  }

  static std::optional<std::int64_t> apply(int op, std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
    if (!a || !b) return std::nullopt;
    if (op >= 3 && op <= 5 && *b == 0) return std::nullopt;
    const auto down = [](std::int64_t x, std::int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
    std::int64_t r = 0;
    switch (op) {
      case 0: r = *a + *b; break;
      case 1: r = *a - *b; break;
      case 2: r = *a * *b; break;
      case 3: r = down(*a, *b); break;
      case 4: r = -down(-*a, *b); break;
      case 5: r = *a - down(*a, *b) * *b; break;
      case 6: r = std::max(*a, *b); break;
      default: r = std::min(*a, *b); break;
    }
    if (r > (1 << 28) || r < -(1 << 28)) return std::nullopt;
    return r;
  }

  std::mt19937 rng_;
};

TEST(Dim, RandomExpressionsKeepTheirValue) {
  Expressions random(7);
  int compared = 0;
  for (int i = 0; i < 20000; ++i) {
    const Random e = random.make(1 + random.pick(4));
    const Dim again = parsed(e.dim.str());
    ASSERT_EQ(again, e.dim) << e.dim.str() << " became " << again.str();
    for (int j = 0; j < 6; ++j) {
      const Bindings v = random.bindings(-9, 30);
      const auto expected = e.plain(v);
      if (!expected) continue;
      const auto got = e.dim.evaluate(v);
      ASSERT_TRUE(got.ok()) << e.dim.str() << ": " << got.error().what();
      ASSERT_EQ(*got, *expected) << e.dim.str();
      std::map<std::string, Dim> map;
      for (const auto& [name, value] : v) map.emplace(name, value);
      const Dim constant = e.dim.substitute(map);
      ASSERT_TRUE(constant.is(*expected)) << e.dim.str() << " with values is " << constant.str();
      ++compared;
    }
  }
  EXPECT_GT(compared, 50000);
}

TEST(DimFacts, KnowsRanges) {
  DimFacts f;
  f.declare("n", {1, 512, 8});
  f.declare("m", {1, 10});
  f.declare("k", {0, 100});
  EXPECT_EQ(f.range(n * 2 + 1).lo, 3);
  EXPECT_EQ(f.range(n * 2 + 1).hi, 1025);
  EXPECT_EQ(f.range(n * 3).multiple_of, 24);
  EXPECT_EQ(f.range(mod(k, 8)).lo, 0);
  EXPECT_EQ(f.range(mod(k, 8)).hi, 7);
  EXPECT_TRUE(f.known_less_equal(floor_div(k, 8) * 8, k));
  EXPECT_TRUE(f.known_less(k, floor_div(k, 8) * 8 + 8));
  EXPECT_TRUE(f.known_less_equal(k, max(k, m)));
  EXPECT_TRUE(f.known_less_equal(min(k, m), m));
  EXPECT_TRUE(f.known_less_equal(k, k * m));
  EXPECT_FALSE(f.known_less(k, k * m));
  EXPECT_TRUE(f.known_less_equal(ceil_div(k, 8) * 8, k + 7));
  EXPECT_TRUE(f.known_divisible(n * k, 8));
  EXPECT_TRUE(f.known_divisible(n * k, k));
  EXPECT_FALSE(f.known_divisible(k, 8));
  EXPECT_TRUE(f.known_divisible(0, 8));
}

TEST(DimFacts, Simplifies) {
  DimFacts f;
  f.declare("n", {1, 512, 8});
  f.declare("m", {3, 3});
  f.declare("k", {0, 100});
  EXPECT_EQ(f.simplify(max(n, 0)), n);
  EXPECT_EQ(f.simplify(max(n, 1)), n);
  EXPECT_EQ(f.simplify(ceil_div(n, 8)), floor_div(n, 8));
  EXPECT_EQ(f.simplify(floor_div(k, 101)), Dim(0));
  EXPECT_EQ(f.simplify(m + 1), Dim(4));
  EXPECT_EQ(f.simplify(min(k, 1000)), k);
  EXPECT_EQ(f.simplify(mod(n, 8)), n - floor_div(n, 8) * 8);
  EXPECT_TRUE(f.known_equal(ceil_div(n, 8), floor_div(n, 8)));
  EXPECT_FALSE(f.known_equal(n, k));
}

TEST(DimFacts, ChecksBindings) {
  DimFacts f;
  f.declare("batch", {1, 64, 2});
  EXPECT_TRUE(f.check({{"batch", 4}}).ok());
  EXPECT_EQ(f.check({}).error().code(), "unbound-size");
  EXPECT_EQ(f.check({{"batch", 66}}).error().code(), "size-out-of-range");
  EXPECT_EQ(f.check({{"batch", 3}}).error().code(), "size-not-a-multiple");
  const auto unknown = f.check({{"bach", 4}});
  EXPECT_EQ(unknown.error().code(), "unknown-size");
  EXPECT_EQ(unknown.error().suggestion(), "did you mean 'batch'?");
  f.declare("batch", {2, 100, 3});
  EXPECT_EQ(f.symbols().at("batch").lo, 2);
  EXPECT_EQ(f.symbols().at("batch").hi, 64);
  EXPECT_EQ(f.symbols().at("batch").multiple_of, 6);
}

TEST(DimFacts, RandomBindingsAgree) {
  Expressions random(11);
  for (int i = 0; i < 6000; ++i) {
    DimFacts f;
    std::map<std::string, SymbolRange> ranges;
    for (const char* name : {"n", "m", "k"}) {
      SymbolRange r;
      r.multiple_of = 1 + random.pick(4);
      r.lo = random.pick(20) - 6;
      r.hi = r.lo + 4 + random.pick(30);
      ranges[name] = r;
      f.declare(name, r);
    }
    const Random a = random.make(1 + random.pick(3)), b = random.make(1 + random.pick(3));
    const SymbolRange range = f.range(a.dim);
    const Dim simple = f.simplify(a.dim);
    const bool less = f.known_less(a.dim, b.dim), equal = f.known_equal(a.dim, b.dim);
    const bool divisible = f.known_divisible(a.dim, b.dim);
    for (int j = 0; j < 30; ++j) {
      Bindings v;
      for (const auto& [name, r] : ranges) {
        const std::int64_t up = (r.lo + r.multiple_of * 100) % r.multiple_of;
        const std::int64_t first = r.lo + (up == 0 ? 0 : r.multiple_of - up);
        v[name] = first + random.pick(static_cast<int>((r.hi - first) / r.multiple_of) + 1) * r.multiple_of;
      }
      const auto x = a.plain(v);
      if (!x) continue;
      ASSERT_LE(range.lo, *x) << a.dim.str();
      ASSERT_GE(range.hi, *x) << a.dim.str();
      if (range.multiple_of == 0) {
        ASSERT_EQ(*x, 0);
      } else {
        ASSERT_EQ(*x % range.multiple_of, 0) << a.dim.str();
      }
      ASSERT_EQ(simple.evaluate(v).value(), *x) << a.dim.str() << " became " << simple.str();
      const auto y = b.plain(v);
      if (!y) continue;
      if (less) {
        ASSERT_LT(*x, *y) << a.dim.str() << " < " << b.dim.str();
      }
      if (equal) {
        ASSERT_EQ(*x, *y) << a.dim.str() << " == " << b.dim.str();
      }
      if (divisible && *y != 0) {
        ASSERT_EQ(*x % *y, 0) << a.dim.str() << " / " << b.dim.str();
      }
    }
  }
}

}  // namespace
}  // namespace weft
