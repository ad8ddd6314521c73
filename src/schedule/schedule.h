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
  bool apart = false;      // of rows: what is done with their sums is done row by row, from on-chip memory
  bool masked = false;     // whole tiles run the masked code of the last one: where masks are rare and code is long
  bool in_word = false;    // its steps are one of a dot of words
  int depth = 1;           // of a reduce loop that is not tiled: steps of its product that are one dot of tiles
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

// Microseconds of one run on all cores, by what takes them. Arithmetic and loads run at the same time, and most of what
// the caches deliver meanwhile: the total is less than the sum.
struct Cost {
  double compute = 0;         // vector arithmetic, the latency of sums, instructions issued
  double l1 = 0;              // loads and stores
  double l2 = 0, l3 = 0, memory = 0;  // bytes that come from there
  double waste = 0;           // what tiles do past the ends of loops, and cores that wait for the last one
  double dispatch = 0;        // threads handed their parts, programs begun
  double total() const;
};

// One way to run a group, for any sizes.
struct Candidate {
  Record record;
  Cost cost;  // at the sizes' likely values
  Cost few;   // where sizes are not known and small; else the same
  double instructions = 0;  // of its code
  // What candidates are ordered by, in microseconds: the geometric mean of both, and what compiling the code costs, spread
  // over the runs that should pay for it.
  double score() const;
};

struct Schedule {
  std::vector<Variant> variants;  // first match wins; at most four; all ask for the same maps
  Cost cost;                      // of the last variant, at the sizes' likely values
  Cost few;                       // of it, where sizes are not known and small; else the same
  double instructions = 0;        // of its code
  std::string why;                // one line for people
  std::vector<Candidate> candidates;  // what was considered for the last variant, the cheapest first; when asked for
  bool tuned = false;             // it is the request's choice, not the cheapest
};

struct Request {
  bool candidates = false;  // wanted in the result
  std::string choice;       // print() of the candidate to take; one that is not there is as none
};

// The candidates keep the order in which sums are added: all of them give the same bits, but for products of bf16 that a
// matrix unit adds up.
Schedule schedule(const loop::Group& group, const Machine& machine, const DimFacts& facts, const Request& request = {});

// A kernel's first code. Made quickly it is there in half the time and takes several times as long to run: it comes first
// where a run loses less by it than compiling saves, and is made anew, well, when runs take it again and again.
struct FirstCode {
  double lost = 0, saved = 0;  // microseconds: of a run, and of compiling
  bool quick() const { return lost < saved; }
};
// `run`: modelled microseconds of all launches of one run, `few` where sizes are not known, which are a batch of one most
// often; compiling has as many threads.
FirstCode first_code(double run, double instructions, int threads);

// What a record of the group costs at the sizes that the facts leave, likely ones where they leave several.
Cost cost(const loop::Group& group, const Machine& machine, const DimFacts& facts, const Record& record);

// Programs that share a grid loop: blocks of its steps. Their product is the number of programs of
// a variant.
Dim grid_blocks(const loop::Group& group, const Record& record, loop::LoopId loop);
Dim grid_size(const loop::Group& group, const Record& record);

}  // namespace weft::schedule
