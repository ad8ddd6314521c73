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

constexpr std::int64_t kLikely = 128;  // what a size counts as of which only a range is known

// A number for a size: symbols count as `unknown`, or what of their range comes closest.
double estimate(const Dim& d, const DimFacts& facts, std::int64_t unknown = kLikely);

}  // namespace weft::cost
