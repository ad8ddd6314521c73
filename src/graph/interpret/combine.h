// Plain combining of wide values, NaN propagating, integers wrapping: reductions, scans and scatters use it.
#pragma once

#include "base/wide.h"
#include "graph/graph.h"

namespace weft::graph::interpreter {

enum class Meet : std::uint8_t { Add, Mul, Max, Min, And, Or };
Meet meet_of(Op op);  // of reductions and scans

template <class W>
W meet(Meet how, W a, W b) {
  if constexpr (std::is_same_v<W, WideComplex>) {
    return how == Meet::Mul ? a * b : a + b;
  } else if constexpr (std::is_same_v<W, double>) {
    switch (how) {
      case Meet::Add: return a + b;
      case Meet::Mul: return a * b;
      case Meet::Max: return a != a ? a : b != b || a < b ? b : a;
      default: return a != a ? a : b != b || b < a ? b : a;
    }
  } else {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (how) {
      case Meet::Add: return static_cast<W>(x + y);
      case Meet::Mul: return static_cast<W>(x * y);
      case Meet::Max: return a < b ? b : a;
      case Meet::Min: return b < a ? b : a;
      case Meet::And: return static_cast<W>(x & y);
      default: return static_cast<W>(x | y);
    }
  }
}

// What an empty combination gives.
template <class W>
W neutral(Meet how, DType t) {
  if constexpr (std::is_same_v<W, WideComplex>) {
    return how == Meet::Mul ? W(1) : W(0);
  } else {
    switch (how) {
      case Meet::Mul: return W(1);
      case Meet::Max: return least<W>(t);
      case Meet::Min: return largest<W>(t);
      case Meet::And: return is_bool(t) ? W(1) : static_cast<W>(~std::uint64_t{0});
      default: return W(0);
    }
  }
}

}  // namespace weft::graph::interpreter
