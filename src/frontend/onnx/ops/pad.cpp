// Pad, and the two operators that trade channels for space.
#include <fmt/format.h>

#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

struct Pads {
  Shape lo, hi;  // per axis of the input; negative ones crop
};

Result<Pads> pads_of(NodeContext& c) {
  Shape given;
  if (c.opset() >= 11) {
    given = WEFT_TRY(c.dims_or_bind(1, "pads"));
  } else {
    for (std::int64_t v : c.integers(c.opset() < 2 ? "paddings" : "pads")) given.push_back(v);
  }
  std::vector<std::int64_t> axes(c.rank(0));
  std::iota(axes.begin(), axes.end(), 0);
  if (c.opset() >= 18 && c.has(3)) axes = WEFT_TRY(c.axes(WEFT_TRY(c.ints(3, "axes")), c.rank(0)));
  std::size_t n = axes.size();
  if (given.size() != 2 * n) {
    return c.bad("pads must have two entries per axis").expected(std::to_string(2 * n)).found(std::to_string(given.size()));
  }
  Pads pads{Shape(c.rank(0), Dim(0)), Shape(c.rank(0), Dim(0))};
  for (std::size_t k = 0; k < n; ++k) {
    pads.lo[axes[k]] = given[k];
    pads.hi[axes[k]] = given[n + k];
  }
  return pads;
}

// The axis grows first and is cropped afterwards, so that a reflection sees all of the input.
Result<void> pad(NodeContext& c) {
  std::string mode = c.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && (mode != "wrap" || c.opset() < 19)) {
    return c.bad(fmt::format("unknown mode '{}'", mode));
  }
  Pads pads = WEFT_TRY(pads_of(c));
  DType t = c.dtype(0);
  ValueId fill = c.opset() < 11 ? c.b.scalar(t, c.real("value", 0))
                 : c.has(2)     ? c.b.reshape(c.b.cast(c.in(2), t), {})
                                : c.b.scalar(t, 0);
  const DimFacts& facts = c.b.graph().facts;
  Shape grow_lo, grow_hi, start, size;
  const Shape from = c.shape(0);
  bool grows = false;
  for (std::size_t d = 0; d < from.size(); ++d) {
    grow_lo.push_back(facts.simplify(max(pads.lo[d], Dim(0))));
    grow_hi.push_back(facts.simplify(max(pads.hi[d], Dim(0))));
    grows |= !grow_lo[d].is(0) || !grow_hi[d].is(0);
    start.push_back(facts.simplify(max(-pads.lo[d], Dim(0))));
    size.push_back(facts.simplify(from[d] + pads.lo[d] + pads.hi[d]));
    if (size[d].is_const() && size[d].value() < 0) {
      return c.bad(fmt::format("more is cropped from axis {} than there is", d)).found(size[d].str());
    }
  }
  ValueId y = c.in(0);
  if (grows) {
    Attrs attrs;
    attrs.set(Attr::Lo, grow_lo).set(Attr::Hi, grow_hi).set(Attr::Mode, mode);
    y = c.b.node(Op::Pad, {y, fill}, std::move(attrs));
  }
  std::vector<std::int64_t> ones(from.size(), 1);
  c.out(0, c.b.slice(y, std::move(start), std::move(size), std::move(ones)));
  return {};
}

Result<std::int64_t> block_size(NodeContext& c) {
  if (c.rank(0) != 4) return c.bad("the input must be [N, C, H, W]");
  std::int64_t block = c.integer("blocksize", 0);
  if (block < 1 || block > 1 << 15) return c.bad("blocksize must be at least 1");
  return block;
}

Result<void> depth_to_space(NodeContext& c) {
  Dim block = WEFT_TRY(block_size(c));
  std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.bad("mode must be DCR or CRD");
  const Shape s = c.shape(0);
  Dim channels = floor_div(s[1], block * block);
  bool depth_first = mode == "DCR";
  Shape split = depth_first ? Shape{s[0], block, block, channels, s[2], s[3]} : Shape{s[0], channels, block, block, s[2], s[3]};
  ValueId x = c.b.reshape(c.in(0), std::move(split));
  x = c.b.transpose(x, depth_first ? std::vector<std::int64_t>{0, 3, 4, 1, 5, 2} : std::vector<std::int64_t>{0, 1, 4, 2, 5, 3});
  c.out(0, c.b.reshape(x, {s[0], channels, s[2] * block, s[3] * block}));
  return {};
}

Result<void> space_to_depth(NodeContext& c) {
  Dim block = WEFT_TRY(block_size(c));
  const Shape s = c.shape(0);
  Dim h = floor_div(s[2], block), w = floor_div(s[3], block);
  ValueId x = c.b.transpose(c.b.reshape(c.in(0), {s[0], s[1], h, block, w, block}), {0, 3, 5, 1, 2, 4});
  c.out(0, c.b.reshape(x, {s[0], s[1] * block * block, h, w}));
  return {};
}

constexpr OpEntry kPadOps[] = {
    {"Pad", 1, 1, 1, 1, "mode paddings value", pad},
    {"Pad", 2, kOpsetMax, 1, 4, "mode pads value", pad},
    {"DepthToSpace", 1, kOpsetMax, 1, 1, "blocksize mode", depth_to_space},
    {"SpaceToDepth", 1, kOpsetMax, 1, 1, "blocksize", space_to_depth},
};

}  // namespace

OpTable pad_ops() { return {kPadOps, std::size(kPadOps)}; }

}  // namespace weft::onnx
