// Which outputs of a group may lie in the memory of one of its inputs, if that input is needed by nobody else afterwards.
#pragma once

#include <vector>

#include "loop/group.h"

namespace weft::compiler {

struct InPlacePair {
  loop::ParamId output = 0, input = 0;
  friend bool operator==(const InPlacePair&, const InPlacePair&) = default;
};

// The condition: whatever the order in which parallel iterations run, each element of the input is read for the last time
// before the element of the output at the same address is written, and by the iteration that writes it. Both have elements
// of the same width; that they have as many is for the caller to see. By output, then input.
std::vector<InPlacePair> in_place_pairs(const loop::Group& group);

}  // namespace weft::compiler
