// Between a device and this process: where each kernel of a plan runs.
#pragma once

#include <string>
#include <vector>

#include "compile/kernels.h"
#include "graph/graph.h"
#include "loop/lower/lower.h"

namespace weft::compiler {

struct Division {
  std::vector<bool> on_device;   // by group
  std::vector<std::string> why;  // by group, one line for people
  std::string summary;           // one line for people
};

// Of the partition's groups, by the cost model, or by Options::on_device. What the device does not take runs here.
Result<Division> divide(const graph::Graph& graph, const loop::Partition& partition, const std::vector<const loop::Group*>& groups,
                        KernelSet& here, KernelSet& device, const Options& options);

}  // namespace weft::compiler
