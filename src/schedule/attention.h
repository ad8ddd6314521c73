// Whether attention is one kernel on a machine, and how many keys it walks over at a time.
#pragma once

#include "base/machine.h"
#include "loop/lower/attention.h"

namespace weft::schedule {

loop::AttentionPlan attention_plan(const loop::AttentionShape& shape, const Machine& machine);

// attention_plan for a machine; none where the switch WEFT_FUSION_OFF names attention.
loop::AttentionChooser attention_chooser(const Machine& machine);

}  // namespace weft::schedule
