// How a sort or top-k is done: decided from sizes alone, in modelled nanoseconds per row. Private to loop/lower.
#pragma once

#include "base/dim.h"
#include "base/dtype.h"

namespace weft::loop {

struct SortPlan {
  bool select = false;    // top-k: find the k-th key, keep what comes before it, sort only that
  bool counting = false;  // few: an element's rank is the number of elements before it. Otherwise: radix passes
  int blocks = 1;         // a long row is cut into so many blocks, which threads work on
};

// Bits of the keys that elements of a dtype are ordered by.
int key_bits(DType t);

// `rows` rows of `n` elements with keys of `bits` bits, of which the first `k` are wanted.
SortPlan plan_sort(const Dim& rows, const Dim& n, const Dim& k, int bits, const DimFacts& facts);

}  // namespace weft::loop
