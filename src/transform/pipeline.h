// The graph passes, as a table, and the straight pipeline that runs them.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace weft::transform {

struct PassOptions {
  std::vector<std::string> off;      // passes by name that do not run
  int limit = -1;                    // at most this many passes run, in order (bisection); -1: all
  std::size_t fold_bytes = 256 << 20;  // constants that folding may make, in all
  bool verify_each = false;          // verify, print and parse after each pass
};

struct Pass {
  const char* name;
  const char* doc;
  Result<graph::Graph> (*run)(const graph::Graph& graph, const PassOptions& options);
};
const std::vector<Pass>& passes();  // in pipeline order

Result<graph::Graph> optimize(const graph::Graph& graph, const PassOptions& options = {});

}  // namespace weft::transform
