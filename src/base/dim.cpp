#include "base/dim.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/dim_poly.h"

namespace weft {
namespace {

// Bounds on a form, so that hostile shape arithmetic cannot take memory, time or stack without end.
constexpr std::int64_t kMaxWeight = 4096;
constexpr int kMaxDepth = 128;
constexpr std::size_t kMaxProducts = 16384;
constexpr int kMaxPower = 64;

std::size_t mix(std::size_t h, std::size_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

std::size_t hash_text(std::string_view text) {
  std::size_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

int compare_ints(std::int64_t a, std::int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

std::optional<DimMonomial> multiply(const DimMonomial& a, const DimMonomial& b) {
  DimMonomial out;
  out.reserve(a.size() + b.size());
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() || j != b.end()) {
    const int order = i == a.end() ? 1 : j == b.end() ? -1 : compare(*i->atom, *j->atom);
    if (order < 0) {
      out.push_back(*i++);
    } else if (order > 0) {
      out.push_back(*j++);
    } else {
      out.push_back({i->atom, i->power + j->power});
      if (out.back().power > kMaxPower) return std::nullopt;
      ++i, ++j;
    }
  }
  return out;
}

// a + scale * b.
Dim add_scaled(const Dim& a, const Dim& b, std::int64_t scale) {
  if (is_overflow(a) || is_overflow(b)) return dim_overflow();
  std::int64_t constant = 0, scaled = 0;
  if (__builtin_mul_overflow(dim_constant(b), scale, &scaled)) return dim_overflow();
  if (__builtin_add_overflow(dim_constant(a), scaled, &constant)) return dim_overflow();
  const auto left = dim_terms(a);
  const auto right = dim_terms(b);
  std::vector<DimTerm> out;
  out.reserve(left.size() + right.size());
  std::size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    const int order = i == left.size()    ? 1
                      : j == right.size() ? -1
                                          : compare(left[i].factors, right[j].factors);
    if (order < 0) {
      out.push_back(left[i++]);
      continue;
    }
    DimTerm term = right[j++];
    if (__builtin_mul_overflow(term.coefficient, scale, &term.coefficient)) return dim_overflow();
    if (order == 0) {
      const std::int64_t other = left[i++].coefficient;
      if (__builtin_add_overflow(term.coefficient, other, &term.coefficient)) return dim_overflow();
    }
    if (term.coefficient != 0) out.push_back(std::move(term));
  }
  return DimPoly::make(constant, std::move(out));
}

Dim scale(const Dim& a, std::int64_t by) {
  if (by == 0) return is_overflow(a) ? a : Dim(0);
  return by == 1 ? a : add_scaled(Dim(0), a, by);
}

// Drops equal or dominated arguments (those that differ by a constant) and sorts the rest.
Dim extreme(DimAtomKind kind, const Dim& a, const Dim& b) {
  if (is_overflow(a) || is_overflow(b)) return dim_overflow();
  std::vector<Dim> kept;
  const auto insert = [&](const Dim& candidate) {
    for (Dim& other : kept) {
      const Dim difference = candidate - other;
      if (!difference.is_const()) continue;
      if ((difference.value() > 0) == (kind == DimAtomKind::Max)) other = candidate;
      return;
    }
    kept.push_back(candidate);
  };
  for (const Dim* d : {&a, &b}) {
    const DimAtom* atom = as_atom(*d);
    if (atom != nullptr && atom->kind == kind) {
      for (const Dim& arg : atom->args) insert(arg);
    } else {
      insert(*d);
    }
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end());
  return dim_atom(kind, {}, std::move(kept));
}

}  // namespace

int compare(const DimAtom& a, const DimAtom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (const int order = a.name.compare(b.name)) return order;
  if (a.args.size() != b.args.size()) return a.args.size() < b.args.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.args.size(); ++i) {
    if (const int order = compare(a.args[i], b.args[i])) return order;
  }
  return 0;
}

int compare(const DimMonomial& a, const DimMonomial& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const int order = compare(*a[i].atom, *b[i].atom)) return order;
    if (a[i].power != b[i].power) return a[i].power > b[i].power ? -1 : 1;
  }
  return a.size() == b.size() ? 0 : a.size() > b.size() ? -1 : 1;
}

int compare(const Dim& a, const Dim& b) {
  const DimPoly* p = DimPoly::of(a);
  const DimPoly* q = DimPoly::of(b);
  if (p == q) return p == nullptr ? compare_ints(a.value(), b.value()) : 0;
  if (p == nullptr || q == nullptr) return p == nullptr ? -1 : 1;
  for (std::size_t i = 0; i < p->terms.size() && i < q->terms.size(); ++i) {
    if (const int order = compare(p->terms[i].factors, q->terms[i].factors)) return order;
    if (const int order = compare_ints(p->terms[i].coefficient, q->terms[i].coefficient)) return order;
  }
  if (p->terms.size() != q->terms.size()) return p->terms.size() < q->terms.size() ? -1 : 1;
  return compare_ints(p->constant, q->constant);
}

std::optional<DimMonomial> divide(const DimMonomial& m, const DimMonomial& by) {
  DimMonomial out;
  auto j = by.begin();
  for (const DimFactor& f : m) {
    const int order = j == by.end() ? -1 : compare(*f.atom, *j->atom);
    if (order > 0) return std::nullopt;
    const int power = order == 0 ? f.power - (j++)->power : f.power;
    if (power < 0) return std::nullopt;
    if (power > 0) out.push_back({f.atom, power});
  }
  if (j != by.end()) return std::nullopt;
  return out;
}

Dim DimPoly::make(std::int64_t constant, std::vector<DimTerm> terms) {
  if (terms.empty()) return Dim(constant);
  auto poly = std::make_shared<DimPoly>();
  bool fits = constant != INT64_MIN;  // so that every form has a negation
  poly->hash = mix(0x5bd1e995, static_cast<std::size_t>(constant));
  for (const DimTerm& t : terms) {
    fits = fits && t.coefficient != INT64_MIN;
    poly->hash = mix(poly->hash, static_cast<std::size_t>(t.coefficient));
    poly->weight += 1;
    for (const DimFactor& f : t.factors) {
      poly->hash = mix(mix(poly->hash, f.atom->hash), static_cast<std::size_t>(f.power));
      poly->depth = std::max(poly->depth, f.atom->depth);
      poly->weight += f.atom->weight * f.power;
      poly->overflow = poly->overflow || f.atom->kind == DimAtomKind::Overflow;
    }
  }
  if (!fits || poly->weight > kMaxWeight || poly->depth > kMaxDepth) return dim_overflow();
  poly->constant = constant;
  poly->terms = std::move(terms);
  Dim d;
  d.node_ = std::move(poly);
  return d;
}

Dim dim_atom(DimAtomKind kind, std::string name, std::vector<Dim> args) {
  auto atom = std::make_shared<DimAtom>();
  atom->kind = kind;
  atom->hash = mix(hash_text(name), static_cast<std::size_t>(kind));
  for (const Dim& arg : args) {
    if (is_overflow(arg)) return dim_overflow();
    atom->hash = mix(atom->hash, arg.hash());
    const DimPoly* poly = DimPoly::of(arg);
    atom->depth = std::max(atom->depth, (poly == nullptr ? 0 : poly->depth) + 1);
    atom->weight += poly == nullptr ? 1 : poly->weight;
  }
  atom->name = std::move(name);
  atom->args = std::move(args);
  return dim_of(std::shared_ptr<const DimAtom>(std::move(atom)));
}

Dim dim_of(const std::shared_ptr<const DimAtom>& atom) { return dim_of(DimTerm{1, {DimFactor{atom, 1}}}); }

Dim dim_of(DimTerm term) {
  if (term.factors.empty()) return Dim(term.coefficient);
  std::vector<DimTerm> terms;
  terms.push_back(std::move(term));
  return DimPoly::make(0, std::move(terms));
}

Dim dim_overflow() {
  static const Dim poison = dim_atom(DimAtomKind::Overflow, {}, {});
  return poison;
}

const DimAtom* as_bare_atom(const DimTerm& t) {
  return t.factors.size() == 1 && t.factors[0].power == 1 ? t.factors[0].atom.get() : nullptr;
}

const DimAtom* as_atom(const Dim& d) {
  const auto terms = dim_terms(d);
  if (terms.size() != 1 || dim_constant(d) != 0 || terms[0].coefficient != 1) return nullptr;
  return as_bare_atom(terms[0]);
}

Dim Dim::symbol(std::string_view name) { return dim_atom(DimAtomKind::Symbol, std::string(name), {}); }

std::int64_t Dim::value() const {
  WEFT_CHECK(is_const(), "the value of a symbolic size");
  return value_;
}

std::optional<std::string> Dim::as_symbol() const {
  const DimAtom* atom = as_atom(*this);
  if (atom == nullptr || atom->kind != DimAtomKind::Symbol) return std::nullopt;
  return atom->name;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  return add_scaled(a, b, 1);
}

Dim operator-(const Dim& a, const Dim& b) { return b.is(0) ? a : add_scaled(a, b, -1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a.value(), b.value(), &product) ? dim_overflow() : Dim(product);
  }
  if (a.is_const()) return scale(b, a.value());
  if (b.is_const()) return scale(a, b.value());
  if (is_overflow(a) || is_overflow(b)) return dim_overflow();
  const auto left = dim_terms(a);
  const auto right = dim_terms(b);
  if (left.size() * right.size() > kMaxProducts) return dim_overflow();
  std::vector<DimTerm> products;
  products.reserve(left.size() * right.size());
  for (const DimTerm& l : left) {
    for (const DimTerm& r : right) {
      auto factors = multiply(l.factors, r.factors);
      std::int64_t coefficient = 0;
      if (!factors || __builtin_mul_overflow(l.coefficient, r.coefficient, &coefficient)) return dim_overflow();
      products.push_back({coefficient, std::move(*factors)});
    }
  }
  std::stable_sort(products.begin(), products.end(),
                   [](const DimTerm& x, const DimTerm& y) { return compare(x.factors, y.factors) < 0; });
  std::vector<DimTerm> combined;
  for (DimTerm& t : products) {
    if (combined.empty() || compare(combined.back().factors, t.factors) != 0) {
      if (!combined.empty() && combined.back().coefficient == 0) combined.pop_back();
      combined.push_back(std::move(t));
    } else if (__builtin_add_overflow(combined.back().coefficient, t.coefficient, &combined.back().coefficient)) {
      return dim_overflow();
    }
  }
  if (!combined.empty() && combined.back().coefficient == 0) combined.pop_back();
  // (p + c) * (q + d) = p*q + p*d + q*c + c*d
  const Dim pq = DimPoly::make(0, std::move(combined));
  const Dim p_of_a = a - Dim(dim_constant(a));
  return pq + scale(p_of_a, dim_constant(b)) + scale(b, dim_constant(a));
}

Dim ceil_div(const Dim& a, const Dim& b) { return -floor_div(-a, b); }
Dim mod(const Dim& a, const Dim& b) { return a - floor_div(a, b) * b; }
Dim max(const Dim& a, const Dim& b) { return extreme(DimAtomKind::Max, a, b); }
Dim min(const Dim& a, const Dim& b) { return extreme(DimAtomKind::Min, a, b); }

bool operator==(const Dim& a, const Dim& b) {
  const DimPoly* p = DimPoly::of(a);
  const DimPoly* q = DimPoly::of(b);
  if (p != nullptr && p == q) return true;
  if (p != nullptr && q != nullptr && p->hash != q->hash) return false;
  return compare(a, b) == 0;
}

bool operator<(const Dim& a, const Dim& b) { return compare(a, b) < 0; }

std::size_t Dim::hash() const { return node_ ? node_->hash : mix(1, static_cast<std::size_t>(value_)); }

void Dim::collect_symbols(std::set<std::string>& into) const {
  for (const DimTerm& t : dim_terms(*this)) {
    for (const DimFactor& f : t.factors) {
      if (f.atom->kind == DimAtomKind::Symbol) into.insert(f.atom->name);
      for (const Dim& arg : f.atom->args) arg.collect_symbols(into);
    }
  }
}

std::set<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(names);
  return names;
}

Dim product(const Shape& shape) {
  Dim p = 1;
  for (const Dim& d : shape) p = p * d;
  return p;
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_const(); });
}

std::optional<std::vector<std::int64_t>> static_sizes(const Shape& shape) {
  if (!is_static(shape)) return std::nullopt;
  std::vector<std::int64_t> sizes;
  for (const Dim& d : shape) sizes.push_back(d.value());
  return sizes;
}

}  // namespace weft
