// How large tiles are. Private to schedule/.
#pragma once

#include <vector>

#include "base/machine.h"

namespace weft::schedule {

constexpr int kMostRows = 24;  // of a product's tile
constexpr double kFmaLatency = 4;  // cycles from a sum to the next one on it
constexpr double kGatherLane = 1.2, kScatterLane = 1.6;  // cycles of an element that lies elsewhere

// A machine of groups of threads as its schedules see it: what a core is to others is what runs a group, and the threads'
// registers together are its vectors.
Machine core_of_groups(Machine machine);
constexpr int kGroupVector = 128;  // f32 elements of such a vector

struct RegisterTile {
  int rows = 1;
  int lanes = 1;  // elements
};

// Tiles of accumulators for `rows` x `lanes` elements of a product, those first that should keep the multiply-add units
// busiest, counting what is lost to cut-off tiles: one of each width of lanes, and the next best ones up to `most`.
// `fixed_lanes` prescribes the tile's lanes (0: free), `most_rows` bounds its rows.
std::vector<RegisterTile> product_tiles(const Machine& m, int element_bits, double rows, double lanes, int fixed_lanes,
                                        int most_rows, std::size_t most);

// How many rows that lie `stride` bytes apart the first-level cache holds at once, with room for
// the rest: rows a multiple of a way's size apart share one set.
int cached_rows(const Machine& m, std::int64_t stride);

// Elements of a tile over `extent` lanes: up to `vectors` vectors, and no more than it takes.
int lane_tile(const Machine& m, int element_bits, double extent, int vectors);

// The largest tile up to `most` that cuts an extent into equal parts, or nearly.
int balanced(double extent, int most);

}  // namespace weft::schedule
