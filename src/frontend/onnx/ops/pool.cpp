// Pooling.
#include <fmt/format.h>

#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/ops/window.h"
#include "frontend/onnx/reader/validate.h"
#include "ops/norm.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

struct Pool {
  Window window;
  Attrs attrs;  // for the window prims, over all axes
};

// With ceil_mode the last window may hang over the end, but must start inside the input or its padding before: what it
// lacks is added as padding after.
Result<Pool> pool_of(NodeContext& c) {
  if (c.rank(0) < 3) return c.bad("the input needs at least one spatial axis");
  Shape spatial(c.shape(0).begin() + 2, c.shape(0).end());
  Pool p;
  p.window = WEFT_TRY(window_of(c, spatial, c.integers("kernel_shape")));
  Window& w = p.window;
  if (c.integer("ceil_mode", 0) != 0 && c.text("auto_pad", "NOTSET") == "NOTSET") {
    for (std::size_t d = 0; d < spatial.size(); ++d) {
      Dim reach = (w.kernel[d] - 1) * w.dilations[d] + 1;
      Dim room = spatial[d] + w.lo[d] + w.hi[d] - reach;
      Dim outputs = ceil_div(room, Dim(w.strides[d])) + 1;
      // The last window starts at (outputs - 1) * stride; it is dropped when that is beyond the input and its start pad.
      Dim start = (outputs - 1) * w.strides[d];
      Dim dropped = max(Dim(0), min(Dim(1), start - (spatial[d] + w.lo[d]) + 1));
      outputs = c.b.graph().facts.simplify(outputs - dropped);
      w.hi[d] = c.b.graph().facts.simplify(max((outputs - 1) * w.strides[d] + reach - spatial[d] - w.lo[d], Dim(0)));
    }
  }
  auto with_batch = [](std::vector<std::int64_t> v) {
    v.insert(v.begin(), {1, 1});
    return v;
  };
  Shape lo = w.lo, hi = w.hi;
  lo.insert(lo.begin(), 2, Dim(0));
  hi.insert(hi.begin(), 2, Dim(0));
  p.attrs.set(Attr::Window, with_batch(w.kernel)).set(Attr::Strides, with_batch(w.strides));
  p.attrs.set(Attr::Dilations, with_batch(w.dilations)).set(Attr::Lo, lo).set(Attr::Hi, hi);
  return p;
}

Result<void> max_pool(NodeContext& c) {
  Pool p = WEFT_TRY(pool_of(c));
  c.out(0, c.b.node(Op::WindowMax, {c.in(0)}, p.attrs));
  if (!c.wants(1)) return {};
  ValueId flat = c.b.node(Op::WindowArgMax, {c.in(0)}, p.attrs);
  if (c.integer("storage_order", 0) != 0) {
    // Column-major within the spatial axes: take the flat index apart and put it together the other way round.
    const Shape x = c.shape(0);
    ValueId rest = flat, outer = c.b.like(flat, 0);
    Dim scale = 1, plane = product(Shape(x.begin() + 2, x.end()));
    auto by = [&](Op op, ValueId v, const Dim& d) {
      return c.b.binary(op, v, c.b.reshape(c.b.shape_value({d}), {}));
    };
    ValueId inside = by(Op::Mod, rest, plane);
    outer = c.b.binary(Op::Sub, flat, inside);
    std::vector<ValueId> parts(x.size() - 2);
    for (std::size_t d = x.size(); d-- > 2;) {
      parts[d - 2] = by(Op::Mod, inside, x[d]);
      inside = by(Op::Div, inside, x[d]);
    }
    flat = outer;
    for (std::size_t d = 2; d < x.size(); ++d) {
      flat = c.b.binary(Op::Add, flat, by(Op::Mul, parts[d - 2], scale));
      scale = scale * x[d];
    }
  }
  c.out(1, flat);
  return {};
}

// The sum of each window over the number of its cells: inside the input, or (count_include_pad) inside it and its
// padding; cells that only ceil_mode adds never count.
Result<void> average_pool(NodeContext& c) {
  Pool p = WEFT_TRY(pool_of(c));
  DType t = c.dtype(0);
  ValueId sum = c.b.node(Op::WindowSum, {c.in(0)}, p.attrs);
  bool with_pads = c.integer("count_include_pad", 0) != 0;
  bool padded = false;
  for (std::size_t d = 0; d < p.window.kernel.size(); ++d) padded = padded || !p.window.lo[d].is(0) || !p.window.hi[d].is(0);
  if (!padded || (with_pads && c.integer("ceil_mode", 0) == 0)) {
    double cells = 1;
    for (std::int64_t k : p.window.kernel) cells *= static_cast<double>(k);
    c.out(0, c.b.binary(Op::Div, sum, c.b.scalar(t, cells)));
    return {};
  }
  Shape ones_shape = c.shape(0);
  ones_shape[0] = ones_shape[1] = 1;
  Attrs attrs = p.attrs;
  if (with_pads) {
    // The declared padding counts as cells; recompute what is left of it as padding of the grown input.
    auto pads = c.integers("pads", std::vector<std::int64_t>(2 * p.window.kernel.size(), 0));
    Shape lo(2, Dim(0)), hi(2, Dim(0));
    for (std::size_t d = 0; d < p.window.kernel.size(); ++d) {
      std::int64_t before = pads[d], after = pads[p.window.kernel.size() + d];
      ones_shape[2 + d] = ones_shape[2 + d] + before + after;
      lo.push_back(0);
      hi.push_back(c.b.graph().facts.simplify(max(p.window.hi[d] - after, Dim(0))));
    }
    attrs.set(Attr::Lo, lo).set(Attr::Hi, hi);
  }
  ValueId count = c.b.node(Op::WindowSum, {c.b.splat({t, ones_shape}, 1)}, attrs);
  c.out(0, c.b.binary(Op::Div, sum, count));
  return {};
}

std::vector<std::int64_t> spatial_axes(NodeContext& c) {
  std::vector<std::int64_t> axes(c.rank(0) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

Result<void> global_average_pool(NodeContext& c) {
  if (c.rank(0) < 2) return c.bad("the input needs a batch and a channel axis");
  c.out(0, ops::mean(c.b, c.in(0), spatial_axes(c), true));
  return {};
}

Result<void> global_max_pool(NodeContext& c) {
  if (c.rank(0) < 2) return c.bad("the input needs a batch and a channel axis");
  c.out(0, c.b.reduce(Op::ReduceMax, c.in(0), spatial_axes(c), true));
  return {};
}

// (sum |x|^p)^(1/p)
ValueId root(NodeContext& c, ValueId sum, std::int64_t p) {
  if (p == 1) return sum;
  if (p == 2) return c.b.unary(Op::Sqrt, sum);
  return c.b.binary(Op::Pow, sum, c.b.scalar(c.dtype(0), 1.0 / static_cast<double>(p)));
}

ValueId powers(NodeContext& c, std::int64_t p) {
  if (p == 2) return c.b.binary(Op::Mul, c.in(0), c.in(0));
  ValueId x = c.b.unary(Op::Abs, c.in(0));
  return p == 1 ? x : c.b.binary(Op::Pow, x, c.b.scalar(c.dtype(0), static_cast<double>(p)));
}

Result<void> lp_pool(NodeContext& c) {
  Pool pool = WEFT_TRY(pool_of(c));
  std::int64_t p = c.integer("p", 2);
  if (p < 1) return c.bad("p must be at least 1");
  c.out(0, root(c, c.b.node(Op::WindowSum, {powers(c, p)}, pool.attrs), p));
  return {};
}

Result<void> global_lp_pool(NodeContext& c) {
  std::int64_t p = c.integer("p", 2);
  if (p < 1 || c.rank(0) < 2) return c.bad("p must be at least 1");
  c.out(0, root(c, c.b.reduce(Op::ReduceSum, powers(c, p), spatial_axes(c), true), p));
  return {};
}

constexpr OpEntry kPoolOps[] = {
    {"MaxPool", 1, kOpsetMax, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", max_pool},
    {"AveragePool", 1, kOpsetMax, 1, 1, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides", average_pool},
    {"LpPool", 2, kOpsetMax, 1, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides", lp_pool},
    {"GlobalAveragePool", 1, kOpsetMax, 1, 1, "", global_average_pool},
    {"GlobalMaxPool", 1, kOpsetMax, 1, 1, "", global_max_pool},
    {"GlobalLpPool", 2, kOpsetMax, 1, 1, "p", global_lp_pool},
};

}  // namespace

OpTable pool_ops() { return {kPoolOps, std::size(kPoolOps)}; }

}  // namespace weft::onnx
