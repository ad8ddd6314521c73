#include <fmt/format.h>

#include "graph/interpret/elements.h"
#include "graph/interpret/gemm.h"

namespace weft::graph::interpreter {
namespace {

// Everything in the layout x [N, C, D...], w [O, C/groups, K...].
struct Problem {
  std::int64_t batch, channels, groups, outputs;  // outputs: channels of the result
  Sizes in, kernel, out;                          // spatial sizes
  Sizes strides, lo, dilations, base;
};

// Along one axis: which input element the kernel's element k meets at result position o, or -1 in padding and holes.
std::int64_t source(const Problem& p, std::size_t axis, std::int64_t o, std::int64_t k) {
  const std::int64_t at = o * p.strides[axis] + k * p.dilations[axis] - p.lo[axis];
  if (at < 0 || at % p.base[axis] != 0 || at / p.base[axis] >= p.in[axis]) return -1;
  return at / p.base[axis];
}

// For one result position: the input offset within a channel for each kernel element, or -1.
void window_offsets(const Problem& p, const Sizes& position, Sizes& offsets) {
  Sizes k(p.kernel.size(), 0);
  std::size_t i = 0;
  do {
    std::int64_t offset = 0;
    for (std::size_t a = 0; a < k.size() && offset >= 0; ++a) {
      const std::int64_t s = source(p, a, position[a], k[a]);
      offset = s < 0 ? -1 : offset * p.in[a] + s;
    }
    offsets[i++] = offset;
  } while (next_index(k, p.kernel));
}

Sizes position_of(std::int64_t flat, const Sizes& shape) {
  Sizes index(shape.size());
  for (std::size_t a = shape.size(); a-- > 0;) {
    index[a] = flat % shape[a];
    flat /= shape[a];
  }
  return index;
}

template <class W>
void convolve(const Problem& p, const Tensor& x, const Tensor& w, Tensor& y) {
  const std::int64_t channels = p.channels / p.groups, outputs = p.outputs / p.groups;
  const std::int64_t area = count_of(p.in), window = count_of(p.kernel), positions = count_of(p.out);
  const std::int64_t depth = channels * window;
  const std::vector<W> weights = widen<W>(w);
  std::vector<W> image(static_cast<std::size_t>(channels * area));
  std::vector<W> sums(static_cast<std::size_t>(outputs * positions));
  Sizes offsets(static_cast<std::size_t>(window));
  const auto row = [&](std::int64_t flat, W* out) {
    window_offsets(p, position_of(flat, p.out), offsets);
    for (std::int64_t c = 0; c < channels; ++c) {
      const W* plane = image.data() + c * area;
      for (std::int64_t k = 0; k < window; ++k) *out++ = offsets[k] < 0 ? W{} : plane[offsets[k]];
    }
  };
  for (std::int64_t n = 0; n < p.batch; ++n) {
    for (std::int64_t g = 0; g < p.groups; ++g) {
      load_wide(x, (n * p.groups + g) * channels * area, channels * area, image.data());
      gemm(weights.data() + g * outputs * depth, row, outputs, positions, depth, sums.data());
      store_wide(y, (n * p.groups + g) * outputs * positions, outputs * positions, sums.data());
    }
  }
}

// floor((extent - reach) / stride) + 1, or 0 where the kernel does not fit.
Result<std::int64_t> out_size(const Eval& e, const Problem& p, std::size_t a, std::int64_t hi) {
  __int128 extent = p.in[a] == 0 ? 0 : static_cast<__int128>(p.in[a] - 1) * p.base[a] + 1;
  extent += static_cast<__int128>(p.lo[a]) + hi;
  const __int128 reach = p.kernel[a] == 0 ? 0 : static_cast<__int128>(p.kernel[a] - 1) * p.dilations[a] + 1;
  if (extent < reach) return 0;
  const __int128 size = (extent - reach) / p.strides[a] + 1;
  if (size > INT64_MAX) return e.error("tensor-too-large", "the result's size overflows");
  return static_cast<std::int64_t>(size);
}

// [first, spatial..., last] from or to [first, last, spatial...]; for a kernel [spatial..., in, out] -> [out, in, ...].
Sizes channels_first(int rank) {
  Sizes axes{0, rank - 1};
  for (int a = 1; a < rank - 1; ++a) axes.push_back(a);
  return axes;
}
Sizes channels_last(int rank) {
  Sizes axes{0};
  for (int a = 2; a < rank; ++a) axes.push_back(a);
  axes.push_back(1);
  return axes;
}
Sizes kernel_first(int rank) {
  Sizes axes{rank - 1, rank - 2};
  for (int a = 0; a < rank - 2; ++a) axes.push_back(a);
  return axes;
}

Result<Problem> problem_of(const Eval& e, const Tensor& x, const Tensor& w) {
  const Sizes &xs = x.shape(), &ws = w.shape();
  Problem p{xs[0], xs[1], e.attrs().integer(Attr::Groups), ws[0], {}, {}, {}, {}, {}, {}, {}};
  if (p.groups < 1 || p.channels % p.groups || p.outputs % p.groups || ws[1] != p.channels / p.groups) {
    return e.error("shape-mismatch", fmt::format("channels do not fit {} groups", p.groups))
        .expected(shape_str(xs))
        .found(shape_str(ws));
  }
  p.in.assign(xs.begin() + 2, xs.end());
  p.kernel.assign(ws.begin() + 2, ws.end());
  p.strides = e.attrs().ints(Attr::Strides);
  p.dilations = e.attrs().ints(Attr::Dilations);
  p.base = e.attrs().ints(Attr::BaseDilations);
  p.lo = WEFT_TRY(e.dims(Attr::Lo));
  const Sizes hi = WEFT_TRY(e.dims(Attr::Hi));
  for (std::size_t a = 0; a < p.in.size(); ++a) p.out.push_back(WEFT_TRY(out_size(e, p, a, hi[a])));
  return p;
}

}  // namespace

Result<Tensors> eval_conv(Eval& e) {
  const bool last = e.attrs().flag(Attr::ChannelsLast);
  const int rank = e.in[0].rank();
  const Tensor x = last ? WEFT_TRY(transposed(e.in[0], channels_first(rank))) : e.in[0];
  const Tensor w = last ? WEFT_TRY(transposed(e.in[1], kernel_first(rank))) : e.in[1];
  const Problem p = WEFT_TRY(problem_of(e, x, w));
  Sizes shape{p.batch, p.outputs};
  shape.insert(shape.end(), p.out.begin(), p.out.end());
  const DType to = e.attrs().dtype(Attr::DType);
  Tensor y = WEFT_TRY(Tensor::zeros(to, shape));
  if (y.size() > 0 && w.size() > 0 && x.size() > 0) {
    if (is_float(to)) {
      convolve<double>(p, x, w, y);
    } else {
      convolve<std::uint64_t>(p, x, w, y);
    }
  }
  return one(last ? transposed(y, channels_last(rank)) : Result<Tensor>(y));
}

}  // namespace weft::graph::interpreter
