// Machine code of a model's kernels, made in batches: what every run takes when the model is compiled, what only some
// sizes take when a run first does. Each batch is an entry of the compile cache.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/machine.h"
#include "codegen/llvm/codegen.h"
#include "compile/jobs.h"
#include "compile/worker.h"
#include "kernel/kernel.h"
#include "runtime/cache.h"
#include "runtime/kernel_code.h"
#include "tile/tile.h"

namespace weft::compiler {

// Sums over the threads.
struct CodeTimes {
  double kernel_ms = 0, emit_ms = 0, codegen_ms = 0, link_ms = 0;
  double wall_ms = 0;   // of batches that runs asked for
  int kernels = 0;      // made so far, those from the cache included
  int from_cache = 0;
};

// Tile programs, by kernel, under the symbols that their code has.
using Tiles = std::vector<tile::Function>;

// A tile program as a kernel of that name, down to what emitters take. Where the machine has groups of threads, for one of
// them; what a group cannot run is one thread's, and `spread`, if given, says why.
Result<kernel::Function> lower_program(const tile::Function& program, const Machine& machine, const std::string& name,
                                       std::string* spread = nullptr);

class Code final : public runtime::KernelCode {
 public:
  struct Setup {
    std::vector<std::string> symbols;  // by kernel
    std::string key;                   // of all that shapes them: tile programs, target, build
    Machine machine;
    int jobs = 1;
    bool cache = true;
    bool load = true;                  // false: it is for another CPU
    // By kernel: after how many launches of code that was made quickly it is made well; 0, or none said: well at once.
    std::vector<std::int32_t> quick;
    // Where the tile programs are, or how they are made again when they come from the cache.
    std::function<Result<std::shared_ptr<const Tiles>>()> tiles;
  };
  explicit Code(Setup setup);

  // Some kernels on their way: the jobs added by begin() make them, finish() loads them.
  struct Part {
    std::vector<std::int32_t> kernels;
    codegen::Object object;
    codegen::Timing timing;
    double kernel_ms = 0;
    bool quick = false;
  };
  struct Batch {
    std::vector<std::int32_t> kernels;
    std::vector<Part> parts;
    std::vector<codegen::Object> objects;
    bool from_cache = false;
  };
  Result<void> begin(Batch& batch, std::vector<Job>& jobs);
  Result<void> finish(Batch& batch);

  Result<void> require(std::span<const std::int32_t> kernels) override;
  // Asked for before each launch of a kernel that was made quickly.
  runtime::KernelFn function(std::int32_t kernel) const override {
    if (is_quick(kernel)) count(kernel);
    return functions_[kernel].load(std::memory_order_acquire);
  }
  bool is_quick(std::int32_t kernel) const { return setup_.quick[kernel] > 0; }  // at first: it may be made well by now
  void settle();  // what was made quickly and launched is made well when this returns

  const std::vector<std::string>& symbols() const { return setup_.symbols; }
  const std::string& key() const { return setup_.key; }
  Result<std::shared_ptr<const Tiles>> tiles() const { return setup_.tiles(); }
  CodeTimes times() const;

 private:
  runtime::CacheKey key_of(const Batch& batch) const;
  bool find_cached(Batch& batch) const;
  Result<void> compile(Part& part, const Tiles& tiles) const;
  std::vector<std::int32_t> missing(std::span<const std::int32_t> kernels) const;
  void count(std::int32_t kernel) const;
  void make_again(std::int32_t kernel);

  const Setup setup_;
  const runtime::Cache cache_;
  std::vector<std::atomic<runtime::KernelFn>> functions_;
  std::mutex making_;  // one batch at a time
  mutable std::mutex mutex_;
  std::vector<codegen::LoadedCode> loaded_;
  CodeTimes times_;
  mutable std::vector<std::atomic<std::int32_t>> launches_;  // by kernel, of those made quickly
  mutable Worker again_;                                     // makes them well; the last to be made, the first to go
};

}  // namespace weft::compiler
