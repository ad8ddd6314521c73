// Group + schedule record -> tile program.
#pragma once

#include <vector>

#include "loop/group.h"
#include "schedule/schedule.h"
#include "tile/tile.h"

namespace weft::tile {

struct Lowered {
  Function function;
  std::vector<loop::ParamId> buffers;  // which parameter each Memory buffer is
  std::vector<Dim> sizes;              // what each size parameter is
  Dim grid;                            // number of programs
};

Result<Lowered> lower(const loop::Group& group, const schedule::Record& record);

}  // namespace weft::tile
