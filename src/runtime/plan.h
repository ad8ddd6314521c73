// A plan: what an executable does, step by step, over slots that hold values. Plain data; sizes are expressions that are
// evaluated once per binding of the symbols. Branch and loop bodies are plans of their own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/dim.h"
#include "base/tensor.h"
#include "runtime/device.h"
#include "runtime/kernel_abi.h"
#include "runtime/kernel_code.h"

namespace weft::runtime {

using SlotId = std::int32_t;

struct Slot {
  enum class Kind : std::uint8_t {
    Input,     // the caller's, number `index`
    Output,    // the caller's, number `index`
    Constant,  // constants[index]
    Temp,      // in the arena; live over its steps
    Dynamic,   // allocated when a step makes it: its size is known only then
    Alias,     // the bytes of slot `index`, seen in another shape
  } kind = Kind::Temp;
  std::int32_t index = 0;
  DType dtype = DType::F32;
  Shape shape;
  std::int64_t padded_elements = 0;  // Constant: elements in storage when more than the shape says (panels)
  std::string name;
};

// One way to run a launch; taken when lo <= guard <= hi.
struct LaunchVariant {
  std::int32_t kernel = 0;    // index into Plan::kernels, or those of the device
  bool guarded = false;
  Dim guard;
  std::int64_t lo = 0, hi = INT64_MAX;
  Dim grid;
  std::vector<Dim> sizes;
};

// An output of a launch that may lie in an input's memory when both have as many bytes and nothing else reads the input
// from this step on: indices into Launch::buffers.
struct InPlace {
  std::int32_t output = 0, input = 0;
};

struct Launch {
  std::vector<LaunchVariant> variants;    // first match wins; the last is unguarded
  std::vector<SlotId> buffers;            // per Memory buffer of the kernel (alike for all variants)
  bool on_device = false;                 // its kernels are Plan::device's, else this process's
  std::vector<std::string> checks;        // what check code i+1 means
  std::int32_t info = -1;                 // index into Plan::infos
  std::vector<InPlace> in_place;
};

// A host op: runs on tensors, may bind symbols, makes its results.
struct HostCall {
  std::string op;
  std::string origin;
  std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>&, Bindings&)> call;
  std::vector<SlotId> inputs, outputs;
};

struct Plan;

struct BranchStep {  // if
  SlotId condition;
  std::vector<SlotId> inputs, outputs;
  std::shared_ptr<const Plan> then_plan, else_plan;
  std::string origin;
};

struct LoopStep {  // while-like: (iteration, condition, carried, captures) -> (condition, carried, scan outputs)
  SlotId trip_count, condition;
  std::vector<SlotId> carried, captures;
  std::vector<SlotId> carried_out, stacked_out;  // stacking binds a size that is a bare symbol without a value
  std::shared_ptr<const Plan> body;
  std::string origin;
};

struct ScanStep {  // (carried, slices, captures) -> (carried, ys), over axis 0
  std::vector<SlotId> carried, xs, captures;
  std::vector<SlotId> carried_out, ys;
  Dim length;
  std::shared_ptr<const Plan> body;
  std::string origin;
};

struct CopyStep {
  SlotId from, to;
};

using PlanStep = std::variant<Launch, HostCall, BranchStep, LoopStep, ScanStep, CopyStep>;

// What a kernel is about: for explanations and profiles.
struct KernelInfo {
  std::string name;
  std::vector<std::string> origins;
  std::string schedule;      // the schedule's reason
  Dim bytes_compulsory, bytes_moved, flops;
  std::string place = {}, place_why = {};  // where it runs and why, when there was a choice
};

struct KernelEntry {
  std::string symbol;
  KernelFn fn = nullptr;             // null: Plan::code has it; a device's has none
  std::vector<bool> written;         // by Memory buffer
  std::int64_t scratch = 0;  // bytes of on-chip memory per program
  std::string spread;        // on a device: how many threads run a program, and why if it is one
};

// Two sizes that must be equal for the plan to be right; checked as soon as both are known.
struct Requirement {
  Dim left, right;
  std::string origin;
};

struct Plan {
  std::string name;
  std::vector<Slot> slots;
  std::vector<SlotId> inputs, outputs;
  std::vector<std::string> input_names, output_names;
  std::vector<Tensor> constants;
  std::vector<KernelEntry> kernels;   // of this process
  std::vector<KernelInfo> infos;
  std::vector<PlanStep> steps;
  std::vector<Requirement> requirements;
  DimFacts facts;                     // of the symbols that inputs bind
  std::shared_ptr<KernelCode> code;   // keeps the machine code loaded
  // Where kernels run when that is not this process; host steps and control flow stay here.
  std::shared_ptr<Device> device;
  std::shared_ptr<const DeviceCode> device_code;
  std::vector<KernelEntry> device_kernels;
  std::string placement;              // what runs there and here, and what that should cost, when there was a choice

  const KernelEntry& kernel(const Launch& launch, const LaunchVariant& variant) const {
    return (launch.on_device ? device_kernels : kernels)[variant.kernel];
  }
};

// A listing for people: slots with their sizes, steps in order, bodies indented.
std::string print(const Plan& plan);

}  // namespace weft::runtime
