// Schedules: how a group runs on a machine. A pure function from (group, machine) to a record;
// nothing here changes what is computed. tile/lower turns a group and a record into a tile program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/machine.h"
#include "loop/group.h"

namespace weft::schedule {

// What happens to one loop. A tiled loop contributes an axis (0 rows, 1 lanes) of `tile` elements
// to the values inside it; a loop without a tile is a scalar counter. At most one loop per axis
// encloses a statement. The parallel loops from the root on that are each the only statement of
// their list may go to the grid: program ids count blocks of `block` steps (a step is `tile`
// elements, or one); the rest is a loop in the program.
struct LoopPlan {
  int axis = -1;  // -1: not tiled
  int tile = 1;   // elements per step when tiled
  bool grid = false;
  std::int64_t block = 1;  // steps per program when on the grid
  bool unrolled = false;   // its steps are written out; of a loop that is short and not tiled
};

struct Record {
  std::vector<LoopPlan> loops;           // by LoopId
  std::vector<loop::LoopId> grid_order;  // slowest first: of programs, and of steps in one
  std::vector<loop::StorageMap>
      maps;  // by ParamId: maps asked of constant parameters (others: as they are)
  friend bool operator==(const Record&, const Record&);
};
std::string print(const Record& record);

// Sizes for which a variant is meant: lo <= size <= hi.
struct Guard {
  Dim size;
  std::int64_t lo = 0, hi = INT64_MAX;
};

struct Variant {
  std::optional<Guard> guard;  // none: any size; the last variant of a schedule has none
  Record record;
};

struct Schedule {
  std::vector<Variant> variants;  // first match wins; at most four; all ask for the same maps
  double modelled_us = 0;         // at the sizes' likely values
  std::string why;                // one line for people
};

Schedule schedule(const loop::Group& group, const Machine& machine, const DimFacts& facts);

// Programs that share a grid loop: blocks of its steps. Their product is the number of programs of
// a variant.
Dim grid_blocks(const loop::Group& group, const Record& record, loop::LoopId loop);
Dim grid_size(const loop::Group& group, const Record& record);

}  // namespace weft::schedule
