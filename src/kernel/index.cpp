#include "kernel/index.h"

#include <algorithm>
#include <numeric>

namespace weft::kernel {
namespace {

// Modulo 2^64, as the kernel computes.
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
std::int64_t floor_mod(std::int64_t a, std::int64_t d) { return (a % d + d) % d; }
std::int64_t floor_div(std::int64_t a, std::int64_t d) { return (a - floor_mod(a, d)) / d; }

// A divisor of a * b for multiples of a and b; overflow costs knowledge only.
std::int64_t product_divisor(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? 1 : product;
}

std::int64_t magnitude(std::int64_t c) {
  return c == INT64_MIN ? std::int64_t{1} << 62 : c < 0 ? -c : c;
}

constexpr std::size_t kMaxTerms = 6;

}  // namespace

Sum IndexMath::term(ValueId v, Facts facts) {
  if (static_cast<std::size_t>(v) >= facts_.size()) facts_.resize(v + 1);
  if (!facts_[v]) facts_[v] = facts;
  return {{{v, 1}}, 0};
}

Facts IndexMath::facts(ValueId v) const {
  return static_cast<std::size_t>(v) < facts_.size() ? facts_[v].value_or(Facts{}) : Facts{};
}

Sum IndexMath::add(const Sum& a, const Sum& b) const {
  Sum sum;
  sum.constant = wrapping_add(a.constant, b.constant);
  auto x = a.terms.begin();
  auto y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->value < y->value)) {
      sum.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->value < x->value) {
      sum.terms.push_back(*y++);
    } else {
      const std::int64_t c = wrapping_add(x->coefficient, y->coefficient);
      if (c != 0) sum.terms.push_back({x->value, c});
      ++x, ++y;
    }
  }
  return sum;
}

Sum IndexMath::scale(const Sum& a, std::int64_t factor) const {
  Sum scaled;
  scaled.constant = wrapping_mul(a.constant, factor);
  for (const Sum::Term& t : a.terms) {
    const std::int64_t c = wrapping_mul(t.coefficient, factor);
    if (c != 0) scaled.terms.push_back({t.value, c});
  }
  return scaled;
}

Sum IndexMath::mul(const Sum& a, const Sum& b) {
  if (a.is_constant()) return scale(b, a.constant);
  if (b.is_constant()) return scale(a, b.constant);
  if (a.terms.size() * b.terms.size() > kMaxTerms)
    return mul(term(value(a), facts(a)), term(value(b), facts(b)));
  Sum product = add(scale(a, b.constant), scale(b, a.constant));
  product.constant = wrapping_mul(a.constant, b.constant);
  for (const Sum::Term& x : a.terms) {
    for (const Sum::Term& y : b.terms) {
      const Facts fx = facts(x.value), fy = facts(y.value);
      const Facts both{product_divisor(fx.divisor, fy.divisor), std::max(fx.depth, fy.depth),
                       fx.counted && fy.counted};
      const Sum xy = term(b_.mul(x.value, y.value), both);
      product = add(product, scale(xy, wrapping_mul(x.coefficient, y.coefficient)));
    }
  }
  return product;
}

Facts IndexMath::facts(const Sum& a) const {
  Facts all{magnitude(a.constant), 0, true, a.constant >= 0};
  for (const Sum::Term& t : a.terms) {
    const Facts f = facts(t.value);
    std::int64_t c = magnitude(t.coefficient);
    // Where the product may wrap around, only powers of two still divide it.
    if (!f.counted) c &= -c;
    all.divisor = std::gcd(all.divisor, product_divisor(f.divisor, c));
    all.depth = std::max(all.depth, f.depth);
    all.counted = all.counted && f.counted;
    all.natural = all.natural && f.natural && t.coefficient > 0;
  }
  all.natural = all.natural && all.counted;
  return all;
}

ValueId IndexMath::value(const Sum& a) {
  std::vector<Sum::Term> terms = a.terms;
  std::stable_sort(terms.begin(), terms.end(), [&](const Sum::Term& x, const Sum::Term& y) {
    return facts(x.value).depth < facts(y.value).depth;
  });
  ValueId sum = -1;
  for (const Sum::Term& t : terms) {
    const bool negated = t.coefficient == -1 && sum >= 0;
    const ValueId v =
        t.coefficient == 1 || negated ? t.value : b_.mul(t.value, b_.constant_i64(t.coefficient));
    sum = sum < 0 ? v : b_.scalar(negated ? ScalarOp::Sub : ScalarOp::Add, {sum, v});
  }
  if (sum < 0) return b_.constant_i64(a.constant);
  return a.constant == 0 ? sum : b_.add(sum, b_.constant_i64(a.constant));
}

std::optional<IndexMath::Split> IndexMath::split(const Sum& base, std::int64_t lane, int lanes,
                                                 std::int64_t d) {
  Split s;
  Sum rest;  // without what d divides term by term
  const bool counted = facts(base).counted;
  for (const Sum::Term& t : base.terms) {
    const bool whole = counted && t.coefficient % d == 0;
    if (whole) s.quotient.terms.push_back({t.value, t.coefficient / d});
    if (!whole) rest.terms.push_back(t);
  }
  // rest + constant = (a multiple of `unit`) + `low`, where unit divides d: adding less than unit -
  // low carries nothing into the quotient.
  const std::int64_t unit = rest.terms.empty() ? d : std::gcd(facts(rest).divisor, d);
  const std::int64_t low = floor_mod(base.constant, unit);
  if (lane != 0 && !counted) return std::nullopt;
  if (lane % d == 0) {
    s.quotient_lane = lane / d;
  } else {
    std::int64_t reach = 0;
    if (lane < 0 || __builtin_mul_overflow(lane, std::int64_t{lanes} - 1, &reach) ||
        reach >= unit - low) {
      return std::nullopt;
    }
    s.remainder_lane = lane;
  }
  s.remainder.constant = low;
  if (rest.terms.empty()) {
    s.quotient.constant = floor_div(base.constant, d);
    return s;
  }
  rest.constant = wrapping_add(base.constant, -low);
  const Facts known = facts(rest);
  const ValueId divisor = b_.constant_i64(d), v = value(rest);
  s.quotient = add(s.quotient, term(b_.scalar(ScalarOp::FloorDiv, {v, divisor}),
                                    {1, known.depth, known.counted, known.natural}));
  if (unit != d) {
    s.remainder = add(s.remainder, term(b_.scalar(ScalarOp::Mod, {v, divisor}),
                                        {unit, known.depth, known.counted, known.counted}));
  }
  return s;
}

std::optional<Lines> IndexMath::arithmetic(ScalarOp op, const Lines& a, const Lines& b, int columns) {
  if (op == ScalarOp::Add || op == ScalarOp::Sub || op == ScalarOp::Mul) return linear(op, a, b);
  if (op == ScalarOp::FloorDiv || op == ScalarOp::Mod) return divide(op, a, b, columns);
  return std::nullopt;
}

std::optional<Lines> IndexMath::linear(ScalarOp op, const Lines& a, const Lines& b) {
  if (op == ScalarOp::Mul && !a.lane.is(0)) {
    return b.lane.is(0) ? linear(op, b, a) : std::nullopt;
  }
  if (op == ScalarOp::Mul && a.rows.size() > 1 && !b.lane.is(0)) return std::nullopt;
  Lines v;
  const int rows = static_cast<int>(std::max(a.rows.size(), b.rows.size()));
  for (int row = 0; row < rows; ++row) {
    const Sum &x = a.row(row), &y = b.row(row);
    v.rows.push_back(op == ScalarOp::Add ? add(x, y) : op == ScalarOp::Sub ? sub(x, y) : mul(x, y));
  }
  v.lane = op == ScalarOp::Add   ? add(a.lane, b.lane)
           : op == ScalarOp::Sub ? sub(a.lane, b.lane)
           : b.lane.is(0)        ? Sum()
                                 : mul(a.rows[0], b.lane);
  return v;
}

std::optional<Lines> IndexMath::divide(ScalarOp op, const Lines& a, const Lines& b, int columns) {
  if (!a.lane.is_constant() || !b.lane.is(0) || b.rows.size() != 1) return std::nullopt;
  const Sum& divisor = b.rows[0];
  if (!divisor.is_constant() || divisor.constant <= 0) return std::nullopt;
  Lines v;
  for (const Sum& row : a.rows) {
    const auto s = split(row, a.lane.constant, columns, divisor.constant);
    if (!s) return std::nullopt;
    const bool quotient = op == ScalarOp::FloorDiv;
    v.rows.push_back(quotient ? s->quotient : s->remainder);
    v.lane = constant(quotient ? s->quotient_lane : s->remainder_lane);  // depends on a.lane alone
  }
  return v;
}

Facts IndexMath::result_facts(ScalarOp op, const std::vector<const Lines*>& operands, int row) const {
  Facts all{0, 0, true, true};
  for (const Lines* v : operands) {
    if (v == nullptr) {
      if (op != ScalarOp::Select) return {1, b_.depth(), false};
      all.depth = b_.depth();  // of a condition
      continue;
    }
    const Facts f = facts(v->row(row));
    all.divisor = std::gcd(all.divisor, f.divisor);
    all.depth = std::max(all.depth, f.depth);
    all.counted = all.counted && f.counted;
    all.natural = all.natural && f.natural;
  }
  const bool picks =
      op == ScalarOp::Min || op == ScalarOp::Max || op == ScalarOp::Select || op == ScalarOp::Mod;
  const bool shrinks =
      picks || op == ScalarOp::FloorDiv || op == ScalarOp::Div || op == ScalarOp::Fmod;
  return {picks ? all.divisor : 1, all.depth, all.counted && shrinks, all.natural && shrinks};
}

}  // namespace weft::kernel
