#include "runtime/residency.h"

#include "runtime/touched.h"

namespace weft::runtime {
namespace {

class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), states_(initial_residency(plan)) {}

  std::vector<Transfer> run() {
    for (step_ = 0; step_ < plan_.steps.size(); ++step_) {
      const PlanStep& step = plan_.steps[step_];
      if (const auto* launch = std::get_if<Launch>(&step)) {
        visit(*launch);
        continue;
      }
      const Touched slots = touched(step);
      for (SlotId s : slots.reads) read_here(s);
      for (SlotId s : slots.writes) wrote_here(s);
    }
    for (SlotId s : plan_.outputs) read_here(s);
    return std::move(found_);
  }

 private:
  void visit(const Launch& launch) {
    const std::vector<bool>& written = plan_.kernel(launch, launch.variants.back()).written;
    for (std::size_t b = 0; b < launch.buffers.size(); ++b) {
      const SlotId slot = base_of(plan_, launch.buffers[b]);
      if (plan_.slots[slot].kind == Slot::Kind::Constant) continue;
      if (!launch.on_device) {
        read_here(slot);
      } else if (states_[slot].use_on_device(written[b])) {
        found_.push_back({step_, slot, true});
      }
    }
    for (std::size_t b = 0; !launch.on_device && b < launch.buffers.size(); ++b) {
      if (written[b]) wrote_here(launch.buffers[b]);
    }
  }

  void read_here(SlotId slot) {
    if (slot < 0) return;
    slot = base_of(plan_, slot);
    if (states_[slot].use_on_host()) found_.push_back({step_, slot, false});
  }

  void wrote_here(SlotId slot) {
    if (slot >= 0) states_[base_of(plan_, slot)].wrote_on_host();
  }

  const Plan& plan_;
  std::vector<Residency> states_;
  std::vector<Transfer> found_;
  std::size_t step_ = 0;
};

}  // namespace

std::vector<Residency> initial_residency(const Plan& plan) {
  std::vector<Residency> states;
  for (const Slot& slot : plan.slots) states.emplace_back(slot.kind == Slot::Kind::Input || slot.kind == Slot::Kind::Constant);
  return states;
}

std::vector<Transfer> transfers(const Plan& plan) { return plan.device ? Walk(plan).run() : std::vector<Transfer>(); }

}  // namespace weft::runtime
