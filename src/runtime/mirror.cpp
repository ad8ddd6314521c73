#include "runtime/mirror.h"

#include <algorithm>

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

SlotId Mirror::base(SlotId slot) const {
  while (plan_.slots[slot].kind == Slot::Kind::Alias) slot = plan_.slots[slot].index;
  return slot;
}

Result<void> Mirror::begin(std::int64_t arena_bytes) {
  if (arena_bytes > arena_bytes_) {
    arena_.reset();
    arena_ = WEFT_TRY(plan_.device->allocate(arena_bytes));
    arena_bytes_ = arena_bytes;
  }
  codes_.assign(plan_.steps.size(), 0);
  const auto status_bytes = static_cast<std::int64_t>(codes_.size() * sizeof(std::int32_t));
  if (!status_) status_ = WEFT_TRY(plan_.device->allocate(status_bytes));
  WEFT_TRY(plan_.device->upload({status_.get(), 0}, codes_.data(), status_bytes));
  states_.resize(plan_.slots.size());
  for (std::size_t s = 0; s < states_.size(); ++s) {
    const Slot::Kind kind = plan_.slots[s].kind;
    states_[s].host = kind == Slot::Kind::Input || kind == Slot::Kind::Constant;
    states_[s].device = false;
  }
  return {};
}

Result<DeviceSpan> Mirror::on_device(SlotId slot, const Place& place, bool written) {
  slot = base(slot);
  const Slot& s = plan_.slots[slot];
  if (s.kind == Slot::Kind::Constant) return constants_.get(plan_, s.index);
  State& state = states_[slot];
  if (!state.device) {
    if (place.arena_offset >= 0) {
      state.at = {arena_.get(), place.arena_offset};
    } else if (state.own_bytes < place.bytes) {
      state.own = WEFT_TRY(plan_.device->allocate(place.bytes));
      state.own_bytes = place.bytes;
    }
    if (place.arena_offset < 0) state.at = {state.own.get(), 0};
    if (state.host && place.bytes > 0) WEFT_TRY(plan_.device->upload(state.at, place.host, place.bytes));
    state.device = true;
  }
  if (written) state.host = false;
  return DeviceSpan{state.at.memory, state.at.offset, place.bytes};
}

bool Mirror::only_on_device(SlotId slot) const {
  const State& state = states_[base(slot)];
  return state.device && !state.host;
}

Result<void> Mirror::to_host(SlotId slot, void* host, std::int64_t bytes) {
  State& state = states_[base(slot)];
  if (bytes > 0) WEFT_TRY(plan_.device->download(host, state.at, bytes));
  state.host = true;
  return {};
}

void Mirror::host_wrote(SlotId slot) {
  State& state = states_[base(slot)];
  state.host = true;
  state.device = false;
}

Result<Mirror::Failure> Mirror::failed() {
  WEFT_TRY(plan_.device->download(codes_.data(), {status_.get(), 0}, static_cast<std::int64_t>(codes_.size() * sizeof(std::int32_t))));
  const auto at = std::find_if(codes_.begin(), codes_.end(), [](std::int32_t code) { return code != 0; });
  if (at == codes_.end()) return Failure{};
  return Failure{static_cast<std::int32_t>(at - codes_.begin()), *at};
}

}  // namespace weft::runtime
