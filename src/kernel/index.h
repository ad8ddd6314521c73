// Scalar i64 arithmetic kept as linear sums, so that addresses share their bases, constants reach
// the access itself and what does not change in a loop is added outside of it.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace weft::kernel {

// constant + sum of coefficient * term; terms are kernel scalars, sorted, without zero
// coefficients.
struct Sum {
  struct Term {
    ValueId value;
    std::int64_t coefficient;
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::vector<Term> terms;
  std::int64_t constant = 0;

  bool is_constant() const { return terms.empty(); }
  bool is(std::int64_t c) const { return terms.empty() && constant == c; }
  friend bool operator==(const Sum&, const Sum&) = default;
};

// What is known of a scalar beyond its name.
struct Facts {
  std::int64_t divisor = 1;  // it is a multiple of this
  int depth = 0;             // of the block in which it becomes known
  bool counted =
      false;  // made of ids, sizes, counters and constants, whose sums and products do not overflow
  bool natural = false;  // that, and not negative
};

// An i64 tile: rows[r] + lane * (index of the column). One row may stand for all.
struct Lines {
  std::vector<Sum> rows;
  Sum lane;

  const Sum& row(int r) const { return rows[rows.size() == 1 ? 0 : static_cast<std::size_t>(r)]; }
};

class IndexMath {
 public:
  explicit IndexMath(Builder& builder) : b_(builder) {}

  static Sum constant(std::int64_t c) { return {{}, c}; }
  Sum term(ValueId v, Facts facts);
  Sum add(const Sum& a, const Sum& b) const;
  Sum scale(const Sum& a, std::int64_t factor) const;
  Sum sub(const Sum& a, const Sum& b) const { return add(a, scale(b, -1)); }
  Sum mul(const Sum& a, const Sum& b);

  Facts facts(const Sum& a) const;
  ValueId value(const Sum& a);  // emits it: outer terms first, the constant last

  // floor_div and mod by d > 0 of base + lane * i, 0 <= i < lanes, when both are of that form
  // again.
  struct Split {
    Sum quotient, remainder;
    std::int64_t quotient_lane = 0, remainder_lane = 0;
  };
  std::optional<Split> split(const Sum& base, std::int64_t lane, int lanes, std::int64_t d);

  // The op on tiles, when the result is of that form again: sums and products, floor_div and mod of `columns` columns.
  std::optional<Lines> arithmetic(ScalarOp op, const Lines& a, const Lines& b, int columns);
  // Of a scalar that the op, which is not linear, makes of one row of operands without lanes; null: no index.
  Facts result_facts(ScalarOp op, const std::vector<const Lines*>& operands, int row) const;

 private:
  std::optional<Lines> linear(ScalarOp op, const Lines& a, const Lines& b);
  std::optional<Lines> divide(ScalarOp op, const Lines& a, const Lines& b, int columns);
  Facts facts(ValueId v) const;
  Builder& b_;
  std::vector<std::optional<Facts>> facts_;  // by value
};

}  // namespace weft::kernel
