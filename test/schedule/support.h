// Machines and groups that the tests of schedules share.
#pragma once

#include <string>

#include "base/machine.h"
#include "loop/group.h"

namespace weft::schedule {

inline Machine avx512() {
  Machine m;
  m.vector_bits = 512;
  m.vector_registers = 32;
  m.cores = 4;
  m.l2_bytes = 1 << 20;
  m.l3_bytes = 16 << 20;
  m.has_fma = true;
  return m;
}

inline loop::Group group(const std::string& text) { return loop::parse("group \"g\"\n" + text).value(); }

inline loop::Group dot(const std::string& m, const std::string& k, const std::string& n, bool constant = true) {
  return group("param p0: input f32[" + m + ", " + k + "]\nparam p1: input f32[" + k + ", " + n + "]" +
               (constant ? " const" : "") + "\nparam p2: output f32[" + m + ", " + n + "]\nparallel i0: " + m +
               " { parallel i1: " + n + " { local t0: f32 = f32(0) reduce i2: " + k +
               " { update t0 sum= p0[i0, i2] * p1[i2, i1] } store p2[i0, i1] = t0 } }");
}

}  // namespace weft::schedule
