// Merges directly nested parallel loops that every access walks as one: a batch and a sequence axis become rows, a
// contiguous pointwise kernel becomes one flat loop. Changes no meaning.
#pragma once

#include "loop/group.h"

namespace weft::loop {

void collapse(Group& group);

}  // namespace weft::loop
