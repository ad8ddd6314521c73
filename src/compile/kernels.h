// The kernels of one compilation: groups come in, equal ones are compiled once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/llvm/codegen.h"
#include "compile/code.h"
#include "compile/compile.h"
#include "compile/in_place.h"
#include "compile/jobs.h"
#include "kernel/kernel.h"
#include "loop/group.h"
#include "runtime/cache.h"
#include "schedule/schedule.h"
#include "tile/lower.h"
#include "tile/tile.h"

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
  std::vector<InPlacePair> in_place;
};

class KernelSet {
 public:
  KernelSet(const Options& options, Report& report);

  // Makes schedules and tile programs, on all threads; what is never added leaves no kernel.
  Result<void> consider(const std::vector<const loop::Group*>& groups, const DimFacts& facts);
  // Of a group that was considered: modelled microseconds of a run, and whether the target takes its kernels.
  double modelled_us(const loop::Group& group) const;
  Result<void> takes(const loop::Group& group) const;
  // Considers and keeps; machine code comes with all of them together.
  Result<void> add(const std::vector<const loop::Group*>& groups, const DimFacts& facts);
  // Of a group that was added.
  const ReadyGroup& ready(const loop::Group& group) const;
  // When all groups are there: adds the jobs that make the code of what every run takes, and of the kernels `first`.
  Result<void> prepare(std::vector<Job>& jobs, const std::vector<std::int32_t>& first = {});
  // When the jobs are done: loads the code.
  Result<void> finish();

  const Machine& machine() const { return machine_; }
  int size() const { return static_cast<int>(tiles_->size()); }
  const std::vector<runtime::KernelEntry>& entries() const { return entries_; }
  std::shared_ptr<Code> code() const { return code_; }
  std::shared_ptr<const runtime::DeviceCode> device_code() const { return device_code_; }
  bool wants(const char* stage) const;
  void dump(const char* stage, const std::string& name, const std::string& text) const;

 private:
  // What a group becomes; depends on nothing else.
  struct Made {
    schedule::Schedule schedule;
    std::vector<tile::Lowered> lowered;  // by variant
    std::vector<std::string> keys;       // of those functions
    bool alone = false;                  // one thread runs a program, though the machine has groups
    Result<void> taken;                  // by the target, where there is a choice
    double schedule_ms = 0, tile_ms = 0;
  };
  Result<void> make(const loop::Group& group, const std::string& key, const DimFacts& facts, Made& into) const;
  Result<void> target_takes(const loop::Group& group, const Made& made) const;
  int threads() const;
  const Made& considered(const loop::Group& group) const;
  void enrol(const loop::Group& group, const std::string& key, Made made);
  Result<void> build_for_target();
  schedule::Schedule schedule(const loop::Group& group, const DimFacts& facts, const std::string& choice, bool& alone) const;

  int add_tile(tile::Function function, std::string key, const std::string& name, bool alone);
  Result<kernel::Function> lowered(std::size_t kernel, std::string* spread = nullptr) const;
  Result<std::vector<kernel::Function>> lower_all();
  Result<void> check_taken() const;
  Result<void> dump_code();
  std::vector<std::int32_t> made_quickly() const;  // by kernel, as in Code::Setup

  const Options& options_;
  const Machine machine_;
  Report& report_;
  std::map<std::string, Made> considered_;    // by print_alike(): equal text, equal meaning
  std::map<std::string, ReadyGroup> groups_;  // by the same
  std::map<std::string, int> numbers_;        // by ssa::key() of the tile program
  std::shared_ptr<Tiles> tiles_ = std::make_shared<Tiles>();
  std::vector<bool> always_;                  // by kernel: whether every run takes it
  std::vector<std::string> origins_;          // by kernel: the user's nodes in the first group that it is of
  std::vector<bool> alone_;                   // by kernel: one thread runs a program, though the machine has groups
  struct Use {
    std::int32_t launches = 0;                // of one run
    double run_us = 0, instructions = 0;      // modelled: of these launches, and of the code
  };
  std::vector<Use> uses_;                     // by kernel
  std::vector<runtime::KernelEntry> entries_;
  runtime::CacheKey key_;
  Code::Batch batch_;
  std::shared_ptr<Code> code_;
  std::shared_ptr<const runtime::DeviceCode> device_code_;
};

}  // namespace weft::compiler
