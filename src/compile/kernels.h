// The kernels of one compilation: groups come in, equal ones are compiled once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "kernel/kernel.h"
#include "loop/group.h"
#include "schedule/schedule.h"

namespace weft::compiler {

// A group made ready: its variants as kernels, and what each needs.
struct ReadyGroup {
  schedule::Schedule schedule;
  struct Variant {
    int kernel = 0;                       // index into KernelSet
    std::vector<loop::ParamId> buffers;
    std::vector<Dim> sizes;
    Dim grid;
  };
  std::vector<Variant> variants;
};

class KernelSet {
 public:
  KernelSet(const Options& options, Report& report) : options_(options), report_(report) {}

  Result<const ReadyGroup*> add(const loop::Group& group, const DimFacts& facts);
  // Machine code for all of them, loaded; from the cache when it is there.
  Result<void> finish();

  int size() const { return static_cast<int>(functions_.size()); }
  const std::vector<runtime::KernelEntry>& entries() const { return entries_; }
  std::shared_ptr<const void> code() const { return code_; }
  std::shared_ptr<const runtime::DeviceCode> device_code() const { return device_code_; }
  bool wants(const char* stage) const;
  void dump(const char* stage, const std::string& name, const std::string& text) const;

 private:
  const Machine& machine() const { return options_.target ? options_.target->machine() : options_.machine; }
  Result<int> add_kernel(kernel::Function function);
  Result<void> build_for_target();
  const Options& options_;
  Report& report_;
  std::map<std::string, ReadyGroup> groups_;   // by printed group: equal text, equal meaning
  std::map<std::string, int> kernels_;         // by printed kernel
  std::vector<kernel::Function> functions_;
  std::vector<runtime::KernelEntry> entries_;
  std::shared_ptr<const void> code_;
  std::shared_ptr<const runtime::DeviceCode> device_code_;
};

}  // namespace weft::compiler
