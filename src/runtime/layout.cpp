// What a run needs to know of its sizes, worked out once per binding of the symbols.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/hostops/hostops.h"
#include "runtime/pool.h"
#include "runtime/run.h"
#include "runtime/touched.h"

namespace weft::runtime {

namespace {

constexpr std::size_t kRememberedLayouts = 16;
constexpr std::size_t kMaxSlotBytes = std::size_t{1} << 46;  // sums of many stay below 2^63

Error shape_error(const Plan& plan, std::size_t input, std::size_t axis, std::string expected, std::int64_t found) {
  return user_error("shape-mismatch", fmt::format("dimension {} of the input has the wrong size", axis))
      .at(plan.input_names[input])
      .expected(std::move(expected))
      .found(std::to_string(found));
}

Result<void> check_range(const Plan& plan, const std::string& symbol, std::int64_t value) {
  auto it = plan.facts.symbols().find(symbol);
  if (it == plan.facts.symbols().end()) return {};
  const SymbolRange& r = it->second;
  if (value < r.lo || value > r.hi) {
    return user_error("size-out-of-range", fmt::format("dimension '{}' is outside the range this was compiled for", symbol))
        .expected(fmt::format("{} <= {} <= {}", r.lo, symbol, r.hi))
        .found(std::to_string(value));
  }
  if (value % r.multiple_of != 0) {
    return user_error("size-not-a-multiple", fmt::format("dimension '{}' does not divide as compiled for", symbol))
        .expected(fmt::format("a multiple of {}", r.multiple_of))
        .found(std::to_string(value));
  }
  return {};
}

// When each slot's memory is first and last touched, aliases counted as what they stand for; -1: never.
struct Life {
  std::vector<int> first, last;

  explicit Life(const Plan& plan) : first(plan.slots.size(), -1), last(plan.slots.size(), -1) {
    for (std::size_t k = 0; k < plan.steps.size(); ++k) {
      const Touched slots = touched(plan.steps[k]);
      for (const auto* list : {&slots.reads, &slots.writes}) {
        for (SlotId s : *list) touch(plan, s, static_cast<int>(k));
      }
    }
  }

 private:
  void touch(const Plan& plan, SlotId slot, int step) {
    if (slot < 0) return;
    const SlotId b = base_of(plan, slot);
    if (first[b] < 0) first[b] = step;
    last[b] = step;
  }
};

// By slot: the slot whose memory it takes over; itself where it has memory of its own.
std::vector<SlotId> memory_owners(const Plan& plan, const Life& life, const std::vector<std::int64_t>& bytes) {
  std::vector<SlotId> owner(plan.slots.size());
  std::iota(owner.begin(), owner.end(), SlotId{0});
  for (std::size_t k = 0; k < plan.steps.size(); ++k) {
    const auto* launch = std::get_if<Launch>(&plan.steps[k]);
    if (!launch) continue;
    std::vector<SlotId> buffers;
    for (SlotId s : launch->buffers) buffers.push_back(base_of(plan, s));
    auto temp_at = [&](SlotId s, int when) { return plan.slots[s].kind == Slot::Kind::Temp && when == static_cast<int>(k); };
    std::vector<SlotId> taken;
    for (const InPlace& pair : launch->in_place) {
      const SlotId out = buffers[pair.output], in = buffers[pair.input];
      const bool possible = temp_at(out, life.first[out]) && temp_at(in, life.last[in]) && bytes[out] == bytes[in] &&
                            std::count(buffers.begin(), buffers.end(), in) == 1 &&
                            std::count(buffers.begin(), buffers.end(), out) == 1 && owner[out] == out &&
                            std::count(taken.begin(), taken.end(), in) == 0;
      if (!possible) continue;
      owner[out] = owner[in];
      taken.push_back(in);
    }
  }
  return owner;
}

MemoryPlan plan_temps(const Plan& plan, const std::vector<std::int64_t>& bytes, std::vector<std::int64_t>& offsets) {
  const Life life(plan);
  const std::vector<SlotId> owner = memory_owners(plan, life, bytes);
  std::vector<LiveBlock> blocks;
  std::vector<int> block_of(plan.slots.size(), -1);
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    if (plan.slots[s].kind != Slot::Kind::Temp || life.first[s] < 0) continue;
    int& block = block_of[owner[s]];
    if (block < 0) {
      block = static_cast<int>(blocks.size());
      blocks.push_back({bytes[s], life.first[s], life.last[s]});
    }
    blocks[block].first = std::min(blocks[block].first, life.first[s]);
    blocks[block].last = std::max(blocks[block].last, life.last[s]);
  }
  MemoryPlan memory = plan_memory(blocks);
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    if (block_of[owner[s]] >= 0) offsets[s] = memory.offsets[block_of[owner[s]]];
  }
  return memory;
}

// Work below this goes to one thread, and each further thread gets as much: waking one costs microseconds.
constexpr double kWorkPerThread = 20e3;  // ns
constexpr double kFlopsPerNs = 16, kBytesPerNs = 8;

// How many threads the modelled work of a launch keeps busy.
int worthwhile_threads(const Plan& plan, const Launch& launch, const Bindings& bindings) {
  if (launch.info < 0) return kMaxThreads;
  const KernelInfo& info = plan.infos[launch.info];
  auto flops = info.flops.evaluate(bindings), bytes = info.bytes_compulsory.evaluate(bindings);
  if (!flops.ok() || !bytes.ok()) return kMaxThreads;
  double ns = static_cast<double>(*flops) / kFlopsPerNs + static_cast<double>(*bytes) / kBytesPerNs;
  return static_cast<int>(std::clamp(ns / kWorkPerThread, 1.0, double{kMaxThreads}));
}

// Evaluates unless a symbol is not bound yet.
std::optional<Result<std::int64_t>> evaluate_if_bound(const Dim& d, const Bindings& bindings) {
  for (const std::string& s : d.symbols()) {
    if (!bindings.count(s)) return std::nullopt;
  }
  return d.evaluate(bindings);
}

}  // namespace

Result<std::int64_t> slot_bytes(const Slot& slot, const std::vector<std::int64_t>& shape) {
  const auto too_large = [&] { return user_error("tensor-too-large", "an intermediate value is too large").at(slot.name).found(shape_str(shape)); };
  std::int64_t elements = 1;
  for (std::int64_t d : shape) {
    if (__builtin_mul_overflow(elements, d, &elements)) return too_large();
  }
  const auto bytes = storage_bytes(slot.dtype, elements);
  if (!bytes || *bytes > kMaxSlotBytes) return too_large();
  return static_cast<std::int64_t>(*bytes);
}

Result<void> check_requirements(const Plan& plan, const Bindings& bindings) {
  for (const Requirement& r : plan.requirements) {
    auto left = evaluate_if_bound(r.left, bindings), right = evaluate_if_bound(r.right, bindings);
    if (!left || !right) continue;
    std::int64_t a = WEFT_TRY(std::move(*left)), b = WEFT_TRY(std::move(*right));
    if (a != b) {
      return user_error("shape-mismatch", fmt::format("the sizes {} and {} must be equal", r.left.str(), r.right.str()))
          .at(r.origin)
          .expected(std::to_string(b))
          .found(std::to_string(a));
    }
  }
  return {};
}

Result<Bindings> bind_shapes(const Plan& plan, const std::vector<std::vector<std::int64_t>>& shapes,
                             const Bindings& outer) {
  if (shapes.size() != plan.inputs.size()) {
    return user_error("wrong-input-count", "the number of inputs is wrong")
        .expected(std::to_string(plan.inputs.size()))
        .found(std::to_string(shapes.size()));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape& declared = plan.slots[plan.inputs[i]].shape;
    if (declared.size() == shapes[i].size()) continue;
    return user_error("rank-mismatch", "the input has the wrong number of dimensions")
        .at(plan.input_names[i])
        .expected(str(declared))
        .found(shape_str(shapes[i]));
  }
  Bindings bindings;
  auto each = [&](auto&& visit) -> Result<void> {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Shape& declared = plan.slots[plan.inputs[i]].shape;
      for (std::size_t d = 0; d < declared.size(); ++d) WEFT_TRY(visit(i, d, declared[d], shapes[i][d]));
    }
    return {};
  };
  WEFT_TRY(each([&](std::size_t, std::size_t, const Dim& d, std::int64_t size) -> Result<void> {
    if (auto symbol = d.as_symbol()) bindings.emplace(*symbol, size);
    return {};
  }));
  bindings.insert(outer.begin(), outer.end());
  WEFT_TRY(each([&](std::size_t, std::size_t, const Dim& d, std::int64_t size) -> Result<void> {
    if (!d.is_const()) solve_symbol(d, size, bindings);
    return {};
  }));
  for (const auto& [symbol, value] : bindings) {
    if (!outer.count(symbol)) WEFT_TRY(check_range(plan, symbol, value));
  }
  WEFT_TRY(each([&](std::size_t i, std::size_t axis, const Dim& d, std::int64_t size) -> Result<void> {
    auto stated = d.evaluate(bindings);
    if (stated.ok() && *stated == size) return {};
    std::string expected = d.str();
    if (stated.ok() && !d.is_const()) expected += " = " + std::to_string(*stated);
    return shape_error(plan, i, axis, expected, size);
  }));
  return bindings;
}

Result<std::shared_ptr<Executable::Layout>> Executable::layout(const Bindings& bindings) const {
  auto layout = std::make_shared<Layout>();
  layout->bindings = bindings;
  const Plan& plan = *plan_;
  std::size_t slots = plan.slots.size();
  layout->known.assign(slots, false);
  layout->shapes.resize(slots);
  layout->offsets.assign(slots, 0);
  std::vector<std::int64_t> bytes(slots, 0);
  for (std::size_t s = 0; s < slots; ++s) {
    const Slot& slot = plan.slots[s];
    bool bound = true;
    for (const Dim& d : slot.shape) {
      for (const std::string& symbol : d.symbols()) bound = bound && bindings.count(symbol) != 0;
    }
    if (!bound) continue;
    layout->known[s] = true;
    layout->shapes[s] = WEFT_TRY(evaluate(slot.shape, bindings));
    bytes[s] = WEFT_TRY(slot_bytes(slot, layout->shapes[s]));
  }
  WEFT_TRY(check_requirements(plan, bindings));
  layout->memory = plan_temps(plan, bytes, layout->offsets);
  layout->launches.resize(plan.steps.size());
  for (std::size_t k = 0; k < plan.steps.size(); ++k) {
    if (const auto* launch = std::get_if<Launch>(&plan.steps[k])) {
      layout->launches[k] = WEFT_TRY(resolve_launch(plan, *launch, bindings));
    }
  }
  return layout;
}

Result<LaunchSizes> resolve_launch(const Plan& plan, const Launch& launch, const Bindings& bindings) {
  LaunchSizes resolved;
  for (std::size_t v = 0; v < launch.variants.size(); ++v) {
    const LaunchVariant& variant = launch.variants[v];
    if (variant.guarded) {
      auto guard = evaluate_if_bound(variant.guard, bindings);
      if (!guard) return resolved;
      std::int64_t value = WEFT_TRY(std::move(*guard));
      if (value < variant.lo || value > variant.hi) continue;
    }
    auto grid = evaluate_if_bound(variant.grid, bindings);
    if (!grid) return resolved;
    resolved.grid = WEFT_TRY(std::move(*grid));
    resolved.sizes.clear();
    for (const Dim& d : variant.sizes) {
      auto size = evaluate_if_bound(d, bindings);
      if (!size) return LaunchSizes{};
      resolved.sizes.push_back(WEFT_TRY(std::move(*size)));
    }
    resolved.variant = static_cast<int>(v);
    resolved.threads = worthwhile_threads(plan, launch, bindings);
    return resolved;
  }
  return internal_error("no variant of a kernel takes these sizes");
}

Result<MemoryStats> Executable::memory(const std::vector<std::vector<std::int64_t>>& input_shapes) const {
  Bindings bindings = WEFT_TRY(bind_shapes(*plan_, input_shapes));
  auto made = WEFT_TRY(layout(bindings));
  return MemoryStats{made->memory.total, made->memory.bound};
}

namespace {

// The code of what these sizes take, all at once.
Result<void> require_kernels(const Plan& plan, const std::vector<LaunchSizes>& launches) {
  if (!plan.code) return {};
  std::vector<std::int32_t> kernels;
  for (std::size_t k = 0; k < launches.size(); ++k) {
    const auto* launch = std::get_if<Launch>(&plan.steps[k]);
    if (launch && !launch->on_device && launches[k].variant >= 0) kernels.push_back(launch->variants[launches[k].variant].kernel);
  }
  return plan.code->require(kernels);
}

}  // namespace

Result<std::shared_ptr<const Executable::Layout>> Executable::find_layout(const std::vector<std::int64_t>& key,
                                                                          const std::vector<Tensor>& inputs,
                                                                          const Bindings& outer) const {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    auto& layouts = state_->layouts;
    for (auto it = layouts.rbegin(); it != layouts.rend(); ++it) {
      if ((*it)->key != key) continue;
      if (it != layouts.rbegin()) std::rotate(it.base() - 1, it.base(), layouts.end());
      return layouts.back();
    }
  }
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  Bindings bindings = WEFT_TRY(bind_shapes(*plan_, shapes, outer));
  auto made = WEFT_TRY(layout(bindings));
  made->key = key;
  WEFT_TRY(require_kernels(*plan_, made->launches));
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->layouts.size() >= kRememberedLayouts) state_->layouts.erase(state_->layouts.begin());
  state_->layouts.push_back(made);
  return std::shared_ptr<const Layout>(std::move(made));
}

}  // namespace weft::runtime
