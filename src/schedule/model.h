// What a record costs on a machine: the one model that schedules are chosen by.
//
// A program is a nest of loops around tiles. Per step of a tile the model counts vector operations and loads; per loop, the
// bytes that its statements touch. What one iteration of a loop touches stays in a cache that it fits into, so that a
// loop's bytes come from beyond that cache once; else once per iteration. The same rule holds for every level. Cores work
// at the same time and share only what memory delivers.
#pragma once

#include "schedule/analysis.h"
#include "schedule/schedule.h"

namespace weft::schedule {

// The modelled time of one run at the likely sizes.
Cost model(const Analysis& analysis, const Machine& machine, const Record& record);

}  // namespace weft::schedule
