#include "compile/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "compile/clock.h"
#include "kernel/simd/lower.h"
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

// About how much code a tile program becomes: all of a tile is unrolled.
std::int64_t code_size(const tile::Function& function, const ssa::Block& block) {
  std::int64_t size = 0;
  for (const ssa::Inst& inst : block.insts) {
    std::int64_t elements = 1;
    for (tile::ValueId v : inst.operands) elements = std::max(elements, function.type(v).elements());
    for (tile::ValueId v : inst.results) elements = std::max(elements, function.type(v).elements());
    if (static_cast<tile::Op>(inst.op) == tile::Op::Dot) elements *= function.type(inst.operands[0]).shape[1];
    size += 4 + elements;
    for (const ssa::Block& region : inst.regions) size += code_size(function, region);
  }
  return size;
}

// How much on-chip memory each kernel asks for, as the cache's last blob.
codegen::Object packed_scratch(const std::vector<runtime::KernelEntry>& entries) {
  codegen::Object bytes(entries.size() * sizeof(std::int64_t));
  for (std::size_t k = 0; k < entries.size(); ++k) {
    std::memcpy(bytes.data() + k * sizeof(std::int64_t), &entries[k].scratch, sizeof(std::int64_t));
  }
  return bytes;
}

bool unpack_scratch(const codegen::Object& bytes, std::vector<runtime::KernelEntry>& entries) {
  if (bytes.size() != entries.size() * sizeof(std::int64_t)) return false;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    std::memcpy(&entries[k].scratch, bytes.data() + k * sizeof(std::int64_t), sizeof(std::int64_t));
  }
  return true;
}

}  // namespace

KernelSet::KernelSet(const Options& options, Report& report) : options_(options), report_(report) {
  const codegen::TargetDesc target = codegen::target_for(options_.machine);
  key_.add(codegen::version());
  key_.add(target.cpu);
  key_.add(target.features);
  key_.add(fmt::format("{} {}", machine().vector_bits, fmt::join(machine().features, ",")));
}

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
  Clock clock(report_.tile_ms);
  for (const schedule::Variant& variant : ready.schedule.variants) {
    tile::Lowered lowered = WEFT_TRY(tile::lower(group, variant.record));
    dump("tile", name, ssa::print(lowered.function));
    ReadyGroup::Variant v;
    v.kernel = add_tile(std::move(lowered.function), name);
    v.buffers = std::move(lowered.buffers);
    v.sizes = std::move(lowered.sizes);
    v.grid = lowered.grid;
    ready.variants.push_back(std::move(v));
  }
  if (!options_.target) ready.in_place = in_place_pairs(group);  // devices may count on buffers that are apart
  return &groups_.emplace(std::move(key), std::move(ready)).first->second;
}

int KernelSet::add_tile(tile::Function function, const std::string& name) {
  function.name = "k";
  auto [it, fresh] = numbers_.emplace(ssa::print(function), size());
  if (!fresh) return it->second;
  runtime::KernelEntry entry;
  entry.symbol = fmt::format("{}_{}", name, size());
  key_.add(it->first);
  key_.add(entry.symbol);
  function.name = entry.symbol;
  for (const ssa::Buffer& buffer : function.buffers) {
    if (buffer.space == ssa::Space::Memory) entry.written.push_back(buffer.written);
  }
  entries_.push_back(std::move(entry));
  tiles_.push_back(std::move(function));
  return it->second;
}

Result<kernel::Function> lower_program(const tile::Function& program, const Machine& machine, const std::string& name) {
  kernel::Function function = WEFT_TRY(kernel::lower_simd(program, machine));
  WEFT_TRY(kernel::expand_math(function));
  function.name = name;
  ssa::eliminate_dead(function);
  return function;
}

Result<kernel::Function> KernelSet::lower(int k) const { return lower_program(tiles_[k], machine(), entries_[k].symbol); }

Result<std::vector<kernel::Function>> KernelSet::lower_all() const {
  std::vector<kernel::Function> functions;
  for (int k = 0; k < size(); ++k) {
    functions.push_back(WEFT_TRY(lower(k)));
    dump("kernel", functions.back().name, ssa::print(functions.back()));
  }
  return functions;
}

Result<void> KernelSet::build_for_target() {
  std::vector<kernel::Function> functions;
  {
    Clock clock(report_.kernel_ms);
    functions = WEFT_TRY(lower_all());
  }
  if (wants("source")) dump("source", "module", WEFT_TRY(options_.target->print(functions)));
  Clock clock(report_.llvm_ms);
  device_code_ = WEFT_TRY(options_.target->build(functions));
  return {};
}

Result<void> KernelSet::dump_code() const {
  if (!wants("kernel") && !wants("llvm") && !wants("asm")) return {};
  const std::vector<kernel::Function> functions = WEFT_TRY(lower_all());
  std::vector<codegen::Entry> listed;
  for (const auto& function : functions) listed.push_back({&function, function.name});
  const codegen::TargetDesc target = codegen::target_for(options_.machine);
  if (wants("llvm")) dump("llvm", "module", WEFT_TRY(codegen::emit_llvm_ir(listed, target)));
  if (wants("asm")) dump("asm", "module", WEFT_TRY(codegen::emit_assembly(listed, target)));
  return {};
}

// Largest first, each to the part with the least to do. Which kernel is where depends on nothing but the kernels.
void KernelSet::divide() {
  constexpr int kKernelsPerPart = 4, kMostParts = 8;  // an object costs about 1 ms before its first kernel
  const auto parts = static_cast<std::size_t>(std::clamp(size() / kKernelsPerPart, 1, kMostParts));
  std::vector<std::int64_t> cost, load(parts, 0);
  for (const auto& function : tiles_) cost.push_back(code_size(function, function.body));
  std::vector<int> order(tiles_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost[a] > cost[b]; });
  parts_.resize(parts);
  for (int k : order) {
    const std::size_t part = std::min_element(load.begin(), load.end()) - load.begin();
    parts_[part].kernels.push_back(k);
    load[part] += cost[k];
  }
}

Result<void> KernelSet::compile(Part& part) {
  std::vector<kernel::Function> functions;
  {
    Clock clock(part.kernel_ms);
    for (int k : part.kernels) {
      functions.push_back(WEFT_TRY(lower(k)));
      entries_[k].scratch = codegen::scratch_bytes(functions.back());
    }
  }
  std::vector<codegen::Entry> listed;
  for (const auto& function : functions) listed.push_back({&function, function.name});
  codegen::Options how;
  how.timing = &part.timing;
  part.object = WEFT_TRY(codegen::compile_object(listed, codegen::target_for(options_.machine), how));
  return {};
}

bool KernelSet::find_cached() {
  if (!options_.cache) return false;
  auto found = cache_.get(key_);
  if (!found || found->empty() || !unpack_scratch(found->back(), entries_)) return false;
  found->pop_back();
  objects_ = std::move(*found);
  return report_.from_cache = true;
}

Result<void> KernelSet::prepare(std::vector<Job>& jobs) {
  if (tiles_.empty()) return {};
  if (options_.target) return build_for_target();
  WEFT_TRY(dump_code());
  if (!options_.code || find_cached()) return {};
  divide();
  for (Part& part : parts_) jobs.push_back([this, &part] { return compile(part); });
  return {};
}

Result<void> KernelSet::finish() {
  if (tiles_.empty() || options_.target || !options_.code) return {};
  for (Part& part : parts_) {
    report_.kernel_ms += part.kernel_ms;
    report_.llvm_ms += part.timing.emit_ms + part.timing.codegen_ms;
    objects_.push_back(std::move(part.object));
  }
  if (!report_.from_cache && options_.cache) {
    objects_.push_back(packed_scratch(entries_));
    cache_.put(key_, objects_);
    objects_.pop_back();
  }
  Clock clock(report_.link_ms);
  auto code = std::make_shared<codegen::LoadedCode>(WEFT_TRY(codegen::LoadedCode::load(objects_)));
  for (runtime::KernelEntry& entry : entries_) entry.fn = WEFT_TRY(code->lookup(entry.symbol));
  code_ = code;
  return {};
}

}  // namespace weft::compiler
