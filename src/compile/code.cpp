#include "compile/code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "compile/clock.h"
#include "kernel/math/math.h"
#include "kernel/simd/lower.h"
#include "kernel/simt/lower.h"

namespace weft::compiler {

namespace {

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

// Largest first, each to the part with the least to do. Which kernel is where depends on nothing but the kernels.
std::vector<Code::Part> divided(const std::vector<std::int32_t>& kernels, const Tiles& tiles, bool quick) {
  // An object costs about 1 ms before its first kernel; kernels dealt out by size are even enough in few parts.
  constexpr std::size_t kKernelsPerPart = 4, kFewParts = 2, kKernelsOfManyParts = 12, kMostParts = 16;
  const std::size_t few = std::min(kFewParts, kernels.size() / kKernelsPerPart);
  std::vector<Code::Part> parts(std::clamp<std::size_t>(std::max(few, kernels.size() / kKernelsOfManyParts), 1, kMostParts));
  for (Code::Part& part : parts) part.quick = quick;
  std::vector<std::pair<std::int64_t, std::int32_t>> order;
  for (std::int32_t k : kernels) order.emplace_back(code_size(tiles[k], tiles[k].body), k);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::int64_t> load(parts.size(), 0);
  for (const auto& [cost, k] : order) {
    const std::size_t part = std::min_element(load.begin(), load.end()) - load.begin();
    parts[part].kernels.push_back(k);
    load[part] += cost;
  }
  return parts;
}

}  // namespace

namespace {

Result<kernel::Function> spread_out(const tile::Function& program, const Machine& machine, std::string& how) {
  if (!machine.has_groups()) return kernel::lower_simd(program, machine);
  Result<kernel::Function> lowered = kernel::lower_simt(program, machine);
  if (lowered.ok()) how = fmt::format("{} threads", lowered->threads);
  if (lowered.ok() || lowered.error().kind() != ErrorKind::Unsupported) return lowered;
  how = fmt::format("one thread: {}", lowered.error().what());
  return kernel::lower_simd(program, machine);
}

}  // namespace

Result<kernel::Function> lower_program(const tile::Function& program, const Machine& machine, const std::string& name,
                                       std::string* spread) {
  std::string how;
  kernel::Function function = WEFT_TRY(spread_out(program, machine, how));
  if (spread != nullptr) *spread = std::move(how);
  WEFT_TRY(kernel::expand_math(function, kernel::math_units(machine)));
  function.name = name;
  ssa::eliminate_dead(function);
  return function;
}

namespace {

Code::Setup with_quick(Code::Setup setup) {
  setup.quick.resize(setup.symbols.size(), 0);
  return setup;
}

}  // namespace

Code::Code(Setup setup)
    : setup_(with_quick(std::move(setup))),
      functions_(setup_.symbols.size()),
      launches_(setup_.symbols.size()),
      again_([this](std::int32_t kernel) { make_again(kernel); }) {
  for (auto& function : functions_) function.store(nullptr, std::memory_order_relaxed);
}

CodeTimes Code::times() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return times_;
}

runtime::CacheKey Code::key_of(const Batch& batch) const {
  runtime::CacheKey key;
  key.add(setup_.key);
  key.add(fmt::format("{}", fmt::join(batch.kernels, " ")));
  return key;
}

bool Code::find_cached(Batch& batch) const {
  if (!setup_.cache) return false;
  auto found = cache_.get(key_of(batch));
  if (!found || found->empty()) return false;
  batch.objects = std::move(*found);
  return batch.from_cache = true;
}

Result<void> Code::compile(Part& part, const Tiles& tiles) const {
  std::vector<kernel::Function> functions;
  {
    Clock clock(part.kernel_ms);
    for (std::int32_t k : part.kernels) functions.push_back(WEFT_TRY(lower_program(tiles[k], setup_.machine, setup_.symbols[k])));
  }
  std::vector<codegen::Entry> listed;
  for (const auto& function : functions) listed.push_back({&function, function.name});
  codegen::Options how;
  how.timing = &part.timing;
  how.quick = part.quick;
  part.object = WEFT_TRY(codegen::compile_object(listed, codegen::target_for(setup_.machine), how));
  return {};
}

Result<void> Code::begin(Batch& batch, std::vector<Job>& jobs) {
  if (batch.kernels.empty() || find_cached(batch)) return {};
  const std::shared_ptr<const Tiles> tiles = WEFT_TRY(setup_.tiles());
  std::vector<std::int32_t> quick, well;
  for (std::int32_t k : batch.kernels) (is_quick(k) ? quick : well).push_back(k);
  for (const auto* some : {&well, &quick}) {
    if (some->empty()) continue;
    for (Part& part : divided(*some, *tiles, some == &quick)) batch.parts.push_back(std::move(part));
  }
  for (Part& part : batch.parts) jobs.push_back([this, &part, tiles] { return compile(part, *tiles); });
  return {};
}

Result<void> Code::finish(Batch& batch) {
  if (batch.kernels.empty()) return {};
  CodeTimes times;
  for (Part& part : batch.parts) {
    times.kernel_ms += part.kernel_ms;
    times.emit_ms += part.timing.emit_ms;
    times.codegen_ms += part.timing.codegen_ms;
    batch.objects.push_back(std::move(part.object));
  }
  times.kernels = static_cast<int>(batch.kernels.size());
  times.from_cache = batch.from_cache ? times.kernels : 0;
  if (!batch.from_cache && setup_.cache) cache_.put(key_of(batch), batch.objects);
  std::vector<runtime::KernelFn> functions;
  auto loaded = [&]() -> Result<codegen::LoadedCode> {
    if (!setup_.load) return codegen::LoadedCode();
    Clock clock(times.link_ms);
    codegen::LoadedCode code = WEFT_TRY(codegen::LoadedCode::load(batch.objects));
    for (std::int32_t k : batch.kernels) functions.push_back(WEFT_TRY(code.lookup(setup_.symbols[k])));
    return code;
  }();
  if (!loaded.ok()) return loaded.error();
  std::lock_guard<std::mutex> lock(mutex_);
  if (setup_.load) loaded_.push_back(std::move(*loaded));
  for (std::size_t i = 0; i < functions.size(); ++i) {
    functions_[batch.kernels[i]].store(functions[i], std::memory_order_release);
  }
  times_.kernel_ms += times.kernel_ms;
  times_.emit_ms += times.emit_ms;
  times_.codegen_ms += times.codegen_ms;
  times_.link_ms += times.link_ms;
  times_.kernels += times.kernels;
  times_.from_cache += times.from_cache;
  return {};
}

void Code::count(std::int32_t kernel) const {
  const std::int32_t often = setup_.quick[kernel];
  std::atomic<std::int32_t>& launches = launches_[kernel];
  if (launches.load(std::memory_order_relaxed) > often) return;
  if (launches.fetch_add(1, std::memory_order_relaxed) == often) again_.add(kernel);
}

void Code::settle() {
  for (std::size_t k = 0; k < launches_.size(); ++k) {
    const std::int32_t often = setup_.quick[k], launches = launches_[k].load(std::memory_order_relaxed);
    if (often == 0 || launches == 0 || launches > often) continue;
    if (launches_[k].exchange(often + 1, std::memory_order_relaxed) <= often) again_.add(static_cast<std::int32_t>(k));
  }
  again_.finish();
}

// Where that fails, the code that is there stays.
void Code::make_again(std::int32_t kernel) {
  try {
    const auto tiles = setup_.tiles();
    Part part;
    part.kernels = {kernel};
    if (!tiles.ok() || !compile(part, **tiles).ok()) return;
    auto code = codegen::LoadedCode::load(std::span(&part.object, 1));
    if (!code.ok()) return;
    const auto function = code->lookup(setup_.symbols[kernel]);
    if (!function.ok()) return;
    std::lock_guard<std::mutex> lock(mutex_);
    loaded_.push_back(std::move(*code));
    functions_[kernel].store(*function, std::memory_order_release);
  } catch (const std::exception&) {
  }
}

std::vector<std::int32_t> Code::missing(std::span<const std::int32_t> kernels) const {
  std::vector<std::int32_t> result;
  for (std::int32_t k : kernels) {
    if (functions_[k].load(std::memory_order_acquire) == nullptr) result.push_back(k);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Result<void> Code::require(std::span<const std::int32_t> kernels) {
  if (missing(kernels).empty()) return {};
  std::lock_guard<std::mutex> one(making_);
  Batch batch;
  batch.kernels = missing(kernels);
  if (batch.kernels.empty()) return {};
  double wall_ms = 0;
  {
    Clock clock(wall_ms);
    std::vector<Job> jobs;
    WEFT_TRY(begin(batch, jobs));
    WEFT_TRY(run_jobs(jobs, setup_.jobs));
    WEFT_TRY(finish(batch));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  times_.wall_ms += wall_ms;
  return {};
}

}  // namespace weft::compiler
