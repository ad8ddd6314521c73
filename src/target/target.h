// What programs can be compiled for. "cpu", this process's own cores, is built in; every other target is a folder here
// and a line in target.cpp: what its machine is like, how kernels are built for it, the device that runs them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "kernel/kernel.h"
#include "runtime/device.h"

namespace weft::target {

class Target {
 public:
  virtual ~Target() = default;
  virtual const Machine& machine() const = 0;
  virtual std::shared_ptr<runtime::Device> device() const = 0;  // null: kernels can be printed, not run
  // The kernels as the target's source text, as build() hands them to the device's compiler.
  virtual Result<std::string> print(std::span<const kernel::Function> kernels) const = 0;
  // The same target, given another kind of code, where it takes several ("spirv").
  virtual Result<std::shared_ptr<const Target>> with_code(std::string_view kind) const;
  // Unsupported: what the device lacks that the kernel needs.
  virtual Result<void> takes(const kernel::Function&) const { return {}; }
  // Kernels by their place in the list. Unsupported: what the device lacks, all of it at once.
  virtual Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const = 0;
};

struct Info {
  const char* name;
  const char* doc;
  Result<std::shared_ptr<const Target>> (*open)(std::string_view which);  // what follows the colon; null: cpu
  Result<std::vector<std::string>> (*devices)();               // their names; an error says what is missing
};
std::span<const Info> all();
void add(const Info& info);  // one of the program's own; before threads start

// "cpu", "opencl", "opencl:1" (the second device), "cuda:sm_90a" (a machine that need not be here). Null for cpu.
Result<std::shared_ptr<const Target>> open(std::string_view name);

// Where a program may run its kernels: "cpu", "opencl", or both, "opencl+cpu": then each where it costs least.
struct Places {
  std::shared_ptr<const Target> device;  // null: none
  bool cpu = true;
};
Result<Places> open_places(std::string_view names, std::string_view code = "");  // the device's kind of code; "": its usual one

// What follows the colon as the number of a device; nothing is the first one.
Result<int> device_number(std::string_view target, std::string_view which);

}  // namespace weft::target
