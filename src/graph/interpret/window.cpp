#include "graph/interpret/combine.h"
#include "graph/interpret/eval.h"

namespace weft::graph::interpreter {
namespace {

struct Windows {
  Sizes in, size, out, strides, lo, dilations;
};

// Calls f(flat operand index) for each element of the window at `position`, in row-major order.
template <class F>
void visit(const Windows& w, const Sizes& position, Sizes& k, F f) {
  k.assign(w.size.size(), 0);
  do {
    std::int64_t flat = 0;
    bool inside = true;
    for (std::size_t a = 0; a < k.size() && inside; ++a) {
      const std::int64_t at = position[a] * w.strides[a] + k[a] * w.dilations[a] - w.lo[a];
      inside = at >= 0 && at < w.in[a];
      flat = flat * w.in[a] + at;
    }
    if (inside) f(flat);
  } while (next_index(k, w.size));
}

Result<Windows> windows_of(const Eval& e) {
  const Attrs& attrs = e.attrs();
  Windows w{e.in[0].shape(), attrs.ints(Attr::Window), {}, attrs.ints(Attr::Strides), {}, attrs.ints(Attr::Dilations)};
  w.lo = WEFT_TRY(e.dims(Attr::Lo));
  const Sizes hi = WEFT_TRY(e.dims(Attr::Hi));
  for (std::size_t a = 0; a < w.in.size(); ++a) {
    const __int128 extent = static_cast<__int128>(w.in[a]) + w.lo[a] + hi[a];
    const __int128 reach = static_cast<__int128>(w.size[a] - 1) * w.dilations[a] + 1;
    const __int128 size = extent < reach ? 0 : (extent - reach) / w.strides[a] + 1;
    if (size > INT64_MAX) return e.error("tensor-too-large", "the result's size overflows");
    w.out.push_back(static_cast<std::int64_t>(size));
  }
  return w;
}

Result<Tensor> reduce_windows(const Tensor& x, const Windows& w, Meet how) {
  WEFT_TRY(Tensor::empty(x.dtype(), w.out));
  return with_real(x.dtype(), [&](auto wide) -> Result<Tensor> {
    using W = decltype(wide);
    const std::vector<W> values = widen<W>(x);
    std::vector<W> results;
    Sizes position(w.out.size(), 0), k;
    const std::int64_t n = count_of(w.out);
    for (std::int64_t i = 0; i < n; ++i, next_index(position, w.out)) {
      W result = neutral<W>(how, x.dtype());
      visit(w, position, k, [&](std::int64_t at) { result = meet(how, result, values[at]); });
      results.push_back(result);
    }
    return narrow(x.dtype(), w.out, results);
  });
}

// The first largest or the first NaN; -1 for a window that holds padding only.
Result<Tensor> arg_max_windows(const Tensor& x, const Windows& w) {
  Tensor y = WEFT_TRY(Tensor::empty(DType::I64, w.out));
  auto* out = y.as_mutable<std::int64_t>();
  with_real(x.dtype(), [&](auto wide) {
    using W = decltype(wide);
    const std::vector<W> values = widen<W>(x);
    Sizes position(w.out.size(), 0), k;
    for (std::int64_t i = 0; i < y.size(); ++i, next_index(position, w.out)) {
      std::int64_t best = -1;
      visit(w, position, k, [&](std::int64_t at) {
        if (best < 0 || sorts_before(values[best], values[at])) best = at;
      });
      out[i] = best;
    }
  });
  return y;
}

}  // namespace

Result<Tensors> eval_window(Eval& e) {
  const Windows w = WEFT_TRY(windows_of(e));
  if (e.op() == Op::WindowArgMax) return one(arg_max_windows(e.in[0], w));
  return one(reduce_windows(e.in[0], w, e.op() == Op::WindowMax ? Meet::Max : Meet::Add));
}

}  // namespace weft::graph::interpreter
