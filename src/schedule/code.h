// How much code a record becomes. Private to schedule/.
#pragma once

#include "schedule/analysis.h"
#include "schedule/schedule.h"

namespace weft::schedule {

// Whether the last tile of a loop may be cut off: then its code is there twice, unless the loop is masked.
bool has_tail(const loop::Group& group, const Record& record, LoopId loop);

// Instructions of the tile program, all that is written out counted: what compiling it takes time for.
double instructions(const Analysis& analysis, const Machine& machine, const Record& record);

// Microseconds of a run that compiling the code stands for, spread over the runs that a program is made for.
double code_share(double instructions);

}  // namespace weft::schedule
