// Turns one graph (the model's, or the body of a branch or loop) into a plan.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "compile/kernels.h"
#include "loop/lower/lower.h"
#include "runtime/plan.h"

namespace weft::compiler {

// Constants laid out for kernels, shared by all plans of a compilation.
class ConstantStore {
 public:
  // Its bytes are there when the jobs are done.
  Result<Tensor> prepared(const Tensor& data, const std::vector<std::int64_t>& shape, const loop::StorageMap& map);
  const std::vector<Job>& jobs() const { return jobs_; }

 private:
  std::map<std::string, Tensor> done_;
  std::vector<Job> jobs_;
};

struct PlanContext {
  KernelSet* here;    // kernels of this process, and of the target; at least one of them
  KernelSet* device;
  ConstantStore& constants;
  const Options& options;
  Report& report;
  std::vector<std::shared_ptr<runtime::Plan>> plans;  // all plans made, to be given their kernels at the end

  std::vector<KernelSet*> sets() const {
    std::vector<KernelSet*> both;
    for (KernelSet* set : {here, device}) {
      if (set) both.push_back(set);
    }
    return both;
  }
};

Result<std::shared_ptr<runtime::Plan>> build_plan(const std::shared_ptr<const graph::Graph>& graph,
                                                  PlanContext& context);

}  // namespace weft::compiler
