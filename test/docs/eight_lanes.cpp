// Follows docs/adding-a-target.md, "A machine that is not built yet": linked with the commands, `--target eight` compiles
// models for it and runs them in the simulator.
#include "target/sim/sim.h"

namespace weft::docs {
namespace {

Result<std::shared_ptr<const target::Target>> open_eight(std::string_view) {
  Machine m;
  m.name = "eight";
  m.arch = "eight";          // of no code generator: kernels are interpreted
  m.vector_bits = 64;        // of one access of a thread
  m.vector_registers = 32;
  m.cores = 2;
  m.group_threads = 32;
  m.warp_threads = 8;        // lanes that go in step
  m.has_shuffle = true;
  m.shared_bytes = 8 << 10;
  m.has_fma = true;
  return target::simulated(std::move(m));
}

const bool added = (target::add({"eight", "an invented machine of eight lanes, simulated", open_eight, nullptr}), true);

}  // namespace
}  // namespace weft::docs
