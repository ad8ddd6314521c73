// Runs whose kernels are on a device: launches there, and values brought back when the host asks for them.
#include <algorithm>

#include "runtime/hostops/hostops.h"
#include "runtime/run.h"
#include "runtime/touched.h"

namespace weft::runtime {

Result<void> Run::prepare_device() {
  if (!plan_.device) return {};
  if (!memory_->mirror) memory_->mirror = std::make_unique<Mirror>(plan_, executable_.state_->device_constants);
  return memory_->mirror->begin(layout_->memory.total, kept_);
}

Result<std::int64_t> Run::bytes(SlotId slot) const {
  return slot_bytes(plan_.slots[slot], WEFT_TRY(shape(slot)));
}

Result<void> Run::launch_on_device(const Launch& launch, const LaunchSizes& sizes, std::size_t k) {
  if (sizes.grid == 0) {  // results without elements exist all the same
    for (SlotId s : launch.buffers) WEFT_TRY(make(s));
    return {};
  }
  const std::int32_t number = launch.variants[sizes.variant].kernel;
  const KernelEntry& kernel = plan_.device_kernels[number];
  std::vector<DeviceSpan> buffers;
  for (std::size_t b = 0; b < launch.buffers.size(); ++b) buffers.push_back(WEFT_TRY(on_device(launch.buffers[b], kernel.written[b])));
  DeviceLaunch what;
  what.code = plan_.device_code.get();
  what.kernel = number;
  what.buffers = buffers;
  what.sizes = sizes.sizes;
  what.grid = sizes.grid;
  what.status = memory_->mirror->status(k);
  WEFT_TRY(plan_.device->launch(what));
  return options_.profile ? plan_.device->finish() : Result<void>();
}

Result<DeviceSpan> Run::on_device(SlotId slot, bool written) {
  slot = base_of(plan_, slot);
  Mirror::Place place;
  if (plan_.slots[slot].kind != Slot::Kind::Constant) place.bytes = WEFT_TRY(bytes(slot));
  if (plan_.slots[slot].kind == Slot::Kind::Temp && layout_->known[slot]) place.arena_offset = layout_->offsets[slot];
  place.host = memory_->pointers[slot];
  return memory_->mirror->on_device(slot, place, written);
}

// Whether the result lies where the device keeps it.
bool Run::is_kept(SlotId output) const {
  const Slot& slot = plan_.slots[output];
  return kept_ != nullptr && slot.kind == Slot::Kind::Output && kept_->outputs[slot.index].memory != nullptr;
}

Result<void> Run::launch_between(const Launch& launch, const LaunchSizes& sizes) {
  for (SlotId s : launch.buffers) WEFT_TRY(fetch(s));  // of what is written too: it may be a part
  WEFT_TRY(launch_here(launch, sizes));
  const KernelEntry& kernel = plan_.kernels[launch.variants[sizes.variant].kernel];
  for (std::size_t b = 0; b < launch.buffers.size(); ++b) {
    if (kernel.written[b]) host_wrote(launch.buffers[b]);
  }
  return {};
}

// To be called before the host reads the slot's bytes.
Result<void> Run::fetch(SlotId slot) {
  if (!plan_.device || is_string(plan_.slots[slot].dtype)) return {};
  slot = base_of(plan_, slot);
  if (!memory_->mirror->only_on_device(slot)) return {};
  return memory_->mirror->to_host(slot, WEFT_TRY(make(slot)), WEFT_TRY(bytes(slot)));
}

void Run::host_wrote(SlotId slot) {
  if (plan_.device) memory_->mirror->host_wrote(slot);
}

Result<void> Run::check_device() {
  if (!plan_.device) return {};
  const Mirror::Failure failure = WEFT_TRY(memory_->mirror->failed());
  return failure.step < 0 ? Result<void>() : failed_check(std::get<Launch>(plan_.steps[failure.step]), failure.code);
}

Result<void> Run::finish_device() {
  if (!plan_.device) return {};
  if (kept_ == nullptr) WEFT_TRY(check_device());  // else once, after all iterations
  for (SlotId s : plan_.outputs) {
    if (!is_kept(s)) WEFT_TRY(fetch(s));
  }
  return {};
}

}  // namespace weft::runtime
