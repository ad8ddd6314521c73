// Composites: what frontends build from several prims, claimed whole by schedules or inlined.
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/grid_sample.h"
#include "ops/norm.h"
#include "ops/quantize.h"
#include "ops/random.h"
#include "ops/recurrent.h"
#include "ops/resize.h"
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

using graph::Builder;

const DType kFloats[] = {DType::F32, DType::F16, DType::BF16, DType::F64};

// Each node of the composite may round: of values near 1.
void finish(Maker& make, DType t, Cases& into, std::vector<ValueId> outputs, double steps = 8) {
  const double step = t == DType::F64 ? eps(DType::F64) : std::max(eps(t), eps(DType::F32));
  make.tolerance(steps, 4 * steps * step).done(into, std::move(outputs));
}

void sweep_activations(Cases& into) {
  struct Activation {
    const char* name;
    ValueId (*build)(Builder& b, ValueId x);
  };
  const Activation all[] = {
      {"relu", [](Builder& b, ValueId x) { return ops::relu(b, x); }},
      {"leaky_relu", [](Builder& b, ValueId x) { return ops::leaky_relu(b, x, 0.125); }},
      {"clip", [](Builder& b, ValueId x) { return ops::clip(b, x, b.like(x, -0.5), b.like(x, 0.75)); }},
      {"hard_sigmoid", [](Builder& b, ValueId x) { return ops::hard_sigmoid(b, x, 0.25, 0.5); }},
      {"gelu", [](Builder& b, ValueId x) { return ops::gelu(b, x, false); }},
      {"gelu_tanh", [](Builder& b, ValueId x) { return ops::gelu(b, x, true); }},
      {"silu", [](Builder& b, ValueId x) { return ops::silu(b, x); }},
      {"softplus", [](Builder& b, ValueId x) { return ops::softplus(b, x); }},
      {"elu", [](Builder& b, ValueId x) { return ops::elu(b, x, 1.5); }},
  };
  for (const Activation& a : all) {
    for (DType t : kFloats) {
      for (const Form& form : forms(t)) {
        Maker make(a.name, text(t, form.shape));
        const ValueId x = make.input(t, form.shape, Draw::Special);
        finish(make, t, into, {a.build(make.b(), x)});
      }
    }
  }
}

void sweep_norms(Cases& into) {
  struct Norm {
    const char* name;
    std::vector<ValueId> (*build)(Builder& b, ValueId x, const Ints& axes);
  };
  const Norm all[] = {
      {"softmax", [](Builder& b, ValueId x, const Ints& axes) { return std::vector<ValueId>{ops::softmax(b, x, axes)}; }},
      {"log_softmax", [](Builder& b, ValueId x, const Ints& axes) { return std::vector<ValueId>{ops::log_softmax(b, x, axes)}; }},
      {"normalize", [](Builder& b, ValueId x, const Ints& axes) {
         const ops::Normalized r = ops::normalize(b, x, axes, 1e-2, b.dtype(x) == DType::F64 ? DType::F64 : DType::F32);
         return std::vector<ValueId>{r.y, r.mean, r.inverse_deviation};
       }},
      {"rms_normalize", [](Builder& b, ValueId x, const Ints& axes) {
         return std::vector<ValueId>{ops::rms_normalize(b, x, axes, 1e-2, b.dtype(x) == DType::F64 ? DType::F64 : DType::F32)};
       }},
      {"mean", [](Builder& b, ValueId x, const Ints& axes) { return std::vector<ValueId>{ops::mean(b, x, axes, true)}; }},
  };
  const std::pair<Shape, Ints> over[] = {{{n(), m()}, {1}}, {{n(), m()}, {0}}, {{7, 33}, {1}}, {{3, 300}, {1}}, {{2, 3, 5, 7}, {1, 2}}, {{4, 1}, {1}}};
  for (const Norm& norm : all) {
    for (DType t : kFloats) {
      for (const auto& shape : over) {
        Maker make(norm.name, text(t, shape.first) + "/axes=" + text(Shape(shape.second.begin(), shape.second.end())));
        const ValueId x = make.input(t, shape.first);
        finish(make, t, into, norm.build(make.b(), x, shape.second), 64);
      }
    }
  }
}

void attention_case(DType t, const std::string& what, const Shape& q, const Shape& k, const Shape& v, const ops::AttentionSpec& spec,
                    Cases& into) {
  Maker make("attention", std::string(name(t)) + "/" + what);
  const ValueId x = make.input(t, q), y = make.input(t, k), z = make.input(t, v);
  const ValueId mask = what.find("mask") == std::string::npos ? -1 : make.input(DType::Bool, {q[2], k[2]}, Draw::Any);
  finish(make, t, into, {ops::attention(make.b(), x, y, z, mask, spec).y}, 32);
}

void sweep_attention(Cases& into) {
  for (DType t : kFloats) {
    ops::AttentionSpec spec;
    spec.scale = 0.25;
    if (t == DType::F64) spec.softmax_dtype = DType::F64;
    attention_case(t, "plain", {2, 3, 7, 16}, {2, 3, 33, 16}, {2, 3, 33, 16}, spec, into);
    attention_case(t, "grouped", {1, 4, 5, 8}, {1, 2, 9, 8}, {1, 2, 9, 12}, spec, into);
    attention_case(t, "mask", {1, 2, 7, 8}, {1, 2, 17, 8}, {1, 2, 17, 8}, spec, into);
    attention_case(t, "one-query", {1, 4, 1, 64}, {1, 4, 65, 64}, {1, 4, 65, 64}, spec, into);
    attention_case(t, "open", {n(), 2, m(), 16}, {n(), 2, m(), 16}, {n(), 2, m(), 16}, spec, into);
    spec.causal = true;
    attention_case(t, "causal", {1, 2, 33, 16}, {1, 2, 33, 16}, {1, 2, 33, 16}, spec, into);
    spec.softcap = 2;
    attention_case(t, "causal-capped-open", {1, 2, n(), 8}, {1, 2, n(), 8}, {1, 2, n(), 8}, spec, into);
  }
}

void sweep_rotary(Cases& into) {
  for (DType t : kFloats) {
    for (const bool interleaved : {false, true}) {
      for (const Dim& positions : {Dim(7), n()}) {
        Maker make("rotary_embedding", text(t, {2, positions, 3, 10}) + (interleaved ? "/interleaved" : ""));
        const ValueId x = make.input(t, {2, positions, 3, 10});
        const ValueId c = make.input(t, {2, positions, 4}), s = make.input(t, {2, positions, 4});
        finish(make, t, into, {ops::rotary_embedding(make.b(), x, c, s, interleaved)});
      }
    }
  }
}

void sweep_linear_attention(Cases& into) {
  for (const bool corrected : {false, true}) {
    for (const Dim& steps : {Dim(5), n()}) {
      Maker make("linear_attention", text(DType::F32, {steps, 2, 4, 8}) + (corrected ? "/corrected" : ""));
      const ValueId q = make.input(DType::F32, {steps, 2, 4, 8}, Draw::NearOne), k = make.input(DType::F32, {steps, 2, 2, 8}, Draw::NearOne);
      const ValueId v = make.input(DType::F32, {steps, 2, 2, 6}), state = make.input(DType::F32, {2, 2, 8, 6});
      const ValueId decay = corrected ? make.b().unary(Op::Neg, make.input(DType::F32, {steps, 2, 2, 1}, Draw::NearOne)) : -1;
      const ValueId beta = corrected ? make.b().binary(Op::Mul, make.input(DType::F32, {steps, 2, 2, 1}, Draw::NearOne), make.b().scalar(DType::F32, 0.125)) : -1;
      const auto r = ops::linear_attention(make.b(), q, k, v, decay, beta, state, 0.25);
      finish(make, DType::F32, into, {r.y, r.state}, 512);
    }
  }
}

void sweep_grid_sample(Cases& into) {
  using Mode = ops::GridSampleMode;
  for (DType t : kFloats) {
    for (const auto interpolation : {Mode::Interpolation::Nearest, Mode::Interpolation::Linear, Mode::Interpolation::Cubic}) {
      for (const auto padding : {Mode::Padding::Zeros, Mode::Padding::Border, Mode::Padding::Reflection}) {
        // Which cell is the nearest is a matter of rounding where narrow floats fall between two.
        if (interpolation == Mode::Interpolation::Nearest && (t == DType::F16 || t == DType::BF16)) continue;
        Maker make("grid_sample", text(t, {2, 3, 5, 7}) + "/interpolation=" + std::to_string(static_cast<int>(interpolation)) +
                                      "/padding=" + std::to_string(static_cast<int>(padding)));
        const ValueId x = make.input(t, {2, 3, 5, 7}), grid = make.input(t, {2, n(), m(), 2});
        finish(make, t, into, {ops::grid_sample(make.b(), x, grid, {interpolation, padding, false})}, 512);
      }
    }
  }
}

void sweep_quantised(Cases& into) {
  for (const Shape& shape : {Shape{n(), m()}, Shape{7, 33}, Shape{65}}) {
    Maker make("quantize_dynamically", text(DType::F32, shape));
    const auto r = ops::quantize_dynamically(make.b(), make.input(DType::F32, shape));
    finish(make, DType::F32, into, {r.values, r.scale, r.zero_point});
  }
  for (DType to : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I4, DType::U4}) {
    Maker make("to_integers", std::string("f32-") + text(to, {n(), m()}));
    const ValueId x = make.input(DType::F32, {n(), m()}, Draw::Any), zero = make.input(to, {}, Draw::Tame);
    make.tolerance(0).done(into, {ops::to_integers(make.b(), x, zero, to)});
  }
}

void sweep_random(Cases& into) {
  for (const Shape& shape : {Shape{n(), m()}, Shape{65}}) {
    for (const bool normal : {false, true}) {
      Maker make(normal ? "random_normal" : "random_uniform", text(DType::F32, shape));
      const ValueId key = make.input(DType::U64, {2}, Draw::Any);
      make.input(DType::Bool, shape);
      finish(make, DType::F32, into, {normal ? ops::random_normal(make.b(), key, shape) : ops::random_uniform(make.b(), key, shape)}, 64);
    }
  }
}

void recurrence_case(ops::Cell cell, DType t, const Dim& steps, bool reverse, Cases& into) {
  using Kind = ops::GateActivation::Kind;
  const char* names[] = {"rnn", "gru", "lstm"};
  Maker make("recur", std::string(names[static_cast<int>(cell)]) + "/" + text(t, {steps, 3, 5}) + (reverse ? "/reverse" : ""));
  const std::int64_t gates = ops::gate_count(cell) * 9;
  ops::Recurrence r;
  r.cell = cell;
  r.reverse = reverse;
  if (cell == ops::Cell::Rnn) r.activations = {{Kind::Tanh}};
  if (cell == ops::Cell::Gru) r.activations = {{Kind::Sigmoid}, {Kind::Tanh}};
  if (cell == ops::Cell::Lstm) r.activations = {{Kind::Sigmoid}, {Kind::Tanh}, {Kind::Tanh}};
  r.x = make.input(t, {steps, 3, 5});
  r.w = make.input(t, {gates, 5});
  r.r = make.input(t, {gates, 9});
  r.w_bias = make.input(t, {gates});
  r.r_bias = make.input(t, {gates});
  r.h = make.input(t, {3, 9});
  if (cell == ops::Cell::Lstm) r.c = make.input(t, {3, 9});
  const ops::Recurred result = ops::recur(make.b(), r);
  std::vector<ValueId> outputs{result.y, result.h};
  if (cell == ops::Cell::Lstm) outputs.push_back(result.c);
  finish(make, t, into, outputs, 4096);  // errors grow from step to step
}

void sweep_recurrent(Cases& into) {
  for (const ops::Cell cell : {ops::Cell::Rnn, ops::Cell::Gru, ops::Cell::Lstm}) {
    for (DType t : {DType::F32, DType::F64}) {
      for (const bool reverse : {false, true}) {
        recurrence_case(cell, t, 4, reverse, into);
        recurrence_case(cell, t, n(), reverse, into);
      }
    }
  }
}

void sweep_resize(Cases& into) {
  const char* names[] = {"nearest", "linear", "cubic"};
  for (DType t : {DType::F32, DType::F16, DType::F64, DType::U8}) {
    for (const auto interpolation : {ops::Interpolation::Nearest, ops::Interpolation::Linear, ops::Interpolation::Cubic}) {
      for (const bool open : {false, true}) {
        const Shape x{2, open ? n() + 1 : Dim(5), open ? m() + 1 : Dim(7)};
        Maker make("resize", std::string(names[static_cast<int>(interpolation)]) + "/" + text(t, x));
        ops::ResizeMode mode;
        mode.interpolation = interpolation;
        const ValueId v = make.input(t, x);
        const std::vector<ops::ResizeAxis> axes{{1, x[1] * 2, std::nullopt}, {2, open ? x[2] + 3 : Dim(4), std::nullopt}};
        finish(make, t == DType::U8 ? DType::F32 : t, into, {ops::resize(make.b(), v, axes, mode)}, 64);
      }
    }
  }
}

}  // namespace

void sweep_composites(Cases& into) {
  for (auto* family : {sweep_activations, sweep_norms, sweep_attention, sweep_rotary, sweep_linear_attention, sweep_grid_sample,
                       sweep_quantised, sweep_random, sweep_recurrent, sweep_resize}) {
    family(into);
  }
}

}  // namespace weft::sweep
