#include "runtime/mirror.h"

#include <algorithm>

#include "runtime/touched.h"

namespace weft::runtime {

Result<DeviceSpan> DeviceConstants::get(const Plan& plan, std::int32_t index) {
  std::lock_guard<std::mutex> lock(mutex_);
  memory_.resize(plan.constants.size());
  auto& memory = memory_[index];
  const Tensor& data = plan.constants[index];
  const auto bytes = static_cast<std::int64_t>(data.byte_size());
  if (!memory) {
    auto made = WEFT_TRY(plan.device->allocate(bytes));
    WEFT_TRY(plan.device->upload({made.get(), 0}, data.data(), bytes));
    memory = std::move(made);
  }
  return DeviceSpan{memory.get(), 0, bytes};
}

Result<void> Mirror::begin(std::int64_t arena_bytes, const Kept* kept) {
  if (arena_bytes > arena_bytes_) {
    arena_.reset();  // before the larger one is there
    arena_bytes_ = -1;
    arena_ = WEFT_TRY(plan_.device->allocate(arena_bytes));
    arena_bytes_ = arena_bytes;
  }
  if (kept == nullptr || !kept->resumed) {
    codes_.assign(plan_.steps.size(), 0);
    const auto status_bytes = static_cast<std::int64_t>(codes_.size() * sizeof(std::int32_t));
    if (!status_) status_ = WEFT_TRY(plan_.device->allocate(status_bytes));
    WEFT_TRY(plan_.device->upload({status_.get(), 0}, codes_.data(), status_bytes));
  }
  states_.resize(plan_.slots.size());
  const std::vector<Residency> residency = initial_residency(plan_);
  for (std::size_t s = 0; s < states_.size(); ++s) {
    states_[s].residency = residency[s];
    states_[s].kept = false;
  }
  if (kept == nullptr) return {};
  for (std::size_t i = 0; i < kept->inputs.size(); ++i) keep(plan_.inputs[i], kept->inputs[i], true);
  for (std::size_t o = 0; o < kept->outputs.size(); ++o) keep(plan_.outputs[o], kept->outputs[o], false);
  return {};
}

void Mirror::keep(SlotId slot, DeviceSpan at, bool is_there) {
  if (at.memory == nullptr) return;
  State& state = states_[slot];
  state.at = at;
  state.kept = true;
  if (is_there) state.residency.is_on_device();
}

Result<DeviceSpan> Mirror::at_least(Owned& owned, std::int64_t bytes) {
  if (owned.bytes < bytes) {
    owned.memory = WEFT_TRY(plan_.device->allocate(bytes));
    owned.bytes = bytes;
  }
  return DeviceSpan{owned.memory.get(), 0, bytes};
}

Result<DeviceSpan> Mirror::spare(SlotId slot, std::int64_t bytes) { return at_least(states_[base_of(plan_, slot)].spare, bytes); }

Result<DeviceSpan> Mirror::on_device(SlotId slot, const Place& place, bool written) {
  slot = base_of(plan_, slot);
  const Slot& s = plan_.slots[slot];
  if (s.kind == Slot::Kind::Constant) return constants_.get(plan_, s.index);
  State& state = states_[slot];
  if (!state.residency.on_device() && !state.kept) {
    state.at = place.arena_offset >= 0 ? DeviceSpan{arena_.get(), place.arena_offset} : WEFT_TRY(at_least(state.own, place.bytes));
  }
  if (state.residency.use_on_device(written) && place.bytes > 0) {
    WEFT_TRY(plan_.device->upload(state.at, place.host, place.bytes));
  }
  return DeviceSpan{state.at.memory, state.at.offset, place.bytes};
}

bool Mirror::only_on_device(SlotId slot) const { return states_[base_of(plan_, slot)].residency.only_on_device(); }

Result<void> Mirror::to_host(SlotId slot, void* host, std::int64_t bytes) {
  State& state = states_[base_of(plan_, slot)];
  if (state.residency.use_on_host() && bytes > 0) WEFT_TRY(plan_.device->download(host, state.at, bytes));
  return {};
}

void Mirror::host_wrote(SlotId slot) { states_[base_of(plan_, slot)].residency.wrote_on_host(); }

Result<Mirror::Failure> Mirror::failed() {
  WEFT_TRY(plan_.device->download(codes_.data(), {status_.get(), 0}, static_cast<std::int64_t>(codes_.size() * sizeof(std::int32_t))));
  const auto at = std::find_if(codes_.begin(), codes_.end(), [](std::int32_t code) { return code != 0; });
  if (at == codes_.end()) return Failure{};
  return Failure{static_cast<std::int32_t>(at - codes_.begin()), *at};
}

}  // namespace weft::runtime
