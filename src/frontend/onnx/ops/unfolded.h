// Constants left as they are for a while, by an importer that folds.
#pragma once

#include "graph/builder.h"

namespace weft::onnx {

// Weights stay the bytes they are, and zero points the numbers they are: what multiplies bytes looks for them.
class Unfolded {
 public:
  explicit Unfolded(graph::Builder& builder) : b_(builder) { b_.set_folding(false); }
  ~Unfolded() { b_.set_folding(true); }  // as the importer has it
  Unfolded(const Unfolded&) = delete;
  Unfolded& operator=(const Unfolded&) = delete;

 private:
  graph::Builder& b_;
};

}  // namespace weft::onnx
