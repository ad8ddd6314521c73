// Two programs of one graph, run by turns: which kernels are faster in which.
#pragma once

#include <vector>

#include "runtime/execute.h"

namespace weft::cli {

// Seconds of pairs of runs, by kernel (`which` numbers the launches' kernels) and of whole runs.
struct Race {
  struct Pairs {
    std::vector<double> first, second;
    double median_ratio() const;  // second over first
    // Whether the second is faster by more than the noise: in the median by some percent, and in most of the pairs.
    bool second_wins() const;
  };
  std::vector<Pairs> kernels;
  Pairs whole;
};

Result<Race> race(const runtime::Executable& first, const runtime::Executable& second, const std::vector<Tensor>& inputs,
                  int threads, const std::vector<int>& which, double seconds);

}  // namespace weft::cli
