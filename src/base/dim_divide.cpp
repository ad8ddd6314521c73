// floor_div in canonical form, and evaluation. Each rule keeps the value wherever the divisor is not zero.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/dim_poly.h"

namespace weft {
namespace {

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {  // not for b == 0 or MIN / -1
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// P + constant with every coefficient divided by g exactly; the constant rounds down.
Dim shrink(const Dim& d, std::int64_t g) {
  if (g == 1) return d;
  std::vector<DimTerm> terms(dim_terms(d).begin(), dim_terms(d).end());
  for (DimTerm& t : terms) t.coefficient /= g;
  return DimPoly::make(floor_quotient(dim_constant(d), g), std::move(terms));
}

std::int64_t gcd_of_coefficients(const Dim& d, std::int64_t start) {
  for (const DimTerm& t : dim_terms(d)) start = std::gcd(start, t.coefficient);
  return start;
}

struct Split {
  Dim outside, inside;  // floordiv(a, b) == outside + floordiv(inside, b)
};

Split split_by_constant(const Dim& a, std::int64_t k) {
  std::vector<DimTerm> out, in;
  for (const DimTerm& t : dim_terms(a)) {
    if (const auto q = t.coefficient / k) out.push_back({q, t.factors});
    if (const auto r = t.coefficient % k) in.push_back({r, t.factors});
  }
  const std::int64_t q = floor_quotient(dim_constant(a), k);
  return {DimPoly::make(q, std::move(out)), DimPoly::make(dim_constant(a) - q * k, std::move(in))};
}

Split split_by_term(const Dim& a, const DimTerm& b) {
  Split s{Dim(0), Dim(dim_constant(a))};
  for (const DimTerm& t : dim_terms(a)) {
    auto factors = divide(t.factors, b.factors);
    if (!factors) {
      s.inside = s.inside + dim_of(t);
      continue;
    }
    const auto q = t.coefficient / b.coefficient, r = t.coefficient % b.coefficient;
    if (q != 0) s.outside = s.outside + dim_of(DimTerm{q, std::move(*factors)});
    if (r != 0) s.inside = s.inside + dim_of(DimTerm{r, t.factors});
  }
  return s;
}

Dim divide_by_constant(const Dim& a, std::int64_t k) {
  if (k == 0 || k == INT64_MIN) return dim_atom(DimAtomKind::FloorDiv, {}, {a, Dim(k)});
  if (k == 1) return a;
  if (k < 0) return divide_by_constant(-a, -k);
  if (a.is_const()) return floor_quotient(a.value(), k);
  auto [outside, inside] = split_by_constant(a, k);
  if (inside.is_const()) return outside;  // a remainder in [0, k)
  // floor(-x / k) == -floor((x + k - 1) / k): one spelling for both.
  if (dim_terms(inside)[0].coefficient < 0) return outside - divide_by_constant(Dim(k - 1) - inside, k);
  const std::int64_t g = gcd_of_coefficients(inside, k);
  inside = shrink(inside, g);
  k /= g;
  if (k == 1) return outside + inside;
  // floor((floor(x / m) + c) / k) == floor((x + c*m) / (m*k))
  const Dim c = dim_constant(inside);
  const DimAtom* nested = as_atom(inside - c);
  if (nested != nullptr && nested->kind == DimAtomKind::FloorDiv && !nested->args[1].is(0)) {
    const Dim& m = nested->args[1];
    const Dim merged = floor_div(nested->args[0] + c * m, m * Dim(k));
    if (!is_overflow(merged)) return outside + merged;
  }
  return outside + dim_atom(DimAtomKind::FloorDiv, {}, {inside, Dim(k)});
}

// a / b where b divides a as a polynomial.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  constexpr int kSteps = 64;
  const DimTerm& lead = dim_terms(b)[0];
  Dim rest = a, quotient = 0;
  for (int step = 0; step < kSteps && !rest.is_const() && !is_overflow(rest); ++step) {
    const DimTerm& top = dim_terms(rest)[0];
    auto factors = divide(top.factors, lead.factors);
    if (!factors || top.coefficient % lead.coefficient != 0) return std::nullopt;
    const Dim part = dim_of(DimTerm{top.coefficient / lead.coefficient, std::move(*factors)});
    quotient = quotient + part;
    rest = rest - part * b;
  }
  if (!rest.is(0)) return std::nullopt;
  return quotient;
}

DimMonomial common_monomial(const DimMonomial& a, const DimMonomial& b) {
  DimMonomial out;
  for (const DimFactor& f : a) {
    for (const DimFactor& g : b) {
      if (compare(*f.atom, *g.atom) == 0) out.push_back({f.atom, std::min(f.power, g.power)});
    }
  }
  return out;
}

Dim without(const Dim& d, const DimMonomial& m) {
  std::vector<DimTerm> terms;
  std::int64_t constant = dim_constant(d);
  for (const DimTerm& t : dim_terms(d)) {
    auto factors = *divide(t.factors, m);
    if (factors.empty()) {
      constant = t.coefficient;  // d has no constant of its own where m is not 1
    } else {
      terms.push_back({t.coefficient, std::move(factors)});
    }
  }
  return DimPoly::make(constant, std::move(terms));
}

// Divides numerator and divisor by what they share.
void cancel(Dim& a, Dim& b) {
  std::int64_t g = std::gcd(dim_constant(a), dim_constant(b));
  g = gcd_of_coefficients(b, gcd_of_coefficients(a, g));
  a = shrink(a, g);
  b = shrink(b, g);
  if (dim_constant(a) != 0 || dim_constant(b) != 0) return;
  DimMonomial shared = dim_terms(b)[0].factors;
  for (const DimTerm& t : dim_terms(a)) shared = common_monomial(shared, t.factors);
  for (const DimTerm& t : dim_terms(b)) shared = common_monomial(shared, t.factors);
  if (shared.empty()) return;
  a = without(a, shared);
  b = without(b, shared);
}

Dim divide_by_symbolic(Dim a, Dim b) {
  if (dim_terms(b)[0].coefficient < 0) {
    a = -a;
    b = -b;
  }
  if (a.is(0)) return a;
  if (a.is(INT64_MIN)) return dim_overflow();  // has no negation
  Dim outside = 0;
  if (dim_terms(b).size() == 1 && dim_constant(b) == 0) {
    Split s = split_by_term(a, dim_terms(b)[0]);
    if (s.inside.is(0)) return s.outside;
    outside = s.outside;
    a = s.inside;
  } else if (auto q = exact_quotient(a, b)) {
    return *q;
  }
  if (is_overflow(a)) return a;
  cancel(a, b);
  if (b.is_const()) return outside + divide_by_constant(a, b.value());
  return outside + dim_atom(DimAtomKind::FloorDiv, {}, {a, b});
}

Error overflow_error(const Dim& d) {
  return user_error("size-overflow", fmt::format("the size {} does not fit in 64 bits", d.str()));
}

Result<std::int64_t> evaluate_atom(const DimAtom& atom, const Bindings& bindings) {
  if (atom.kind == DimAtomKind::Symbol) {
    const auto it = bindings.find(atom.name);
    if (it == bindings.end()) {
      return user_error("unbound-size", fmt::format("the size '{}' has no value", atom.name));
    }
    return it->second;
  }
  if (atom.kind == DimAtomKind::Overflow) return overflow_error(dim_overflow());
  std::vector<std::int64_t> args;
  for (const Dim& arg : atom.args) args.push_back(WEFT_TRY(arg.evaluate(bindings)));
  if (atom.kind == DimAtomKind::Max) return *std::max_element(args.begin(), args.end());
  if (atom.kind == DimAtomKind::Min) return *std::min_element(args.begin(), args.end());
  const Dim whole = dim_atom(DimAtomKind::FloorDiv, {}, atom.args);
  if (args[1] == 0) return user_error("size-division-by-zero", fmt::format("{} divides by zero", whole.str()));
  if (args[0] == INT64_MIN && args[1] == -1) return overflow_error(whole);
  return floor_quotient(args[0], args[1]);
}

}  // namespace

Dim floor_div(const Dim& a, const Dim& b) {
  if (is_overflow(a) || is_overflow(b)) return dim_overflow();
  if (b.is_const()) {
    if (b.is(-1)) return -a;
    return divide_by_constant(a, b.value());
  }
  return divide_by_symbolic(a, b);
}

Result<std::int64_t> Dim::evaluate(const Bindings& bindings) const {
  if (is_const()) return value_;
  __int128 sum = dim_constant(*this);
  for (const DimTerm& t : dim_terms(*this)) {
    std::int64_t product = t.coefficient;
    for (const DimFactor& f : t.factors) {
      const std::int64_t v = WEFT_TRY(evaluate_atom(*f.atom, bindings));
      for (int i = 0; i < f.power; ++i) {
        if (__builtin_mul_overflow(product, v, &product)) return overflow_error(*this);
      }
    }
    sum += product;
  }
  if (sum < INT64_MIN || sum > INT64_MAX) return overflow_error(*this);
  return static_cast<std::int64_t>(sum);
}

Dim Dim::substitute(const std::map<std::string, Dim>& map) const {
  if (is_const() || is_overflow(*this)) return *this;
  Dim sum = dim_constant(*this);
  for (const DimTerm& t : dim_terms(*this)) {
    Dim product = t.coefficient;
    for (const DimFactor& f : t.factors) {
      Dim value = dim_of(f.atom);
      if (f.atom->kind == DimAtomKind::Symbol) {
        const auto it = map.find(f.atom->name);
        if (it != map.end()) value = it->second;
      } else {
        value = f.atom->args[0].substitute(map);
        for (std::size_t i = 1; i < f.atom->args.size(); ++i) {
          const Dim arg = f.atom->args[i].substitute(map);
          value = f.atom->kind == DimAtomKind::FloorDiv ? floor_div(value, arg)
                  : f.atom->kind == DimAtomKind::Max    ? max(value, arg)
                                                        : min(value, arg);
        }
      }
      for (int i = 0; i < f.power; ++i) product = product * value;
    }
    sum = sum + product;
  }
  return sum;
}

Result<std::vector<std::int64_t>> evaluate(const Shape& shape, const Bindings& bindings) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(shape.size());
  for (const Dim& d : shape) {
    const std::int64_t size = WEFT_TRY(d.evaluate(bindings));
    if (size < 0) return user_error("negative-size", fmt::format("the size {} is {}", d.str(), size));
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace weft
