// Products that a processor's matrix unit multiplies, tile by tile of 16 rows of 64 bytes. Private to schedule/.
#pragma once

#include "schedule/analysis.h"
#include "schedule/schedule.h"
#include "schedule/tiles.h"

namespace weft::schedule {

constexpr int kTileWords = kTileRowBytes / 4;  // of a row
constexpr double kUnitCycles = 16;   // of a product of two tiles
constexpr double kUnitLatency = 52;  // until its sum can be added to
constexpr double kUnitLoad = 8;      // cycles of a tile's load

// Whether the machine has a unit for the elements of the product, which are taken in words.
bool has_unit(const Machine& m, const Leaf& product);

// The loop that counts words of a product, where nothing else stands in it and tiles divide it; -1: there is none.
LoopId unit_loop(const Analysis& a, const Leaf& product);

// Shapes of sums that leave the unit registers for operands: the best for so many rows and lanes first.
std::vector<RegisterTile> unit_tiles(double rows, double lanes);

// Whether the record has the statement multiplied by the unit.
bool on_unit(const Record& r, const Leaf& leaf);

}  // namespace weft::schedule
