// From a graph to a plan: the straight list of steps.
//   optimise the graph · lower to groups · schedule · tiles · kernels · mathematics · machine code · plan
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/machine.h"
#include "graph/graph.h"
#include "loop/group.h"
#include "runtime/plan.h"
#include "target/target.h"
#include "transform/pipeline.h"

namespace weft::compiler {

class Code;

struct Options {
  transform::PassOptions passes;
  Machine machine;                 // host_machine() unless set; a target's own when there is one
  std::shared_ptr<const target::Target> target;  // null: this process
  bool cpu_too = false;            // kernels go to the target or stay in this process, whichever the cost model says
  std::function<bool(const loop::Group&)> on_device;  // says it instead of the cost model
  int jobs = 0;                    // threads of the code generator; 0: as many as the pool
  bool cache = true;               // the compile cache on disk
  std::vector<std::vector<std::int64_t>> first_shapes;  // of the inputs of the first run, or nothing: kernels for these sizes are made, too
  bool tuned = true;               // schedules that were found by measuring are used, where there are some
  std::map<std::string, std::string> choices;  // by print_alike() of a group, those to use instead: print() of a candidate, or "" for none
  bool code = true;                // false: stop before machine code; the plan cannot run
  bool load = true;                // false: machine code is not loaded: it is for another CPU; the plan cannot run
  // Called with what each stage made, as text: stage "graph", "loop", "schedule", "tile", "kernel",
  // "llvm", "asm", "plan"; name of the item. Of stage "object", with the bytes of an ELF object of all kernels.
  std::function<void(const std::string& stage, const std::string& name, const std::string& text)> dump;
  std::string dump_stages;         // which of them are wanted, separated by commas; empty: none
  Options();
};

// What code is made for: the target's machine or `machine`, with what the precision asks of it.
Machine machine_of(const Options& options);

// What compiling took and made. Several threads share kernels, LLVM and packing: those times are sums over the threads.
struct Report {
  double transform_ms = 0, lower_ms = 0, schedule_ms = 0, tile_ms = 0, kernel_ms = 0, emit_ms = 0, llvm_ms = 0, pack_ms = 0, link_ms = 0;
  double plan_ms = 0;       // of the clock on the wall: lowering, schedules and tile programs among it
  double shared_ms = 0;     // of the clock on the wall: what the threads share
  double total_ms = 0;      // of the clock on the wall
  int nodes = 0;            // of the graph as given
  int prims = 0;            // of the graph as compiled
  int loops = 0;            // groups
  int kernels = 0;          // launches, bodies of branches and loops included
  int unique_kernels = 0;
  int compiled_kernels = 0; // of those; the others when a run first takes them
  int host_steps = 0;
  bool from_cache = false;
};

struct Compiled {
  std::shared_ptr<const runtime::Plan> plan;
  std::shared_ptr<const graph::Graph> graph;  // as compiled
  std::shared_ptr<Code> code;                 // of kernels that run in this process
  Report report;
};

// What total_ms consists of, in order.
struct StageTime {
  const char* stage;
  double ms;
  const char* within = nullptr;  // a part of that stage; of shared stages a sum over the threads
};
std::vector<StageTime> stage_times(const Report& report);

Result<Compiled> compile(const graph::Graph& graph, const Options& options = {});

}  // namespace weft::compiler
