// The slots that a step of a plan reads and writes.
#pragma once

#include <vector>

#include "runtime/plan.h"

namespace weft::runtime {

struct Touched {
  std::vector<SlotId> reads;
  std::vector<SlotId> writes;  // not those of launches: what they write is among what they read, and their kernel says which
};
Touched touched(const PlanStep& step);  // negative ids, where a step leaves something out, among them

// What an alias stands for.
SlotId base_of(const Plan& plan, SlotId slot);

}  // namespace weft::runtime
