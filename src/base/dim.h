// Symbolic sizes. A Dim is an integer or an expression over named symbols, kept in a canonical form, so that equal
// polynomials compare equal: (n + 1) * 2 == 2*n + 2. Values are immutable and cheap to copy.
//
// Semantics: 64-bit integers without overflow (evaluation reports overflow); floor_div and ceil_div round towards
// minus and plus infinity; a division by zero is reported when evaluated. Simplification keeps the value wherever
// the expression as written has one. A form whose coefficients overflow, or that grows beyond a fixed size, becomes
// the expression overflow(), which absorbs what it meets and is an error when evaluated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weft {

class DimFacts;
struct DimPoly;  // base/dim_poly.h, for what works on the form itself
using Bindings = std::map<std::string, std::int64_t, std::less<>>;  // symbol -> value

class Dim {
 public:
  Dim() = default;  // 0
  Dim(std::int64_t value) : value_(value) {}
  static Dim symbol(std::string_view name);

  bool is_const() const { return node_ == nullptr; }
  std::int64_t value() const;  // of a constant; WEFT_CHECKs otherwise
  bool is(std::int64_t v) const { return is_const() && value_ == v; }
  std::optional<std::string> as_symbol() const;  // when it is one bare symbol

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a) { return Dim(0) - a; }
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);  // a - floor_div(a, b) * b
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);

  friend bool operator==(const Dim& a, const Dim& b);  // same canonical form
  friend bool operator<(const Dim& a, const Dim& b);   // a total order for maps, not a numeric one
  std::size_t hash() const;

  // "n*2 + 7", "floordiv(n, 8)", "max(n, 1)"; a symbol that is no identifier is quoted. parse(str()) gives it back.
  std::string str() const;
  static Result<Dim> parse(std::string_view text);

  Result<std::int64_t> evaluate(const Bindings& bindings) const;  // unbound symbol, overflow, x/0: errors
  Dim substitute(const std::map<std::string, Dim>& map) const;
  void collect_symbols(std::set<std::string>& into) const;
  std::set<std::string> symbols() const;

 private:
  friend struct DimPoly;
  std::int64_t value_ = 0;
  std::shared_ptr<const DimPoly> node_;  // null: the constant value_
};

Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);

using Shape = std::vector<Dim>;
Dim product(const Shape& shape);
std::string str(const Shape& shape);  // "[n, 768]"
bool is_static(const Shape& shape);
std::optional<std::vector<std::int64_t>> static_sizes(const Shape& shape);
Result<std::vector<std::int64_t>> evaluate(const Shape& shape, const Bindings& bindings);  // also refuses sizes < 0

struct SymbolRange {
  std::int64_t lo = 0;
  std::int64_t hi = INT64_MAX / 4;
  std::int64_t multiple_of = 1;
};

// What is known of the symbols, and what follows from it for expressions. Sound, not complete.
class DimFacts {
 public:
  void declare(const std::string& symbol, SymbolRange range);  // intersects with what is known
  const std::map<std::string, SymbolRange>& symbols() const { return symbols_; }
  SymbolRange range(const Dim& d) const;  // lo/hi saturate; multiple_of: largest known divisor, 0 for 0
  bool known_equal(const Dim& a, const Dim& b) const;
  bool known_less(const Dim& a, const Dim& b) const;        // a < b for all bindings in range
  bool known_less_equal(const Dim& a, const Dim& b) const;
  bool known_divisible(const Dim& a, const Dim& b) const;
  Dim simplify(const Dim& d) const;  // uses ranges: max(n, 0) -> n, floordiv(4*n, 4) -> n, ...
  // Checks a binding: unknown, missing or out-of-range symbols are user errors that name the symbol and its range.
  Result<void> check(const Bindings& bindings) const;

 private:
  std::map<std::string, SymbolRange> symbols_;
};

}  // namespace weft

template <>
struct std::hash<weft::Dim> {
  std::size_t operator()(const weft::Dim& d) const { return d.hash(); }
};
