// Products by groups of threads: what the matrix units of warps make of them, and how far ahead operands are copied. Private
// to schedule/.
#pragma once

#include "schedule/analysis.h"
#include "schedule/schedule.h"

namespace weft::schedule {

// Bits of the elements that the units multiply; 0: not this product's.
int warp_unit_bits(const Machine& m, const Analysis& a, const Leaf& leaf);

// One step of a deep product by a group of threads.
struct GroupStep {
  double cycles = 0;   // of multiplications
  double waiting = 0;  // at barriers, and for memory as far as copies ahead do not cover it
  int stages = 1;      // blocks of the operands that lie in shared memory at once
};
GroupStep group_step(const Machine& m, const Analysis& a, const Record& r, const Leaf& leaf, double fma_cycles);

// Of the record's deep product; 1: nothing is copied ahead.
int stages(const Machine& m, const Analysis& a, const Record& r);

}  // namespace weft::schedule
