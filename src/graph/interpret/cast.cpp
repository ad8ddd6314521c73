#include <cmath>

#include "graph/interpret/map.h"
#include "runtime/hostops/hostops.h"

namespace weft::graph::interpreter {
namespace {

// Saturation is for floats of at most 8 bits; wider ones overflow to infinity.
bool saturates(DType to, bool saturate) { return saturate && bits(to) <= 8; }

Result<Tensor> float_to(const Tensor& x, DType to, bool saturate) {
  if (is_bool(to)) return map_wide<double, std::uint64_t>(x, to, [](double v) { return std::uint64_t{v != 0}; });
  if (is_int(to)) return map_wide<double, std::int64_t>(x, to, [to](double v) { return clamp_to_int(to, v); });
  if (!saturates(to, saturate)) return map_wide<double, double>(x, to, [](double v) { return v; });
  return map_wide<double, double>(x, to, [to](double v) { return decode_float(to, encode_float(to, v, true)); });
}

Result<Tensor> int_to(const Tensor& x, DType to, bool saturate) {
  if (is_bool(to)) {
    return map_wide<std::int64_t, std::uint64_t>(x, to, [](std::int64_t v) { return std::uint64_t{v != 0}; });
  }
  if (is_int(to)) return map_wide<std::int64_t, std::int64_t>(x, to, [](std::int64_t v) { return v; });
  const bool is_unsigned = x.dtype() == DType::U64;
  const bool clamp = saturates(to, saturate);
  return map_wide<std::int64_t, double>(
      x, to, [=](std::int64_t v) { return int_to_float(to, v, is_unsigned, clamp); });
}

Result<Tensor> cast(const Tensor& x, DType to, bool saturate) {
  const DType from = x.dtype();
  if (from == to) return x;
  if (is_string(to)) return runtime::to_strings(x);
  if (is_string(from)) return runtime::from_strings(x, to, saturate);
  if (is_complex(from)) return map_wide<WideComplex, WideComplex>(x, to, [](WideComplex v) { return v; });
  if (is_complex(to)) {
    const DType part = to == DType::C64 ? DType::F32 : DType::F64;
    const Tensor real = WEFT_TRY(cast(x, part, false));
    return map_wide<double, WideComplex>(real, to, [](double v) { return WideComplex(v); });
  }
  return is_float(from) ? float_to(x, to, saturate) : int_to(x, to, saturate);
}

Result<Tensor> bitcast(const Tensor& x, DType to) {
  if (is_bool(to)) {  // any byte but 0 is true, and true is stored as 1
    return map_wide<std::uint64_t, std::uint64_t>(
        Tensor::view(DType::U8, x.shape(), x.data(), std::make_shared<Tensor>(x)), to,
        [](std::uint64_t v) { return std::uint64_t{v != 0}; });
  }
  return Tensor::view(to, x.shape(), x.data(), std::make_shared<Tensor>(x));
}

}  // namespace

Result<Tensors> eval_cast(Eval& e) {
  const Tensor& x = e.in[0];
  const DType to = e.attrs().dtype(Attr::DType);
  if (e.op() == Op::Bitcast) {
    if (bits(to) != bits(x.dtype()) || is_string(to) || is_complex(to)) {
      return e.error("dtype-mismatch", "the dtypes' widths differ").expected(name(x.dtype())).found(name(to));
    }
    return one(bitcast(x, to));
  }
  return one(cast(x, to, e.attrs().flag(Attr::Saturate)));
}

}  // namespace weft::graph::interpreter
