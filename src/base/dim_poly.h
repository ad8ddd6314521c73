// The canonical form behind a Dim: constant + sum of coefficient * product of atom^power. An atom is a symbol or what
// polynomials cannot say: floordiv, max, min. ceildiv(a, b) is -floordiv(-a, b) and mod is written with floordiv, so
// there is one spelling of each. Terms are in lexicographic order of their monomials, the leading one first.
#pragma once

#include <span>

#include "base/dim.h"

namespace weft {

enum class DimAtomKind : std::uint8_t { Symbol, FloorDiv, Max, Min, Overflow };

struct DimAtom {
  DimAtomKind kind;
  std::string name;       // of a symbol
  std::vector<Dim> args;  // FloorDiv: numerator, divisor; Max and Min: two or more, sorted, all different
  std::size_t hash = 0;
  int depth = 1;
  std::int64_t weight = 1;  // nodes of the tree when written out
};

struct DimFactor {
  std::shared_ptr<const DimAtom> atom;
  int power = 1;
};
using DimMonomial = std::vector<DimFactor>;  // sorted by atom

struct DimTerm {
  std::int64_t coefficient = 0;
  DimMonomial factors;
};

struct DimPoly {
  std::int64_t constant = 0;
  std::vector<DimTerm> terms;  // at least one, none with coefficient 0
  std::size_t hash = 0;
  int depth = 0;
  std::int64_t weight = 1;
  bool overflow = false;

  // `terms` sorted and combined; gives a constant Dim when there are none.
  static Dim make(std::int64_t constant, std::vector<DimTerm> terms);
  static const DimPoly* of(const Dim& d) { return d.node_.get(); }
};

inline std::span<const DimTerm> dim_terms(const Dim& d) {
  const DimPoly* p = DimPoly::of(d);
  return p == nullptr ? std::span<const DimTerm>() : std::span<const DimTerm>(p->terms);
}
inline std::int64_t dim_constant(const Dim& d) { return d.is_const() ? d.value() : DimPoly::of(d)->constant; }
inline bool is_overflow(const Dim& d) { return !d.is_const() && DimPoly::of(d)->overflow; }

Dim dim_overflow();
Dim dim_atom(DimAtomKind kind, std::string name, std::vector<Dim> args);  // as it is, not simplified
Dim dim_of(const std::shared_ptr<const DimAtom>& atom);
Dim dim_of(DimTerm term);
const DimAtom* as_atom(const Dim& d);        // when d is one atom, as it is
const DimAtom* as_bare_atom(const DimTerm& t);  // when the term is coefficient * atom

int compare(const DimAtom& a, const DimAtom& b);
int compare(const DimMonomial& a, const DimMonomial& b);  // < 0: a is the greater monomial and stands first
int compare(const Dim& a, const Dim& b);

// m / by, where it divides.
std::optional<DimMonomial> divide(const DimMonomial& m, const DimMonomial& by);

}  // namespace weft
