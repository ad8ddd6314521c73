#include "compile/kernels.h"

#include <fmt/format.h>

#include <chrono>

#include "codegen/llvm/codegen.h"
#include "compile/clock.h"
#include "kernel/simd/lower.h"
#include "runtime/cache.h"
#include "runtime/pool.h"
#include "tile/lower.h"

namespace weft::compiler {

namespace {

std::string described(const schedule::Schedule& schedule) {
  std::string text = schedule.why + "\n";
  for (const schedule::Variant& v : schedule.variants) {
    if (v.guard) text += fmt::format("when {} in {}..{}: ", v.guard->size.str(), v.guard->lo, v.guard->hi);
    text += schedule::print(v.record) + "\n";
  }
  return text;
}

}  // namespace

bool KernelSet::wants(const char* stage) const {
  return options_.dump && fmt::format(",{},", options_.dump_stages).find(fmt::format(",{},", stage)) != std::string::npos;
}

void KernelSet::dump(const char* stage, const std::string& name, const std::string& text) const {
  if (wants(stage)) options_.dump(stage, name, text);
}

Result<const ReadyGroup*> KernelSet::add(const loop::Group& group, const DimFacts& facts) {
  std::string key = loop::print(group);
  if (auto it = groups_.find(key); it != groups_.end()) return &it->second;
  std::string name = fmt::format("{}_{}", group.name, groups_.size());
  dump("loop", name, key);
  ReadyGroup ready;
  {
    Clock clock(report_.schedule_ms);
    ready.schedule = schedule::schedule(group, machine(), facts);
  }
  dump("schedule", name, described(ready.schedule));
  for (const schedule::Variant& variant : ready.schedule.variants) {
    auto lowering = [&] {
      Clock clock(report_.tile_ms);
      return tile::lower(group, variant.record);
    }();
    tile::Lowered lowered = WEFT_TRY(std::move(lowering));
    dump("tile", name, ssa::print(lowered.function));
    Clock clock(report_.kernel_ms);
    kernel::Function function = WEFT_TRY(kernel::lower_simd(lowered.function, machine()));
    WEFT_TRY(kernel::expand_math(function));
    function.name = name;
    ssa::eliminate_dead(function);
    dump("kernel", name, ssa::print(function));
    ReadyGroup::Variant v;
    v.kernel = WEFT_TRY(add_kernel(std::move(function)));
    v.buffers = std::move(lowered.buffers);
    v.sizes = std::move(lowered.sizes);
    v.grid = lowered.grid;
    ready.variants.push_back(std::move(v));
  }
  return &groups_.emplace(std::move(key), std::move(ready)).first->second;
}

Result<int> KernelSet::add_kernel(kernel::Function function) {
  std::string name = std::move(function.name);
  function.name = "k";
  std::string text = ssa::print(function);
  auto [it, fresh] = kernels_.emplace(std::move(text), size());
  if (!fresh) return it->second;
  function.name = fmt::format("{}_{}", name, size());
  runtime::KernelEntry entry;
  entry.symbol = function.name;
  entry.scratch = codegen::scratch_bytes(function);
  for (const ssa::Buffer& b : function.buffers) {
    if (b.space == ssa::Space::Memory) entry.written.push_back(b.written);
  }
  entries_.push_back(std::move(entry));
  functions_.push_back(std::move(function));
  return it->second;
}

Result<void> KernelSet::build_for_target() {
  if (wants("source")) dump("source", "module", WEFT_TRY(options_.target->print(functions_)));
  Clock clock(report_.llvm_ms);
  device_code_ = WEFT_TRY(options_.target->build(functions_));
  return {};
}

Result<void> KernelSet::finish() {
  if (functions_.empty()) return {};
  if (options_.target) return build_for_target();
  std::vector<codegen::Entry> listed;
  for (std::size_t k = 0; k < functions_.size(); ++k) listed.push_back({&functions_[k], entries_[k].symbol});
  const codegen::TargetDesc& target = codegen::host_target();
  if (wants("llvm")) dump("llvm", "module", WEFT_TRY(codegen::emit_llvm_ir(listed, target)));
  if (wants("asm")) dump("asm", "module", WEFT_TRY(codegen::emit_assembly(listed, target)));
  if (!options_.code) return {};

  int jobs = options_.jobs > 0 ? options_.jobs : runtime::decide_threads().threads;
  runtime::CacheKey key;
  key.add(codegen::version());
  key.add(target.cpu);
  key.add(target.features);
  key.add(std::to_string(jobs));
  for (const auto& [text, index] : kernels_) key.add(text);
  for (const auto& entry : entries_) key.add(entry.symbol);
  std::vector<codegen::Object> objects;
  runtime::Cache cache;
  if (options_.cache) {
    if (auto found = cache.get(key)) objects = std::move(*found);
  }
  report_.from_cache = !objects.empty();
  codegen::Timing timing;
  if (objects.empty()) {
    Clock clock(report_.llvm_ms);
    codegen::Options how;
    how.jobs = jobs;
    how.timing = &timing;
    objects = WEFT_TRY(codegen::compile_objects(listed, target, how));
    if (options_.cache) cache.put(key, objects);
  }
  Clock clock(report_.link_ms);
  auto code = std::make_shared<codegen::LoadedCode>(WEFT_TRY(codegen::LoadedCode::load(objects, &timing)));
  for (runtime::KernelEntry& entry : entries_) entry.fn = WEFT_TRY(code->lookup(entry.symbol));
  code_ = code;
  return {};
}

}  // namespace weft::compiler
