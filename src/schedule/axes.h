// Which loops become the axes of tiles. Private to schedule/.
#pragma once

#include "base/machine.h"
#include "schedule/analysis.h"

namespace weft::schedule {

// By loop: whether it runs over lanes. At most one of the loops around each statement does.
std::vector<bool> choose_lanes(const Analysis& a, const Machine& m);

// The loops that may run over rows of a product that runs over `lanes`, the best first: parallel, and one operand is the
// same for all of their iterations.
std::vector<LoopId> row_choices(const Analysis& a, const Leaf& product, LoopId lanes);

// Whether a loop may be tiled at all: it is not serial, and every store inside a parallel one
// depends on it.
bool tileable(const Analysis& a, LoopId loop);

// Whether a statement's access lies along `rows`, so that where lanes run over another loop, squares of both may be
// transposed in registers.
bool turns(const Analysis& a, const Leaf& leaf, const Access& access, LoopId rows);

// A constant parameter whose storage a schedule may choose so that `loop` is contiguous: the loop
// is one of its coordinates, and it is accessed nowhere else.
bool packable(const Analysis& a, const Access& access, LoopId loop);

}  // namespace weft::schedule
