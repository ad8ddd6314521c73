#include <fmt/format.h>

#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

// Where the axes of x, w and the result stand.
struct ConvAxes {
  int spatial;               // number of spatial axes
  int x_channel, x_spatial;  // of x and of the result
  int w_out, w_in, w_spatial;
};

ConvAxes conv_axes(int rank, bool channels_last) {
  if (channels_last) return {rank - 2, rank - 1, 1, rank - 1, rank - 2, 0};
  return {rank - 2, 1, 2, 0, 1, 2};
}

// Elements after base_dilation - 1 zeros went between neighbours.
Dim spread(const DimFacts& facts, const Dim& size, std::int64_t base_dilation) {
  return base_dilation == 1 ? size : facts.simplify(max((size - 1) * base_dilation + 1, 0));
}

Result<void> check_channels(const InferInput& in, const ConvAxes& axes, std::int64_t groups) {
  const Shape& x = in.operands[0].shape;
  const Shape& w = in.operands[1].shape;
  if (groups < 1)
    return infer_error(in, "bad-attribute", "groups must be positive")
        .found(std::to_string(groups));
  WEFT_TRY(expect_equal(
      in, fmt::format("the input's channels are not {} groups of the kernel's", groups),
      w[axes.w_in] * groups, x[axes.x_channel]));
  const Dim& out = w[axes.w_out];
  if (groups > 1 && out.is_const() && out.value() % groups != 0) {
    return shape_error(in, "the groups do not divide the output channels",
                       fmt::format("a multiple of {}", groups), out.str());
  }
  return {};
}

}  // namespace

Result<Types> infer_conv(const InferInput& in) {
  const Type& x = in.operands[0];
  const Shape& w = in.operands[1].shape;
  if (x.rank() < 2)
    return infer_error(in, "rank-mismatch", "operand 0 must have rank 2 or more").found(str(x));
  WEFT_TRY(expect_rank(in, 1, x.rank()));
  const ConvAxes axes = conv_axes(x.rank(), in.attrs.flag(Attr::ChannelsLast));
  Type result{in.attrs.dtype(Attr::DType), x.shape};
  WEFT_TRY(check_product_dtypes(in, result.dtype));
  for (Attr attr : {Attr::Strides, Attr::Dilations, Attr::BaseDilations}) {
    WEFT_TRY(expect_count(in, attr, in.attrs.ints(attr).size(), axes.spatial));
    WEFT_TRY(expect_positive(in, attr));
  }
  for (Attr attr : {Attr::Lo, Attr::Hi})
    WEFT_TRY(expect_count(in, attr, in.attrs.dims(attr).size(), axes.spatial));
  WEFT_TRY(check_channels(in, axes, in.attrs.integer(Attr::Groups)));
  result.shape[axes.x_channel] = w[axes.w_out];
  for (int i = 0; i < axes.spatial; ++i) {
    const Dim size =
        spread(in.facts, x.shape[axes.x_spatial + i], in.attrs.ints(Attr::BaseDilations)[i]);
    result.shape[axes.x_spatial + i] = window_output(
        in.facts, size, in.attrs.dims(Attr::Lo)[i], in.attrs.dims(Attr::Hi)[i],
        w[axes.w_spatial + i], in.attrs.ints(Attr::Dilations)[i], in.attrs.ints(Attr::Strides)[i]);
  }
  return Types{result};
}

}  // namespace weft::graph
