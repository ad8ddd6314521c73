// What a group costs, counted from its loops: nothing here is measured.
#pragma once

#include "loop/group.h"

namespace weft::cost {

struct GroupCost {
  Dim bytes_compulsory;  // every element of every parameter in memory crosses once
  Dim bytes_moved;       // as the loops access memory, before any cache
  Dim flops;             // float operations of the bodies; a fused multiply and add counts as two
};

GroupCost group_cost(const loop::Group& group);

// A number for a size: symbols count as `likely` (64 by default).
double estimate(const Dim& d, double likely = 64);

}  // namespace weft::cost
