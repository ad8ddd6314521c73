// One execution of a plan: private to the runtime.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/execute.h"
#include "runtime/guard.h"
#include "runtime/mirror.h"

namespace weft::runtime {

struct LaunchSizes {
  int variant = -1;  // -1: depends on sizes bound during the run
  int threads = 1;   // as many as its work is worth
  std::int64_t grid = 0;
  std::vector<std::int64_t> sizes;
};

// What depends on the sizes only.
struct Executable::Layout {
  std::vector<std::int64_t> key;
  Bindings bindings;
  MemoryPlan memory;
  std::vector<bool> known;                          // by slot: its shape is known before the run
  std::vector<std::vector<std::int64_t>> shapes;    // by slot, where known
  std::vector<std::int64_t> offsets;                // by slot: arena offset of Temp ones
  std::vector<LaunchSizes> launches;                // by step
};

// Memory of one run, reused by later ones.
struct RunMemory {
  std::unique_ptr<std::byte[]> arena_storage, scratch_storage;
  std::byte* arena = nullptr;
  std::byte* scratch = nullptr;
  std::int64_t arena_bytes = 0, scratch_bytes = 0;
  std::vector<void*> pointers;      // by slot
  std::vector<Tensor> dynamic;      // by slot
  std::vector<void*> arguments;
  std::vector<std::int64_t> key;
  std::unique_ptr<Mirror> mirror;   // of a plan with a device
};

// The variant, grid and sizes of a launch; variant -1 when a symbol in them is not bound yet.
Result<LaunchSizes> resolve_launch(const Plan& plan, const Launch& launch, const Bindings& bindings);

// Of a value of that shape; an error when there are too many.
Result<std::int64_t> slot_bytes(const Slot& slot, const std::vector<std::int64_t>& shape);

// What a failed check of a launch says.
Error failed_check(const Launch& launch, std::int64_t code);

// Those of the plan's requirements whose symbols are all bound.
Result<void> check_requirements(const Plan& plan, const Bindings& bindings);

struct Executable::State {
  std::mutex mutex;
  std::vector<std::shared_ptr<const Layout>> layouts;   // most recently used last
  DeviceConstants device_constants;
  std::vector<std::unique_ptr<RunMemory>> free_memory;
  std::vector<std::vector<std::unique_ptr<Executable>>> bodies;  // by step: plans of branches and loops
};

// May be executed again and again with other tensors in `inputs` and `outputs`: as long as the shapes stay, only
// pointers change.
class Run {
 public:
  enum class Role {
    Whole,  // outputs that are given must fit and overlap nothing
    Body,   // outputs that are given are memory to reuse where they fit
  };
  Run(const Executable& executable, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
      const RunOptions& options, const Bindings& outer, Role role, const Kept* kept = nullptr);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  Result<void> execute();

 private:
  // execute.cpp
  Result<void> prepare();
  Result<void> prepare_memory();
  void prepare_pointers();
  Result<void> prepare_outputs();
  Result<void> check_overlap(std::size_t output) const;
  Result<void> check_stop() const;
  Result<void> step(std::size_t k);
  Result<void> profiled_step(std::size_t k);
  Result<void> launch(const Launch& launch, const LaunchSizes& known, std::size_t k);
  Result<void> launch_here(const Launch& launch, const LaunchSizes& sizes);
  Result<KernelFn> made(std::int32_t kernel);
  Result<std::vector<GuardedBuffer>> guarded_buffers(const Launch& launch, const KernelEntry& kernel) const;
  Result<void> host(const HostCall& call);
  // device_run.cpp
  Result<void> prepare_device();
  Result<void> launch_on_device(const Launch& launch, const LaunchSizes& sizes, std::size_t k);
  Result<DeviceSpan> on_device(SlotId slot, bool written);
  bool is_kept(SlotId output) const;
  Result<void> launch_between(const Launch& launch, const LaunchSizes& sizes);  // here, among launches on the device
  Result<void> fetch(SlotId slot);
  void host_wrote(SlotId slot);
  Result<void> check_device();
  Result<void> finish_device();
  Result<std::int64_t> bytes(SlotId slot) const;
  // control.cpp
  Result<void> branch(const BranchStep& step, std::size_t k);
  Result<void> loop(const LoopStep& step, std::size_t k);
  Result<bool> truth(SlotId slot, const std::string& origin);
  Result<std::vector<Tensor>> tensors(const std::vector<SlotId>& slots);
  // scan.cpp
  class Scan;
  Result<void> scan(const ScanStep& step, std::size_t k);
  // values.cpp
  Result<std::vector<std::int64_t>> shape(SlotId slot) const;
  Result<void*> make(SlotId slot);              // of a slot about to be written
  Result<Tensor> tensor(SlotId slot);           // to read
  Result<Tensor> target(SlotId slot);           // to write into, or undefined where the writer allocates
  Result<void> settle(SlotId slot, const Tensor& value, const std::string& origin);
  Result<void> put(SlotId slot, Tensor value, const std::string& origin);  // a finished tensor becomes the slot's value
  Result<void*> writable(SlotId slot, Tensor& t) const;
  Bindings& late();                             // the bindings, to add to
  const Bindings& bindings() const { return has_late_ ? late_ : layout_->bindings; }

  const Executable& executable_;
  const Plan& plan_;
  const std::vector<Tensor>& inputs_;
  std::vector<Tensor>& outputs_;
  const RunOptions& options_;
  const Bindings& outer_;
  const Role role_;
  const Kept* kept_;
  int threads_ = 1;
  std::shared_ptr<const Executable::Layout> layout_;
  Bindings late_;               // all bindings, once a step has bound more
  bool has_late_ = false;
  std::unique_ptr<RunMemory> memory_;
  friend class Executable;
};

}  // namespace weft::runtime
