// RNN, GRU and LSTM: operands and attributes taken apart per direction; the recurrence itself is ops/recurrent.h.
#include "ops/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/ops/unfolded.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using ops::Cell;
using ops::GateActivation;
using ops::Recurrence;
using Kind = ops::GateActivation::Kind;

struct NamedActivation {
  const char* name;  // in lower case: exporters differ in spelling
  Kind kind;
  bool takes_alpha, takes_beta;
  double alpha, beta;  // defaults
};

constexpr NamedActivation kActivations[] = {
    {"relu", Kind::Relu, false, false, 0, 0},
    {"tanh", Kind::Tanh, false, false, 0, 0},
    {"sigmoid", Kind::Sigmoid, false, false, 0, 0},
    {"affine", Kind::Affine, true, true, 1, 0},
    {"leakyrelu", Kind::LeakyRelu, true, false, 0.01, 0},
    {"thresholdedrelu", Kind::ThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", Kind::ScaledTanh, true, true, 1, 1},
    {"hardsigmoid", Kind::HardSigmoid, true, true, 0.2, 0.5},
    {"elu", Kind::Elu, true, false, 1, 0},
    {"softsign", Kind::Softsign, false, false, 0, 0},
    {"softplus", Kind::Softplus, false, false, 0, 0},
};

// The lists of alphas and betas serve, in order, the activations that take one.
Result<std::vector<GateActivation>> activations_of(NodeContext& c, std::vector<std::string> fallback, std::size_t directions) {
  std::vector<std::string> names = c.texts("activations");
  std::size_t each = fallback.size();
  if (names.empty()) {
    for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), fallback.begin(), fallback.end());
  }
  if (names.size() != each * directions) {
    return c.bad("activations has the wrong length").expected(std::to_string(each * directions)).found(std::to_string(names.size()));
  }
  std::vector<float> alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  std::size_t next_alpha = 0, next_beta = 0;
  std::vector<GateActivation> list;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char ch) { return std::tolower(ch); });
    auto found = std::find_if(std::begin(kActivations), std::end(kActivations), [&](const auto& a) { return name == a.name; });
    if (found == std::end(kActivations)) return c.missing(fmt::format("activation '{}'", name));
    GateActivation a{found->kind, found->alpha, found->beta};
    if (found->takes_alpha && next_alpha < alphas.size()) a.alpha = alphas[next_alpha++];
    if (found->takes_beta && next_beta < betas.size()) a.beta = betas[next_beta++];
    list.push_back(a);
  }
  return list;
}

// v[d], without the axis.
ValueId at(NodeContext& c, ValueId v, std::int64_t d) {
  Shape rest(c.b.shape(v).begin() + 1, c.b.shape(v).end());
  return c.b.reshape(c.b.slice_axis(v, 0, d, 1), rest);
}

struct Layer {
  Cell cell;
  std::int64_t directions;
  bool batch_first;
  Dim batch, hidden;
  std::vector<GateActivation> activations;
};

// `rows_last`: W and R are [directions, inputs or hidden, rows] instead of [directions, rows, inputs or hidden].
Result<Layer> layer_of(NodeContext& c, Cell cell, std::vector<std::string> fallback, bool rows_last = false) {
  std::string direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return c.bad(fmt::format("unknown direction '{}'", direction));
  }
  if (c.rank(0) != 3 || c.rank(1) != 3 || c.rank(2) != 3) return c.bad("X, W and R must have rank 3");
  Layer layer{cell, direction == "bidirectional" ? 2 : 1, c.integer("layout", 0) != 0, 0, c.shape(2)[rows_last ? 1 : 2], {}};
  layer.batch = c.shape(0)[layer.batch_first ? 0 : 1];
  layer.activations = WEFT_TRY(activations_of(c, std::move(fallback), static_cast<std::size_t>(layer.directions)));
  if (!layer.hidden.is_const()) return c.missing("a hidden size that is not known");
  if (c.has_attr("hidden_size") && !layer.hidden.is(c.integer("hidden_size", 0))) {
    return c.bad("hidden_size is not the size of R's last axis").expected(layer.hidden.str());
  }
  Dim rows = layer.hidden * ops::gate_count(cell);
  for (int i : {1, 2}) {
    const Shape s = c.shape(i);
    const Dim& found = s[rows_last ? 2 : 1];
    if ((s[0].is_const() && !s[0].is(layer.directions)) || (found.is_const() && !(found == rows))) {
      return c.bad(fmt::format("{} has the wrong shape", i == 1 ? "W" : "R"))
          .expected(fmt::format("[{}, {}]", layer.directions, rows_last ? "..., " + rows.str() : rows.str() + ", ..."))
          .found(str(s));
    }
  }
  return layer;
}

// An initial state [directions, batch, hidden], for one direction; zeros when not given.
ValueId initial(NodeContext& c, const Layer& layer, int operand, std::int64_t d) {
  if (!c.has(operand)) return c.b.splat({c.dtype(0), {layer.batch, layer.hidden}}, 0);
  ValueId v = c.in(operand);
  if (layer.batch_first) v = c.b.transpose(v, {1, 0, 2});
  return c.b.reshape(at(c, v, d), {layer.batch, layer.hidden});
}

Result<Recurrence> one_direction(NodeContext& c, const Layer& layer, std::int64_t d) {
  Recurrence r;
  r.cell = layer.cell;
  std::size_t each = layer.activations.size() / static_cast<std::size_t>(layer.directions);
  r.activations.assign(layer.activations.begin() + static_cast<std::ptrdiff_t>(each * d),
                       layer.activations.begin() + static_cast<std::ptrdiff_t>(each * (d + 1)));
  r.clip = c.real("clip", 0);
  if (r.clip < 0) return c.bad("clip must not be negative");
  r.reverse = d == 1 || c.text("direction", "forward") == "reverse";
  r.linear_before_reset = c.integer("linear_before_reset", 0) != 0;
  r.input_forget = c.integer("input_forget", 0) != 0;
  r.x = layer.batch_first ? c.b.transpose(c.in(0), {1, 0, 2}) : c.in(0);
  r.w = at(c, c.in(1), d);
  r.r = at(c, c.in(2), d);
  if (c.has(3)) {
    Dim rows = layer.hidden * ops::gate_count(layer.cell);
    ValueId bias = c.b.reshape(at(c, c.in(3), d), {rows * 2});
    r.w_bias = c.b.slice_axis(bias, 0, 0, rows);
    r.r_bias = c.b.slice_axis(bias, 0, rows, rows);
  }
  if (c.has(4)) r.lengths = c.in(4);
  r.h = initial(c, layer, 5, d);
  if (layer.cell == Cell::Lstm) {
    r.c = initial(c, layer, 6, d);
    if (c.has(7)) r.peephole = at(c, c.in(7), d);
  }
  return r;
}

using OneDirection = Result<Recurrence> (*)(NodeContext&, const Layer&, std::int64_t);

Result<void> recurrent(NodeContext& c, const Layer& layer, OneDirection direction) {
  std::vector<ValueId> ys, hs, cs;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    ops::Recurred r = ops::recur(c.b, WEFT_TRY(direction(c, layer, d)));
    WEFT_TRY(c.b.status());
    Shape y = c.b.shape(r.y), state{Dim(1), layer.batch, layer.hidden};
    y.insert(y.begin() + 1, Dim(1));
    ys.push_back(c.b.reshape(r.y, y));
    hs.push_back(c.b.reshape(r.h, state));
    if (r.c >= 0) cs.push_back(c.b.reshape(r.c, state));
  }
  // [time, directions, batch, hidden] and [directions, batch, hidden], or with the batch in front.
  auto give = [&](int i, std::vector<ValueId> parts, std::int64_t axis, std::vector<std::int64_t> batch_first) {
    ValueId v = c.b.concat(std::move(parts), axis);
    c.out(i, layer.batch_first ? c.b.transpose(v, std::move(batch_first)) : v);
  };
  if (c.wants(0)) give(0, std::move(ys), 1, {2, 0, 1, 3});
  if (c.wants(1)) give(1, std::move(hs), 0, {1, 0, 2});
  if (c.wants(2)) give(2, std::move(cs), 0, {1, 0, 2});
  return {};
}

const std::vector<std::string> kLstmActivations{"Sigmoid", "Tanh", "Tanh"};

Result<void> rnn(NodeContext& c) { return recurrent(c, WEFT_TRY(layer_of(c, Cell::Rnn, {"Tanh"})), one_direction); }
Result<void> gru(NodeContext& c) {
  return recurrent(c, WEFT_TRY(layer_of(c, Cell::Gru, {"Sigmoid", "Tanh"})), one_direction);
}
Result<void> lstm(NodeContext& c) {
  return recurrent(c, WEFT_TRY(layer_of(c, Cell::Lstm, kLstmActivations)), one_direction);
}

// A number, or one for each row of weights, of one direction: as what broadcasts to them.
ValueId beside_rows(NodeContext& c, int operand, std::int64_t d) {
  const ValueId v = at(c, c.in(operand), d);
  return c.b.type(v).rank() == 0 ? v : c.b.reshape(v, {c.b.shape(v)[0], Dim(1)});
}

Result<Recurrence> quantised_direction(NodeContext& c, const Layer& layer, std::int64_t d) {
  Recurrence r = WEFT_TRY(one_direction(c, layer, d));
  r.w = c.b.transpose(at(c, c.in(1), d), {1, 0});
  r.w_zero = beside_rows(c, 9, d);
  r.w_scale = at(c, c.in(8), d);
  r.r = c.b.transpose(at(c, c.in(2), d), {1, 0});
  r.r_zero = beside_rows(c, 11, d);
  r.r_scale = at(c, c.in(10), d);
  return r;
}

Result<void> dynamic_quantize_lstm(NodeContext& c) {
  for (int i : {8, 9, 10, 11}) {
    if (!c.has(i) || (c.rank(i) != 1 && c.rank(i) != 2)) return c.bad("scales and zero points are [directions] or [directions, rows]");
  }
  const Unfolded unfolded(c.b);
  return recurrent(c, WEFT_TRY(layer_of(c, Cell::Lstm, kLstmActivations, true)), quantised_direction);
}

constexpr OpEntry kRecurrentOps[] = {
    {"RNN", 7, kOpsetMax, 3, 6, "activation_alpha activation_beta activations clip direction hidden_size layout", rnn},
    {"GRU", 7, kOpsetMax, 3, 6,
     "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset", gru},
    {"LSTM", 7, kOpsetMax, 3, 8,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout", lstm},
    {"DynamicQuantizeLSTM", 1, kOpsetMax, 3, 12,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget", dynamic_quantize_lstm,
     "com.microsoft"},
};

}  // namespace

OpTable recurrent_ops() { return {kRecurrentOps, std::size(kRecurrentOps)}; }

}  // namespace weft::onnx
