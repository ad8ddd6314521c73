#include <cmath>

#include "graph/interpret/map.h"

namespace weft::graph::interpreter {
namespace {

template <class W, class V, class F>
Result<Tensors> map(const Tensor& x, DType to, F f) {
  return Tensors{WEFT_TRY(map_wide<W, V>(x, to, f))};
}

template <class F>
Result<Tensors> map_float(const Tensor& x, F f) {
  return map<double, double>(x, x.dtype(), f);
}

template <class F>
Result<Tensors> test_float(const Tensor& x, F f) {
  return map<double, std::uint64_t>(x, DType::Bool, f);
}

template <class W>
W negated(W v) {
  if constexpr (std::is_same_v<W, std::int64_t>) {
    return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(v));
  } else if constexpr (std::is_same_v<W, std::uint64_t>) {
    return 0 - v;
  } else {
    return -v;
  }
}

Result<Tensors> eval_neg(const Tensor& x) {
  return with_wide(x.dtype(), [&](auto w) {
    using W = decltype(w);
    return map<W, W>(x, x.dtype(), negated<W>);
  });
}

Result<Tensors> eval_abs(const Tensor& x) {
  if (is_complex(x.dtype())) {
    return map<WideComplex, WideComplex>(x, x.dtype(), [](WideComplex v) { return WideComplex(std::abs(v)); });
  }
  return with_real(x.dtype(), [&](auto w) {
    using W = decltype(w);
    return map<W, W>(x, x.dtype(), [](W v) {
      if constexpr (std::is_same_v<W, double>) return std::fabs(v);
      return v < W{} ? negated(v) : v;
    });
  });
}

Result<Tensors> eval_sign(const Tensor& x) {
  return with_real(x.dtype(), [&](auto w) {
    using W = decltype(w);
    return map<W, W>(x, x.dtype(), [](W v) { return v > W{} ? W(1) : v < W{} ? W(-1) : v; });
  });
}

Result<Tensors> eval_not(const Tensor& x) {
  if (is_bool(x.dtype())) {
    return map<std::uint64_t, std::uint64_t>(x, x.dtype(), [](std::uint64_t v) { return std::uint64_t{v == 0}; });
  }
  return map<std::uint64_t, std::uint64_t>(x, x.dtype(), [](std::uint64_t v) { return ~v; });
}

using FloatFunction = double (*)(double);

FloatFunction float_function(Op op) {
  switch (op) {
    case Op::Ceil: return [](double v) { return std::ceil(v); };
    case Op::Floor: return [](double v) { return std::floor(v); };
    case Op::Round: return [](double v) { return std::nearbyint(v); };
    case Op::Trunc: return [](double v) { return std::trunc(v); };
    case Op::Exp: return [](double v) { return std::exp(v); };
    case Op::Expm1: return [](double v) { return std::expm1(v); };
    case Op::Log: return [](double v) { return std::log(v); };
    case Op::Log1p: return [](double v) { return std::log1p(v); };
    case Op::Sqrt: return [](double v) { return std::sqrt(v); };
    case Op::Rsqrt: return [](double v) { return 1 / std::sqrt(v); };
    case Op::Reciprocal: return [](double v) { return 1 / v; };
    case Op::Sin: return [](double v) { return std::sin(v); };
    case Op::Cos: return [](double v) { return std::cos(v); };
    case Op::Tan: return [](double v) { return std::tan(v); };
    case Op::Asin: return [](double v) { return std::asin(v); };
    case Op::Acos: return [](double v) { return std::acos(v); };
    case Op::Atan: return [](double v) { return std::atan(v); };
    case Op::Sinh: return [](double v) { return std::sinh(v); };
    case Op::Cosh: return [](double v) { return std::cosh(v); };
    case Op::Tanh: return [](double v) { return std::tanh(v); };
    case Op::Asinh: return [](double v) { return std::asinh(v); };
    case Op::Acosh: return [](double v) { return std::acosh(v); };
    case Op::Atanh: return [](double v) { return std::atanh(v); };
    case Op::Erf: return [](double v) { return std::erf(v); };
    case Op::Sigmoid: return [](double v) { return 1 / (1 + std::exp(-v)); };
    default: return nullptr;
  }
}

}  // namespace

Result<Tensors> eval_unary(Eval& e) {
  const Tensor& x = e.in[0];
  switch (e.op()) {
    case Op::Abs: return eval_abs(x);
    case Op::Neg: return eval_neg(x);
    case Op::Sign: return eval_sign(x);
    case Op::Not: return eval_not(x);
    case Op::IsNan: return test_float(x, [](double v) { return std::uint64_t{std::isnan(v)}; });
    case Op::IsInf: return test_float(x, [](double v) { return std::uint64_t{std::isinf(v)}; });
    default: break;
  }
  const FloatFunction f = float_function(e.op());
  WEFT_CHECK(f != nullptr, std::string("a unary op without evaluation: ") + info(e.op()).name);
  return map_float(x, f);
}

}  // namespace weft::graph::interpreter
