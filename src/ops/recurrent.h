// Recurrences over time: one direction of an RNN, GRU or LSTM, built around a scan whose body holds only what depends
// on the state. The products with the inputs of all time steps are one dot before it.
#pragma once

#include "ops/composite.h"

namespace weft::ops {

enum class Cell : std::uint8_t { Rnn, Gru, Lstm };
constexpr std::int64_t gate_count(Cell cell) { return cell == Cell::Rnn ? 1 : cell == Cell::Gru ? 3 : 4; }

struct GateActivation {
  enum class Kind : std::uint8_t {
    Relu, Tanh, Sigmoid, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign, Softplus,
  };
  Kind kind = Kind::Sigmoid;
  double alpha = 0, beta = 0;
};

// Gates lie one after the other: LSTM input, output, forget, cell; GRU update, reset, hidden. Ids < 0: not there.
struct Recurrence {
  Cell cell = Cell::Lstm;
  std::vector<GateActivation> activations;  // RNN f; GRU f, g; LSTM f, g, h
  double clip = 0;                          // of what goes into an activation; 0: none
  bool reverse = false;
  bool linear_before_reset = false;         // GRU: the reset gate acts after the product
  bool input_forget = false;                // LSTM: the forget gate is 1 - input gate
  ValueId x = -1;                           // [time, batch, inputs]
  ValueId w = -1, r = -1;                   // [gates * hidden, inputs], [gates * hidden, hidden]
  // With scales ([] or [gates * hidden]) and zero points ([] or [gates * hidden, 1]) the weights are integers, and what
  // they multiply is quantised as it comes: the inputs as a whole, the state of all batch rows at each step.
  ValueId w_scale = -1, r_scale = -1, w_zero = -1, r_zero = -1;
  ValueId w_bias = -1, r_bias = -1;         // [gates * hidden]
  ValueId h = -1, c = -1;                   // [batch, hidden], required
  ValueId peephole = -1;                    // LSTM: [3 * hidden], for input, output, forget
  ValueId lengths = -1;                     // integers [batch]: steps from there on leave the state and give 0
};

struct Recurred {
  ValueId y;     // [time, batch, hidden]
  ValueId h, c;  // the last state
};
Recurred recur(Builder& b, const Recurrence& recurrence);

}  // namespace weft::ops
