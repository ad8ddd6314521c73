// Runs plans. An Executable is immutable and may be run from many threads at once; each run takes an arena of its own.
// Layouts (sizes, offsets) are computed once per binding of the symbols; a bounded number of them is remembered.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "runtime/memory.h"
#include "runtime/plan.h"

namespace weft::runtime {

// What a step did in a run. Steps of bodies are summed over the iterations; one that did not run has no entry.
struct StepProfile {
  std::int64_t runs = 0;
  double seconds = 0;
  double bytes_compulsory = 0, bytes_moved = 0, flops = 0;  // of kernels, with the sizes that they ran with
};
using Profile = std::map<const PlanStep*, StepProfile>;  // for look-ups; its order means nothing

struct RunOptions {
  int threads = 0;                               // 0: as decide_threads() says
  const std::atomic<bool>* stop = nullptr;       // checked between steps
  Profile* profile = nullptr;                    // when given: added to
};

struct MemoryStats {
  std::int64_t arena = 0;   // bytes of one run's arena
  std::int64_t bound = 0;   // the max-live bound over aligned sizes
};

class Executable {
 public:
  explicit Executable(std::shared_ptr<const Plan> plan);
  ~Executable();

  const Plan& plan() const { return *plan_; }

  // Inputs are only read. `outputs` may hold tensors to write into (right dtype and shape) or undefined ones, which are
  // allocated. Errors: wrong count, dtype, rank or size (named), sizes out of range, failed checks, stopped.
  Result<void> run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs, const RunOptions& options = {}) const;

  // The memory that a run with these inputs' shapes takes.
  Result<MemoryStats> memory(const std::vector<std::vector<std::int64_t>>& input_shapes) const;

 private:
  friend class Run;
  struct Layout;
  struct State;
  Result<std::shared_ptr<Layout>> layout(const Bindings& bindings) const;
  Result<std::shared_ptr<const Layout>> find_layout(const std::vector<std::int64_t>& key,
                                                    const std::vector<Tensor>& inputs, const Bindings& outer) const;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<State> state_;
};

// Symbols from input shapes, by the rules of graph::bind_inputs: bare ones bind first, those still unknown are taken from
// `outer` (which the result includes), linear expressions are solved, then every size is checked.
Result<Bindings> bind_shapes(const Plan& plan, const std::vector<std::vector<std::int64_t>>& shapes,
                             const Bindings& outer = {});

}  // namespace weft::runtime
