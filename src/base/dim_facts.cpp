// Ranges and divisibility of sizes. A range starts as interval arithmetic over the canonical form and is then narrowed
// by rewriting the form, so that what occurs twice cancels:
//   floordiv(a, k) lies in [(a - k + 1) / k, a / k], which is linear in a: n - 8*floordiv(n, 8) is found in [0, 7];
//   max(a, b) is a or b:                            max(n, m) - n is found >= 0;
//   s*A + B, factored by a symbol s:                n*m - n = n*(m - 1) is found >= 0.
// Each rewriting is tried within a budget; whatever is left out costs precision, never soundness.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/dim_poly.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr int kBudget = 48;  // rewritten forms per question

// INT64_MIN and INT64_MAX stand for what is unbounded.
struct Interval {
  std::int64_t lo = INT64_MIN, hi = INT64_MAX;
};

std::int64_t saturate(__int128 v) {
  return v <= INT64_MIN ? INT64_MIN : v >= INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(v);
}

bool unbounded(std::int64_t v) { return v == INT64_MIN || v == INT64_MAX; }

Interval operator+(Interval a, Interval b) {
  Interval r;
  if (a.lo != INT64_MIN && b.lo != INT64_MIN) r.lo = saturate(static_cast<__int128>(a.lo) + b.lo);
  if (a.hi != INT64_MAX && b.hi != INT64_MAX) r.hi = saturate(static_cast<__int128>(a.hi) + b.hi);
  return r;
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (unbounded(a) || unbounded(b)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  return saturate(static_cast<__int128>(a) * b);
}

Interval operator*(Interval a, Interval b) {
  const std::int64_t c[] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

Interval meet(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

Interval power(Interval base, int exponent) {
  Interval r{1, 1};
  for (int i = 0; i < exponent; ++i) r = r * base;
  if (exponent % 2 == 0) r.lo = std::max<std::int64_t>(r.lo, 0);
  return r;
}

std::int64_t divide_down(std::int64_t a, std::int64_t b) {  // b > 0
  if (unbounded(a)) return a;
  if (b == INT64_MAX) return a < 0 ? -1 : 0;
  return a / b - (a % b < 0 ? 1 : 0);
}

// Of floordiv for divisors of one sign; nothing is known when the divisor may be zero on both sides.
Interval divide(Interval a, Interval b) {
  if (b.hi < 0) return divide(a * Interval{-1, -1}, b * Interval{-1, -1});
  b.lo = std::max<std::int64_t>(b.lo, b.lo >= 0 ? 1 : b.lo);  // zero is an error, not a value
  if (b.lo < 1 || b.hi < 1) return {};
  const std::int64_t c[] = {divide_down(a.lo, b.lo), divide_down(a.lo, b.hi), divide_down(a.hi, b.lo),
                            divide_down(a.hi, b.hi)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

// The part of d that is a multiple of `atom`, divided by it, when it occurs there in first power only.
struct Factored {
  Dim of_atom, rest;
  int occurrences = 0;
};

std::optional<Factored> factor_out(const Dim& d, const DimAtom& atom) {
  Factored f{Dim(0), Dim(dim_constant(d))};
  std::vector<DimTerm> inside, rest;
  std::int64_t inside_constant = 0;
  for (const DimTerm& t : dim_terms(d)) {
    const auto at = std::find_if(t.factors.begin(), t.factors.end(),
                                 [&](const DimFactor& x) { return compare(*x.atom, atom) == 0; });
    if (at == t.factors.end()) {
      rest.push_back(t);
      continue;
    }
    if (at->power != 1) return std::nullopt;
    ++f.occurrences;
    DimTerm other = t;
    other.factors.erase(other.factors.begin() + (at - t.factors.begin()));
    if (other.factors.empty()) {
      inside_constant = other.coefficient;
    } else {
      inside.push_back(std::move(other));
    }
  }
  f.of_atom = DimPoly::make(inside_constant, std::move(inside));
  f.rest = DimPoly::make(dim_constant(d), std::move(rest));
  return f;
}

class Ranges {
 public:
  explicit Ranges(const std::map<std::string, SymbolRange>& symbols) : symbols_(symbols) {}

  Interval of(const Dim& d) {
    if (d.is_const()) return {d.value(), d.value()};
    if (is_overflow(d)) return {};
    Interval r{dim_constant(d), dim_constant(d)};
    for (const DimTerm& t : dim_terms(d)) {
      Interval product{t.coefficient, t.coefficient};
      for (const DimFactor& f : t.factors) product = product * power(of_atom(*f.atom), f.power);
      r = r + product;
    }
    return narrow(d, r);
  }

 private:
  Interval of_atom(const DimAtom& atom) {
    switch (atom.kind) {
      case DimAtomKind::Symbol: {
        const auto it = symbols_.find(atom.name);
        return it == symbols_.end() ? Interval() : Interval{it->second.lo, it->second.hi};
      }
      case DimAtomKind::FloorDiv: return divide(of(atom.args[0]), of(atom.args[1]));
      case DimAtomKind::Max:
      case DimAtomKind::Min: {
        Interval r = of(atom.args[0]);
        for (std::size_t i = 1; i < atom.args.size(); ++i) {
          const Interval o = of(atom.args[i]);
          r = atom.kind == DimAtomKind::Max ? Interval{std::max(r.lo, o.lo), std::max(r.hi, o.hi)}
                                            : Interval{std::min(r.lo, o.lo), std::min(r.hi, o.hi)};
        }
        return r;
      }
      case DimAtomKind::Overflow: break;
    }
    return {};
  }

  // Only a form of several terms, or an atom of more than one argument, can hold something twice.
  Interval narrow(const Dim& d, Interval r) {
    const auto terms = dim_terms(d);
    for (const DimTerm& t : terms) {
      for (const DimFactor& f : t.factors) {
        if (f.atom->kind == DimAtomKind::Symbol) {
          if (terms.size() > 1) r = meet(r, by_symbol(d, *f.atom));
        } else if (terms.size() > 1 && f.atom->kind == DimAtomKind::FloorDiv) {
          if (as_bare_atom(t) != nullptr) r = meet(r, by_quotient(d, t));
        } else if (terms.size() > 1) {
          r = meet(r, by_choice(d, *f.atom));
        }
      }
    }
    return r;
  }

  Interval by_symbol(const Dim& d, const DimAtom& symbol) {
    const auto f = factor_out(d, symbol);
    if (!f || f->occurrences < 2 || !spend()) return {};
    return of_atom(symbol) * of(f->of_atom) + of(f->rest);
  }

  // d = C * floordiv(a, k) + rest with k > 0, so k*d lies between C*a + k*rest and C*(a - k + 1) + k*rest.
  Interval by_quotient(const Dim& d, const DimTerm& quotient) {
    const DimAtom& atom = *quotient.factors[0].atom;
    const Dim& k = atom.args[1];
    if (!k.is_const() || k.value() <= 0 || !spend()) return {};
    const Dim c = quotient.coefficient;
    const Dim rest = (d - dim_of(quotient)) * k;
    const Interval upper = of(c * atom.args[0] + rest);
    const Interval lower = of(c * (atom.args[0] - k + 1) + rest);
    const std::int64_t lo = quotient.coefficient > 0 ? lower.lo : upper.lo;
    const std::int64_t hi = quotient.coefficient > 0 ? upper.hi : lower.hi;
    // k*d >= lo: d >= ceil(lo / k)
    Interval r;
    if (!unbounded(lo)) r.lo = lo == -INT64_MAX ? INT64_MIN : -divide_down(-lo, k.value());
    if (!unbounded(hi)) r.hi = divide_down(hi, k.value());
    return r;
  }

  // d with max or min replaced by each argument in turn: d is one of these, and where the atom stands alone with a
  // coefficient, it is the greatest or the smallest.
  Interval by_choice(const Dim& d, const DimAtom& atom) {
    const auto f = factor_out(d, atom);
    if (!f || (atom.kind != DimAtomKind::Max && atom.kind != DimAtomKind::Min) || !spend()) return {};
    const Interval coefficient = of(f->of_atom);
    const bool greatest = atom.kind == DimAtomKind::Max ? coefficient.lo >= 0 : coefficient.hi <= 0;
    const bool smallest = atom.kind == DimAtomKind::Max ? coefficient.hi <= 0 : coefficient.lo >= 0;
    std::optional<Interval> r;
    for (const Dim& arg : atom.args) {
      const Interval o = of(f->of_atom * arg + f->rest);
      if (!r) {
        r = o;
        continue;
      }
      r->lo = greatest ? std::max(r->lo, o.lo) : std::min(r->lo, o.lo);
      r->hi = smallest ? std::min(r->hi, o.hi) : std::max(r->hi, o.hi);
    }
    return *r;
  }

  bool spend() { return budget_-- > 0; }

  const std::map<std::string, SymbolRange>& symbols_;
  int budget_ = kBudget;
};

std::int64_t divisor_of(const Dim& d, const std::map<std::string, SymbolRange>& symbols);

std::int64_t divisor_of(const DimAtom& atom, const std::map<std::string, SymbolRange>& symbols) {
  switch (atom.kind) {
    case DimAtomKind::Symbol: {
      const auto it = symbols.find(atom.name);
      return it == symbols.end() ? 1 : it->second.multiple_of;
    }
    case DimAtomKind::FloorDiv: {
      if (!atom.args[1].is_const() || atom.args[1].value() <= 0) return 1;
      const std::int64_t k = atom.args[1].value();
      const std::int64_t of_a = divisor_of(atom.args[0], symbols);
      return of_a % k == 0 ? of_a / k : 1;
    }
    case DimAtomKind::Max:
    case DimAtomKind::Min: {
      std::int64_t g = 0;
      for (const Dim& arg : atom.args) g = std::gcd(g, divisor_of(arg, symbols));
      return g;
    }
    case DimAtomKind::Overflow: break;
  }
  return 1;
}

// The largest known divisor, never negative; 0 for the constant 0.
std::int64_t divisor_of(const DimTerm& t, const std::map<std::string, SymbolRange>& symbols) {
  std::int64_t product = t.coefficient < 0 ? -t.coefficient : t.coefficient;
  for (const DimFactor& f : t.factors) {
    const std::int64_t m = divisor_of(*f.atom, symbols);
    for (int i = 0; i < f.power; ++i) {
      std::int64_t wider = 0;
      if (!__builtin_mul_overflow(product, m, &wider)) product = wider;
    }
  }
  return product;
}

std::int64_t divisor_of(const Dim& d, const std::map<std::string, SymbolRange>& symbols) {
  const std::int64_t constant = dim_constant(d);
  if (constant == INT64_MIN) return std::int64_t{1} << 62;
  std::int64_t g = constant < 0 ? -constant : constant;
  for (const DimTerm& t : dim_terms(d)) g = std::gcd(g, divisor_of(t, symbols));
  return g;
}

}  // namespace

void DimFacts::declare(const std::string& symbol, SymbolRange range) {
  range.multiple_of = range.multiple_of == INT64_MIN ? 1 : std::max<std::int64_t>(1, std::abs(range.multiple_of));
  const auto [it, is_new] = symbols_.try_emplace(symbol, range);
  if (is_new) return;
  SymbolRange& known = it->second;
  known.lo = std::max(known.lo, range.lo);
  known.hi = std::min(known.hi, range.hi);
  const std::int64_t step = range.multiple_of / std::gcd(known.multiple_of, range.multiple_of);
  std::int64_t both = 0;
  if (!__builtin_mul_overflow(known.multiple_of, step, &both)) known.multiple_of = both;
}

SymbolRange DimFacts::range(const Dim& d) const {
  const Interval r = Ranges(symbols_).of(d);
  return {r.lo, r.hi, divisor_of(d, symbols_)};
}

bool DimFacts::known_less_equal(const Dim& a, const Dim& b) const {
  const Dim difference = b - a;
  if (is_overflow(difference)) return false;
  return Ranges(symbols_).of(difference).lo >= 0;
}

bool DimFacts::known_less(const Dim& a, const Dim& b) const {
  const Dim difference = b - a;
  if (is_overflow(difference)) return false;
  return Ranges(symbols_).of(difference).lo > 0;
}

bool DimFacts::known_equal(const Dim& a, const Dim& b) const {
  const Dim difference = a - b;
  if (difference.is_const() || is_overflow(difference)) return difference.is(0);
  const Dim simpler = simplify(difference);
  if (simpler.is_const()) return simpler.is(0);
  const Interval r = Ranges(symbols_).of(simpler);
  return r.lo == 0 && r.hi == 0;
}

bool DimFacts::known_divisible(const Dim& a, const Dim& b) const {
  if (b.is(0) || is_overflow(a) || is_overflow(b)) return false;
  if (b.is_const()) {
    const std::int64_t divisor = divisor_of(a, symbols_);
    return divisor == 0 || b.is(-1) || divisor % b.value() == 0;
  }
  const Dim sa = simplify(a), sb = simplify(b);
  if (sb.is_const()) return !sb.is(0) && known_divisible(sa, sb);
  return !is_overflow(sa) && !is_overflow(sb) && mod(sa, sb).is(0);
}

namespace {

class Simplifier {
 public:
  Simplifier(const DimFacts& facts, const std::map<std::string, SymbolRange>& symbols)
      : facts_(facts), symbols_(symbols) {}

  Dim run(const Dim& d) const {
    if (d.is_const() || is_overflow(d)) return d;
    Dim sum = dim_constant(d);
    for (const DimTerm& t : dim_terms(d)) {
      Dim product = t.coefficient;
      for (const DimFactor& f : t.factors) {
        const Dim value = atom(f.atom);
        for (int i = 0; i < f.power; ++i) product = product * value;
      }
      sum = sum + product;
    }
    return sum;
  }

 private:
  Dim atom(const std::shared_ptr<const DimAtom>& a) const {
    switch (a->kind) {
      case DimAtomKind::Symbol: {
        const auto it = symbols_.find(a->name);
        if (it != symbols_.end() && it->second.lo == it->second.hi) return it->second.lo;
        return dim_of(a);
      }
      case DimAtomKind::FloorDiv: return quotient(run(a->args[0]), run(a->args[1]));
      case DimAtomKind::Max:
      case DimAtomKind::Min: return choice(*a);
      case DimAtomKind::Overflow: break;
    }
    return dim_of(a);
  }

  Dim quotient(const Dim& a, const Dim& b) const {
    const Dim plain = floor_div(a, b);
    if (plain.is_const() || is_overflow(plain)) return plain;
    const SymbolRange divisor = facts_.range(b);
    const SymbolRange whole = facts_.range(plain);
    if (whole.lo == whole.hi && !unbounded(whole.lo)) return whole.lo;
    if (divisor.lo > 0 && facts_.known_less_equal(0, a) && facts_.known_less(a, b)) return 0;
    if (!b.is_const() || b.value() <= 0) return plain;
    return split_multiples(a, b.value(), plain);
  }

  // floordiv(D + r, k), where D is a multiple of k and r always falls within one quotient q: floordiv(D, k) + q.
  Dim split_multiples(const Dim& a, std::int64_t k, const Dim& plain) const {
    Dim multiples = 0, rest = dim_constant(a);
    for (const DimTerm& t : dim_terms(a)) {
      Dim& part = divisor_of(t, symbols_) % k == 0 ? multiples : rest;
      part = part + dim_of(t);
    }
    if (multiples.is(0)) return plain;
    const SymbolRange r = facts_.range(rest);
    if (unbounded(r.lo) || unbounded(r.hi)) return plain;
    const std::int64_t q = divide_down(r.lo, k);
    return q == divide_down(r.hi, k) ? floor_div(multiples, k) + q : plain;
  }

  // Leaves out arguments that another one always outdoes.
  Dim choice(const DimAtom& a) const {
    const bool greatest = a.kind == DimAtomKind::Max;
    std::vector<Dim> kept;
    for (const Dim& raw : a.args) {
      const Dim arg = run(raw);
      const auto beats = [&](const Dim& x, const Dim& y) {
        return greatest ? facts_.known_less_equal(y, x) : facts_.known_less_equal(x, y);
      };
      if (std::any_of(kept.begin(), kept.end(), [&](const Dim& k) { return beats(k, arg); })) continue;
      kept.erase(std::remove_if(kept.begin(), kept.end(), [&](const Dim& k) { return beats(arg, k); }), kept.end());
      kept.push_back(arg);
    }
    Dim out = kept[0];
    for (std::size_t i = 1; i < kept.size(); ++i) out = greatest ? max(out, kept[i]) : min(out, kept[i]);
    return out;
  }

  const DimFacts& facts_;
  const std::map<std::string, SymbolRange>& symbols_;
};

}  // namespace

Dim DimFacts::simplify(const Dim& d) const { return Simplifier(*this, symbols_).run(d); }

Result<void> DimFacts::check(const Bindings& bindings) const {
  for (const auto& [name, value] : bindings) {
    if (symbols_.find(name) != symbols_.end()) continue;
    std::vector<std::string> known;
    for (const auto& entry : symbols_) known.push_back(entry.first);
    return user_error("unknown-size", fmt::format("there is no size '{}'", name)).suggest(did_you_mean(name, known));
  }
  for (const auto& [name, range] : symbols_) {
    const auto it = bindings.find(name);
    if (it == bindings.end()) return user_error("unbound-size", fmt::format("the size '{}' has no value", name));
    const std::int64_t v = it->second;
    if (v < range.lo || v > range.hi) {
      const SymbolRange open;
      const std::string limits = range.hi >= open.hi ? fmt::format("at least {}", range.lo)
                                                     : fmt::format("{} to {}", range.lo, range.hi);
      return user_error("size-out-of-range", fmt::format("the size '{}' is out of its range", name))
          .expected(limits)
          .found(std::to_string(v));
    }
    if (v % range.multiple_of != 0) {
      return user_error("size-not-a-multiple", fmt::format("the size '{}' does not divide as declared", name))
          .expected(fmt::format("a multiple of {}", range.multiple_of))
          .found(std::to_string(v));
    }
  }
  return {};
}

}  // namespace weft
