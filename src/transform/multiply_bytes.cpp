// Products of quantised values as products of their bytes.
//
//   sum of (x - zx) (w - zw)  =  sum of x v  -  zx sum(w - zw)  +  d sum(x),    v + d = w - zw
//
// where x is u8 and v is i8, which processors multiply fast. sum(w - zw) is a constant per output channel; d, one number
// per channel, is 0 where w - zw fits into i8. Integers of 32 bits wrap alike on both sides, so the
// result is exact. i8 on the left becomes u8 by adding 128 to it and to its zero point.
//
// A product of dequantised values, (x - zx) sx and (w - zw) sw, is the same sum of integers times sx sw, provided the sum
// fits into 32 bits: rounded once instead of once per term.
#include <algorithm>

#include "graph/rewrite.h"
#include "transform/channel_ranges.h"
#include "transform/narrow.h"
#include "transform/passes.h"
#include "transform/rules/match.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

constexpr std::int64_t kFewOutputs = 8;             // fewer outputs leave lanes empty
constexpr std::int64_t kMostTerms = INT32_MAX / (255 * 255);  // of a sum that fits
constexpr std::int64_t kWord = 4;

bool has_axis(const Axes& axes, std::int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// One number for all elements, or one per index of an axis.
struct Spread {
  ValueId value = graph::kInvalid;  // in the graph read
  std::int64_t axis = -1;
};

// Before it was widened, if it was: who uses it casts it.
std::optional<Spread> spread_of(const Graph& g, ValueId v) {
  const Node* node = g.def(v);
  if (node && node->op == GOp::Cast && bits(g.type(node->operands[0]).dtype) < bits(g.type(v).dtype)) node = g.def(v = node->operands[0]);
  if (g.type(v).rank() == 0) return Spread{v, -1};
  const bool broadcast = node && node->op == GOp::Broadcast;
  const ValueId from = broadcast ? node->operands[0] : v;
  const Shape& shape = g.type(from).shape;
  Spread s{from, -1};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].is(1)) continue;
    if (s.axis >= 0) return std::nullopt;
    s.axis = broadcast ? node->attrs.ints(Attr::Axes)[d] : static_cast<std::int64_t>(d);
  }
  return s;
}

// A value that is a quantised one: follow_moves(scale * (bytes - zero)). Without a scale it is an integer.
struct ByteValue {
  ValueId bytes = graph::kInvalid;
  std::optional<Spread> zero, scale;
  std::vector<const Node*> moves;  // the last one first
};

bool moves_elements(const Node& node) {
  return node.op == GOp::Reshape || node.op == GOp::Transpose || node.op == GOp::Slice || node.op == GOp::Broadcast;
}

std::optional<ByteValue> byte_value(const Graph& g, ValueId v) {
  ByteValue q;
  const Node* node = g.def(v);
  const auto down = [&](ValueId to) { node = g.def(v = to); };
  for (; node && moves_elements(*node); down(node->operands[0])) q.moves.push_back(node);
  if (node && node->op == GOp::Mul && g.type(v).dtype == DType::F32) {
    for (const int k : {0, 1}) {
      const Node* whole = g.def(node->operands[k]);
      if (!whole || whole->op != GOp::Cast || !is_int(g.type(whole->operands[0]).dtype)) continue;
      q.scale = spread_of(g, node->operands[1 - k]);
      if (!q.scale) return std::nullopt;
      down(whole->operands[0]);
      break;
    }
    if (!q.scale) return std::nullopt;
  }
  if (node && node->op == GOp::Sub && g.type(v).dtype == DType::I32) {
    q.zero = spread_of(g, node->operands[1]);
    if (!q.zero) return std::nullopt;
    down(node->operands[0]);
  }
  if (node && node->op == GOp::Cast && g.type(v).dtype == DType::I32) v = node->operands[0];
  if (!is_byte(g.type(v).dtype)) return std::nullopt;
  q.bytes = v;
  return q;
}

// The elements of a value made of constants alone.
std::optional<Tensor> constant_of(const Graph& g, ValueId v, int depth = 0) {
  if (const Tensor* data = g.constant(v)) return *data;
  constexpr int kDepth = 6;
  const Node* node = g.def(v);
  if (!node || depth > kDepth || !info(node->op).pure || !node->regions.empty() || node->results.size() != 1) return std::nullopt;
  if (!static_sizes(g.type(v).shape)) return std::nullopt;
  std::vector<Tensor> operands;
  for (ValueId x : node->operands) {
    auto data = constant_of(g, x, depth + 1);
    if (!data) return std::nullopt;
    operands.push_back(std::move(*data));
  }
  Bindings none;
  auto results = graph::interpret_node(g, *node, operands, none);
  return results.ok() ? std::optional((*results)[0]) : std::nullopt;
}

// Where an axis ends up; -1: it does not stay one.
std::int64_t moved_axis(const std::vector<const Node*>& moves, std::int64_t axis) {
  for (std::size_t k = moves.size(); k-- > 0 && axis >= 0;) {
    const Node& node = *moves[k];
    if (node.op != GOp::Transpose) return -1;
    const Axes& axes = node.attrs.ints(Attr::Axes);
    axis = std::find(axes.begin(), axes.end(), axis) - axes.begin();
  }
  return axis;
}

ValueId follow_moves(Builder& b, const std::vector<const Node*>& moves, ValueId v) {
  for (std::size_t k = moves.size(); k-- > 0;) v = b.node(moves[k]->op, {v}, moves[k]->attrs);
  return v;
}

// Weights as integers less their zero point: v + offset[channel], with the channels' sums.
struct Weights8 {
  Tensor bytes;                       // i8
  std::vector<std::int64_t> sums;     // of (w - zw), by channel
  std::vector<std::int64_t> offsets;  // by channel
  std::vector<float> scales;          // one, or by channel; empty: integers
  bool offset = false;                // whether any is not 0
};

// Weights in the order in which they are multiplied. Channels are numbered over the axes that are not summed.
class WeightReader {
 public:
  WeightReader(const RewriteContext& c, ValueId operand, Axes summed) : c_(c), g_(c.from), operand_(operand), summed_(std::move(summed)) {}

  std::optional<Weights8> read() {
    if (const Tensor* whole = g_.constant(operand_); whole && whole->dtype() == DType::I32) {
      shape_ = whole->shape();
      number_channels();
      return split<std::int32_t>(*whole, {0});
    }
    const auto q = byte_value(g_, operand_);
    if (!q) return std::nullopt;
    const auto bytes = constant_of(g_, q->bytes);
    if (!bytes) return std::nullopt;
    const auto moved_bytes = constant_moved(*bytes, q->moves);
    if (!moved_bytes) return std::nullopt;
    shape_ = moved_bytes->shape();
    number_channels();
    const auto zeros = by_channel(q->zero, q->moves);
    const auto scales = by_channel(q->scale, q->moves);
    if ((q->zero && !zeros) || (q->scale && !scales)) return std::nullopt;
    std::vector<std::int32_t> zero{0};
    if (zeros) zero.resize(static_cast<std::size_t>(zeros->size()));
    for (std::int64_t i = 0; zeros && i < zeros->size(); ++i) zero[i] = static_cast<std::int32_t>(zeros->i64(i));
    const bool sign = moved_bytes->dtype() == DType::I8;
    auto w = sign ? split<std::int8_t>(*moved_bytes, zero) : split<std::uint8_t>(*moved_bytes, zero);
    for (std::int64_t i = 0; w && scales && i < scales->size(); ++i) w->scales.push_back(static_cast<float>(scales->f64(i)));
    return w;
  }

  std::int64_t channels() const { return channels_; }

 private:
  // Neighbouring axes of one kind are as one: channels lie in the order of their axes.
  void number_channels() {
    runs_.clear();
    channels_ = 1;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      const bool summed = has_axis(summed_, static_cast<std::int64_t>(axis));
      if (runs_.empty() || (runs_.back().step == 0) != summed) runs_.push_back({1, summed ? 0 : channels_});
      runs_.back().length *= shape_[axis];
      if (!summed) channels_ *= shape_[axis];
    }
    if (runs_.empty()) runs_.push_back({1, 0});
  }

  std::optional<Tensor> constant_moved(const Tensor& data, const std::vector<const Node*>& moves) const {
    Tensor now = data;
    Builder& b = c_.builder;
    for (std::size_t k = moves.size(); k-- > 0;) {
      const ValueId v = b.node(moves[k]->op, {b.constant(now)}, moves[k]->attrs);
      Bindings none;
      const Node* node = b.graph().def(v);
      if (!node || node->op == GOp::Constant) return std::nullopt;
      auto results = graph::interpret_node(b.graph(), *node, {now}, none);
      if (!results.ok()) return std::nullopt;
      now = (*results)[0];
    }
    return now;
  }

  // One number, or one per channel, as a vector.
  std::optional<Tensor> by_channel(const std::optional<Spread>& s, const std::vector<const Node*>& moves) const {
    if (!s) return std::nullopt;
    auto data = constant_of(g_, s->value);
    if (!data || (s->axis < 0 && data->size() != 1)) return std::nullopt;
    if (s->axis < 0) return data->reshaped({1});
    const std::int64_t axis = moved_axis(moves, s->axis);
    if (axis < 0 || axis >= static_cast<std::int64_t>(shape_.size()) || has_axis(summed_, axis)) return std::nullopt;
    if (shape_[axis] != channels_ || data->size() != channels_) return std::nullopt;  // the only one that is not summed
    return data->reshaped({channels_});
  }

  // Of the values less their zero point: one, or one by channel.
  template <class T>
  std::optional<Weights8> split(const Tensor& data, const std::vector<std::int32_t>& zero) const {
    Weights8 w;
    ChannelRanges ranges = channel_ranges(data.as<T>(), runs_, channels_);
    w.sums = std::move(ranges.sums);
    w.offsets.assign(channels_, 0);
    std::vector<std::int64_t> shift(channels_);  // what the bytes are less by than the values
    const std::int64_t terms = channels_ > 0 ? data.size() / channels_ : 0;
    for (std::int64_t k = 0; k < channels_ && terms > 0; ++k) {
      shift[k] = zero.size() == 1 ? zero[0] : zero[k];
      const std::int64_t least = ranges.least[k] - shift[k], most = ranges.most[k] - shift[k];
      w.sums[k] -= terms * shift[k];
      if (least >= -128 && most <= 127) continue;
      if (most - least > 255 || least < -255 || most > 255) return std::nullopt;
      w.offsets[k] = least + 128;
      w.offset = true;
      shift[k] += w.offsets[k];
    }
    if (std::is_same_v<T, std::int8_t> && std::all_of(shift.begin(), shift.end(), [](std::int64_t s) { return s == 0; })) {
      w.bytes = data;
      return w;
    }
    auto bytes = Tensor::empty(DType::I8, shape_);
    if (!bytes.ok()) return std::nullopt;
    subtract_by_channel(data.as<T>(), shift, runs_, bytes->as_mutable<std::int8_t>());
    w.bytes = *bytes;
    return w;
  }

  const RewriteContext& c_;
  const Graph& g_;
  ValueId operand_;
  Axes summed_;
  Axes shape_;
  std::vector<ChannelRun> runs_;  // the last axes first
  std::int64_t channels_ = 1;
};

Tensor integers(DType t, const std::vector<std::int64_t>& values, Axes shape) {
  Tensor data = Tensor::zeros(t, std::move(shape)).value();
  for (std::size_t i = 0; i < values.size(); ++i) data.set_i64(static_cast<std::int64_t>(i), values[i]);
  return data;
}

// The left side in the new graph: u8, with its zero point as an i32 scalar (kInvalid: 0).
struct Left {
  ValueId bytes, zero;
};

std::optional<Left> left_of(const RewriteContext& c, const ByteValue& q) {
  Builder& b = c.builder;
  if (q.zero && q.zero->axis >= 0) return std::nullopt;
  Left left{c.values[q.bytes], graph::kInvalid};
  const auto known = q.zero ? constant_of(c.from, q.zero->value) : std::nullopt;
  if (q.zero && !(known && known->i64(0) == 0)) left.zero = b.cast(b.reshape(c.values[q.zero->value], {}), DType::I32);
  if (b.dtype(left.bytes) == DType::I8) {
    left.bytes = b.binary(GOp::Xor, b.node(GOp::Bitcast, {left.bytes}, Attrs().set(Attr::DType, DType::U8)), b.scalar(DType::U8, 128));
    const ValueId middle = b.scalar(DType::I32, 128);
    left.zero = left.zero < 0 ? middle : b.binary(GOp::Add, left.zero, middle);
  }
  left.bytes = follow_moves(b, q.moves, left.bytes);
  return left;
}

// What both kinds of product are made of.
class ByteProducts {
 public:
  ByteProducts(const RewriteContext& c, Axes summed)
      : c_(c), b_(c.builder), reader_(c, c.node.operands[1], std::move(summed)), whole_(c.node.attrs.dtype(Attr::DType) == DType::I32) {}

  // Whether this is a product of quantised values that is worth doing in bytes. `terms`: of each sum.
  bool find(std::int64_t terms) {
    const DType t = c_.node.attrs.dtype(Attr::DType);
    if (t != DType::I32 && t != DType::F32) return false;
    q_ = byte_value(c_.from, c_.node.operands[0]);
    if (!q_ || q_->scale.has_value() == whole_ || c_.from.constant(q_->bytes)) return false;
    if (q_->scale && q_->scale->axis >= 0) return false;
    if (!whole_ && terms > kMostTerms) return false;
    w_ = reader_.read();
    if (!w_ || w_->scales.empty() != whole_ || reader_.channels() < kFewOutputs) return false;
    const auto left = left_of(c_, *q_);
    if (!left) return false;
    left_ = *left;
    return true;
  }

  const Left& left() const { return left_; }
  void set_left(ValueId bytes) { left_.bytes = bytes; }
  const Weights8& weights() const { return *w_; }

  // The result from the sum of the bytes' products. `channel_shape` makes a vector of channels broadcast to it; `sums`
  // gives the sums of x alone, where they are needed, so that they broadcast to it.
  template <class Sums>
  ValueId finish(ValueId y, const Axes& channel_shape, Sums sums) {
    if (left_.zero >= 0) y = b_.binary(GOp::Sub, y, b_.binary(GOp::Mul, channel_constant(w_->sums, channel_shape), left_.zero));
    if (w_->offset) {
      y = b_.binary(GOp::Add, y, b_.binary(GOp::Mul, sums(), channel_constant(w_->offsets, channel_shape)));
    }
    if (whole_) return y;
    ValueId scale = b_.cast(b_.reshape(c_.values[q_->scale->value], {}), DType::F32);
    Tensor own = Tensor::zeros(DType::F32, w_->scales.size() == 1 ? Axes{} : channel_shape).value();
    for (std::size_t i = 0; i < w_->scales.size(); ++i) own.set_f64(static_cast<std::int64_t>(i), w_->scales[i]);
    scale = b_.binary(GOp::Mul, b_.constant(own), scale);
    return b_.binary(GOp::Mul, b_.cast(y, DType::F32), scale);
  }

 private:
  ValueId channel_constant(const std::vector<std::int64_t>& values, const Axes& shape) {
    const bool one = std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == values[0]; });
    return one ? b_.constant(integers(DType::I32, {values[0]}, {})) : b_.constant(integers(DType::I32, values, shape));
  }

  const RewriteContext& c_;
  Builder& b_;
  WeightReader reader_;
  bool whole_;
  std::optional<ByteValue> q_;
  std::optional<Weights8> w_;
  Left left_{graph::kInvalid, graph::kInvalid};
};

std::optional<std::int64_t> known_product(const Shape& shape, const Axes& axes) {
  std::int64_t n = 1;
  for (std::int64_t axis : axes) {
    if (!shape[axis].is_const() || __builtin_mul_overflow(n, shape[axis].value(), &n)) return std::nullopt;
  }
  return n;
}

std::optional<std::vector<ValueId>> byte_dot(const RewriteContext& c) {
  const Attrs& attrs = c.node.attrs;
  const Axes &lc = attrs.ints(Attr::LhsContract), &rc = attrs.ints(Attr::RhsContract);
  if (!attrs.ints(Attr::RhsBatch).empty() || rc.empty()) return std::nullopt;
  const Shape& w_shape = c.from.type(c.node.operands[1]).shape;
  const auto terms = known_product(w_shape, rc);
  ByteProducts p(c, rc);
  if (!terms || *terms == 0 || !p.find(*terms)) return std::nullopt;
  Builder& b = c.builder;
  Tensor w = p.weights().bytes;
  ValueId x = p.left().bytes;
  const std::int64_t depth = w_shape[rc.back()].value(), whole = (depth + kWord - 1) / kWord * kWord;
  if (whole != depth) {
    Shape lo(b.shape(x).size(), Dim(0)), hi = lo;
    hi[lc.back()] = whole - depth;
    // Zeros of the weights count; of x, any value would do.
    w = filled_up(w, rc.back(), whole);
    x = b.pad(x, lo, hi, b.scalar(DType::U8, 0));
  }
  Axes channel_shape;
  for (std::size_t d = 0; d < w_shape.size(); ++d) {
    if (!has_axis(rc, static_cast<std::int64_t>(d))) channel_shape.push_back(w_shape[d].value());
  }
  const ValueId y = b.dot(x, b.constant(w), {}, {}, lc, rc, DType::I32);
  const ValueId result = p.finish(y, channel_shape, [&] {
    ValueId sums = b.reduce(GOp::ReduceSum, b.cast(p.left().bytes, DType::I32), lc);
    Shape shape = b.shape(sums);
    shape.insert(shape.end(), channel_shape.size(), Dim(1));
    return b.reshape(sums, shape);
  });
  return std::vector<ValueId>{result};
}

std::optional<std::vector<ValueId>> byte_conv(const RewriteContext& c) {
  const Attrs& attrs = c.node.attrs;
  const Axes& spread = attrs.ints(Attr::BaseDilations);
  if (attrs.flag(Attr::ChannelsLast) || std::any_of(spread.begin(), spread.end(), [](auto d) { return d != 1; })) return std::nullopt;
  const Shape& w_shape = c.from.type(c.node.operands[1]).shape;
  Axes summed;
  for (std::size_t d = 1; d < w_shape.size(); ++d) summed.push_back(static_cast<std::int64_t>(d));
  const auto terms = known_product(w_shape, summed);
  const bool grouped = attrs.integer(Attr::Groups) != 1;
  ByteProducts p(c, summed);
  if (!terms || *terms == 0 || !w_shape[0].is_const() || !p.find(*terms) || (grouped && p.weights().offset)) return std::nullopt;
  Builder& b = c.builder;
  const std::size_t spatial = w_shape.size() - 2;
  Tensor w = p.weights().bytes;
  Attrs own = attrs;
  own.set(Attr::DType, DType::I32);
  // Around the input lies what stands for zero, and beside its channels what fills up words.
  Shape lo(w_shape.size(), Dim(0)), hi = lo;
  for (std::size_t d = 0; d < spatial; ++d) {
    lo[2 + d] = attrs.dims(Attr::Lo)[d];
    hi[2 + d] = attrs.dims(Attr::Hi)[d];
    const auto& facts = b.graph().facts;
    if (p.left().zero >= 0 && (facts.range(lo[2 + d]).lo < 0 || facts.range(hi[2 + d]).lo < 0)) return std::nullopt;
  }
  ValueId x = p.left().bytes;
  if (p.left().zero >= 0) {
    x = b.pad(x, lo, hi, b.cast(p.left().zero, DType::U8));
    const Shape none(spatial, Dim(0));
    own.set(Attr::Lo, none).set(Attr::Hi, none);
  }
  const ValueId surrounded = x;
  const std::int64_t depth = w_shape[1].value(), whole = (depth + kWord - 1) / kWord * kWord;
  if (!grouped && whole != depth) {
    Shape before(w_shape.size(), Dim(0)), after = before;
    after[1] = whole - depth;
    w = filled_up(w, 1, whole);
    x = b.pad(x, before, after, b.scalar(DType::U8, 0));
  }
  const ValueId y = b.node(GOp::Conv, {x, b.constant(w)}, own);
  Axes channel_shape{w_shape[0].value()};
  channel_shape.insert(channel_shape.end(), spatial, 1);
  const ValueId result = p.finish(y, channel_shape, [&] {
    const ValueId sums = b.reduce(GOp::ReduceSum, b.cast(surrounded, DType::I32), {1}, true);
    Axes ones{1, 1};
    for (std::size_t d = 0; d < spatial; ++d) ones.push_back(w_shape[2 + d].value());
    std::int64_t count = 1;
    for (std::int64_t n : ones) count *= n;
    return b.node(GOp::Conv, {sums, b.constant(integers(DType::I32, std::vector<std::int64_t>(count, 1), ones))}, own);
  });
  return std::vector<ValueId>{result};
}

}  // namespace

Result<Graph> multiply_bytes(const Graph& graph, const PassOptions&) {
  graph::Rewriter rewriter([](const RewriteContext& c) -> std::optional<std::vector<ValueId>> {
    if (c.node.op == GOp::Dot) return byte_dot(c);
    if (c.node.op == GOp::Conv) return byte_conv(c);
    return std::nullopt;
  });
  Graph made = WEFT_TRY(rewriter.run(graph));
  if (rewriter.replaced() == 0) return made;
  return graph::dce(made);  // else the widened weights would be folded next
}

}  // namespace weft::transform
