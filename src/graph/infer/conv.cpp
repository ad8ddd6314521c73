#include <fmt/format.h>

#include "graph/infer/infer.h"
#include "graph/winograd.h"

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

Result<Types> infer_conv_winograd(const InferInput& in) {
  const Type& x = in.operands[0];
  const Type& u = in.operands[1];
  const Winograd* form = winograd(in.attrs.integer(Attr::Tile));
  if (form == nullptr) return infer_error(in, "bad-attribute", "tile is 2 or 4");
  WEFT_TRY(expect_rank(in, 0, 4));
  WEFT_TRY(expect_rank(in, 1, 3));
  Type result{in.attrs.dtype(Attr::DType), x.shape};
  WEFT_TRY(check_product_dtypes(in, result.dtype));
  for (Attr attr : {Attr::Lo, Attr::Hi}) WEFT_TRY(expect_count(in, attr, in.attrs.dims(attr).size(), 2));
  WEFT_TRY(expect_equal(in, "the weights are of another tile", form->points(), u.shape[0]));
  WEFT_TRY(expect_equal(in, "the input's channels are not the weights'", u.shape[1], x.shape[3]));
  for (int i = 0; i < 2; ++i) {
    result.shape[1 + i] = window_output(in.facts, x.shape[1 + i], in.attrs.dims(Attr::Lo)[i], in.attrs.dims(Attr::Hi)[i], 3, 1, 1);
  }
  for (int i = 1; i <= 2; ++i) {
    if (in.facts.simplify(mod(result.shape[i], form->m)).is(0)) continue;
    return shape_error(in, "the result is not of whole tiles", fmt::format("a multiple of {}", form->m), result.shape[i].str());
  }
  result.shape[3] = u.shape[2];
  return Types{result};
}

Result<Types> infer_conv(const InferInput& in) {
  if (in.op == Op::ConvWinograd) return infer_conv_winograd(in);
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
