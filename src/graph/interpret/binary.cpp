#include <cmath>

#include "graph/interpret/eval.h"

namespace weft::graph::interpreter {
namespace {

template <class W, class V, class F>
Result<Tensors> map(const Eval& e, DType to, F f) {
  const Tensor &a = e.in[0], &b = e.in[1];
  Tensor y = WEFT_TRY(result_tensor(to, a.shape()));
  W left[kWideChunk], right[kWideChunk];
  V out[kWideChunk];
  for (std::int64_t at = 0; at < a.size(); at += kWideChunk) {
    const std::int64_t n = std::min(kWideChunk, a.size() - at);
    load_wide(a, at, n, left);
    load_wide(b, at, n, right);
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(left[i], right[i]);
    store_wide(y, at, n, out);
  }
  return Tensors{y};
}

template <class W>
constexpr bool kIsFloat = std::is_same_v<W, double>;
template <class W>
constexpr bool kIsComplex = std::is_same_v<W, WideComplex>;

// Integers wrap: computed in u64, whose low bits are those of the narrower result.
template <class W, class F>
W wrapping(W a, W b, F f) {
  if constexpr (kIsFloat<W> || kIsComplex<W>) {
    return f(a, b);
  } else {
    return static_cast<W>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  }
}

template <class W>
W divide(W a, W b) {
  if constexpr (kIsFloat<W> || kIsComplex<W>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    if (b == static_cast<W>(-1) && std::is_signed_v<W>) return static_cast<W>(0 - static_cast<std::uint64_t>(a));
    return a / b;
  }
}

template <class W>
W truncated_mod(W a, W b) {
  if constexpr (kIsFloat<W>) {
    return std::fmod(a, b);
  } else {
    if (b == 0 || (b == static_cast<W>(-1) && std::is_signed_v<W>)) return 0;
    return a % b;
  }
}

template <class W>
W floored_mod(W a, W b) {
  const W r = truncated_mod(a, b);
  if constexpr (kIsFloat<W>) {
    if (r == 0) return std::copysign(r, b);
  }
  if (r != 0 && (r < 0) != (b < 0)) return r + b;
  return r;
}

template <class W>
W power(W a, W b) {
  if constexpr (kIsFloat<W>) {
    return std::pow(a, b);
  } else {
    if (std::is_signed_v<W> && b < 0) {
      const bool odd = b & 1;
      if (a == 1) return 1;
      if (a == static_cast<W>(-1)) return odd ? static_cast<W>(-1) : 1;
      return 0;
    }
    std::uint64_t result = 1, base = static_cast<std::uint64_t>(a);
    for (auto n = static_cast<std::uint64_t>(b); n > 0; n >>= 1) {
      if (n & 1) result *= base;
      base *= base;
    }
    return static_cast<W>(result);
  }
}

template <class W>
W larger(W a, W b) {
  if constexpr (kIsFloat<W>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return a < b ? b : a;
}

template <class W>
W smaller(W a, W b) {
  if constexpr (kIsFloat<W>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return b < a ? b : a;
}

// A negative distance of a signed dtype counts as beyond the width.
template <class W>
W shift_right(W a, W b, int width) {
  const bool beyond = static_cast<std::uint64_t>(b) >= static_cast<std::uint64_t>(width);
  if (beyond) return a < 0 ? static_cast<W>(-1) : 0;
  return a >> b;
}

Result<Tensors> eval_arithmetic(Eval& e) {
  const DType t = e.in[0].dtype();
  return with_wide(t, [&](auto w) -> Result<Tensors> {
    using W = decltype(w);
    const auto apply = [&](auto f) { return map<W, W>(e, t, [f](W a, W b) { return wrapping(a, b, f); }); };
    switch (e.op()) {
      case Op::Add: return apply([](auto a, auto b) { return a + b; });
      case Op::Sub: return apply([](auto a, auto b) { return a - b; });
      case Op::Mul: return apply([](auto a, auto b) { return a * b; });
      default: return map<W, W>(e, t, divide<W>);
    }
  });
}

Result<Tensors> eval_real(Eval& e) {
  const DType t = e.in[0].dtype();
  return with_real(t, [&](auto w) -> Result<Tensors> {
    using W = decltype(w);
    switch (e.op()) {
      case Op::Fmod: return map<W, W>(e, t, truncated_mod<W>);
      case Op::Mod: return map<W, W>(e, t, floored_mod<W>);
      case Op::Pow: return map<W, W>(e, t, power<W>);
      case Op::Max: return map<W, W>(e, t, larger<W>);
      default: return map<W, W>(e, t, smaller<W>);
    }
  });
}

Result<Tensors> eval_bits(Eval& e) {
  using U = std::uint64_t;
  const DType t = e.in[0].dtype();
  const int width = bits(t);
  switch (e.op()) {
    case Op::And: return map<U, U>(e, t, [](U a, U b) { return a & b; });
    case Op::Or: return map<U, U>(e, t, [](U a, U b) { return a | b; });
    case Op::Xor: return map<U, U>(e, t, [](U a, U b) { return a ^ b; });
    case Op::Shl: return map<U, U>(e, t, [&](U a, U b) { return b >= static_cast<U>(width) ? 0 : a << b; });
    default: break;
  }
  if (is_signed_int(t)) {
    using I = std::int64_t;
    return map<I, I>(e, t, [&](I a, I b) { return shift_right(a, b, width); });
  }
  return map<U, U>(e, t, [&](U a, U b) { return shift_right(a, b, width); });
}

Result<Tensors> compare_strings(Eval& e) {
  const auto &a = e.in[0].string_values(), &b = e.in[1].string_values();
  Tensor y = WEFT_TRY(Tensor::empty(DType::Bool, e.in[0].shape()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    y.set_i64(static_cast<std::int64_t>(i), (a[i] == b[i]) == (e.op() == Op::Eq));
  }
  return Tensors{y};
}

Result<Tensors> eval_equality(Eval& e) {
  const DType t = e.in[0].dtype();
  if (is_string(t)) return compare_strings(e);
  return with_wide(t, [&](auto w) -> Result<Tensors> {
    using W = decltype(w);
    const bool equal = e.op() == Op::Eq;
    return map<W, std::uint64_t>(e, DType::Bool, [equal](W a, W b) { return std::uint64_t{(a == b) == equal}; });
  });
}

Result<Tensors> eval_order(Eval& e) {
  return with_real(e.in[0].dtype(), [&](auto w) -> Result<Tensors> {
    using W = decltype(w);
    const auto apply = [&](auto f) {
      return map<W, std::uint64_t>(e, DType::Bool, [f](W a, W b) { return std::uint64_t{f(a, b)}; });
    };
    switch (e.op()) {
      case Op::Lt: return apply([](W a, W b) { return a < b; });
      case Op::Le: return apply([](W a, W b) { return a <= b; });
      case Op::Gt: return apply([](W a, W b) { return a > b; });
      default: return apply([](W a, W b) { return a >= b; });
    }
  });
}

}  // namespace

Result<Tensors> eval_binary(Eval& e) {
  WEFT_TRY(check_same_shapes(e));
  switch (e.op()) {
    case Op::Add: case Op::Sub: case Op::Mul: case Op::Div: return eval_arithmetic(e);
    case Op::Fmod: case Op::Mod: case Op::Pow: case Op::Max: case Op::Min: return eval_real(e);
    case Op::And: case Op::Or: case Op::Xor: case Op::Shl: case Op::Shr: return eval_bits(e);
    case Op::Eq: case Op::Ne: return eval_equality(e);
    case Op::Lt: case Op::Le: case Op::Gt: case Op::Ge: return eval_order(e);
    case Op::Atan2:
      return map<double, double>(e, e.in[0].dtype(), [](double y, double x) { return std::atan2(y, x); });
    default: break;
  }
  return internal_error(std::string("a binary op without evaluation: ") + info(e.op()).name);
}

}  // namespace weft::graph::interpreter
