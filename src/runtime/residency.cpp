#include "runtime/residency.h"

#include "runtime/touched.h"

namespace weft::runtime {
namespace {

class Walk {
 public:
  Walk(const Plan& plan, bool stays) : plan_(plan), stays_(stays), states_(initial_residency(plan)) {
    for (SlotId s : plan.inputs) {
      if (stays) states_[s].is_on_device();
    }
  }

  std::vector<Transfer> run() {
    for (step_ = 0; step_ < plan_.steps.size(); ++step_) {
      const PlanStep& step = plan_.steps[step_];
      if (const auto* launch = std::get_if<Launch>(&step)) {
        visit(*launch);
        continue;
      }
      const auto* scan = std::get_if<ScanStep>(&step);
      if (const auto copies = scan ? staying(*scan) : std::nullopt) {
        visit(*scan, *copies);
        continue;
      }
      if (stays_) continue;  // a copy between results, which are one place
      const Touched slots = touched(step);
      for (SlotId s : slots.reads) read_here(s);
      for (SlotId s : slots.writes) wrote_here(s);
    }
    for (SlotId s : plan_.outputs) {
      if (!stays_) read_here(s);
    }
    return std::move(found_);
  }

 private:
  void visit(const Launch& launch) {
    const std::vector<bool>& written = plan_.kernel(launch, launch.variants.back()).written;
    for (std::size_t b = 0; b < launch.buffers.size(); ++b) {
      const SlotId slot = base_of(plan_, launch.buffers[b]);
      if (launch.on_device) {
        use_there(slot, written[b]);
      } else if (plan_.slots[slot].kind != Slot::Kind::Constant) {
        read_here(slot);
      }
    }
    for (std::size_t b = 0; !launch.on_device && b < launch.buffers.size(); ++b) {
      if (written[b]) wrote_here(launch.buffers[b]);
    }
  }

  void visit(const ScanStep& scan, const std::vector<int>& copies) {
    for (const auto* list : {&scan.carried, &scan.xs, &scan.captures}) {
      for (SlotId s : *list) use_there(s, false);
    }
    for (SlotId s : scan.ys) use_there(s, true);
    for (std::size_t c = 0; c < copies.size(); ++c) {
      copies[c] < 0 ? use_there(scan.carried_out[c], true) : wrote_here(scan.carried_out[c]);
    }
  }

  void use_there(SlotId slot, bool written) {
    slot = base_of(plan_, slot);
    if (plan_.slots[slot].kind == Slot::Kind::Constant) return;
    if (states_[slot].use_on_device(written)) found_.push_back({step_, slot, true});
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
  const bool stays_;
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

std::optional<std::vector<int>> staying(const ScanStep& scan) {
  const Plan& body = *scan.body;
  if (!body.device) return std::nullopt;
  for (SlotId s : body.outputs) {
    if (body.slots[s].kind != Slot::Kind::Output) return std::nullopt;
  }
  const auto carried = static_cast<std::int32_t>(scan.carried.size());
  std::vector<int> copies(scan.carried.size(), -1);
  for (const PlanStep& step : body.steps) {
    const auto* launch = std::get_if<Launch>(&step);
    if (launch != nullptr && launch->on_device) continue;
    const auto* copy = std::get_if<CopyStep>(&step);
    if (copy == nullptr) return std::nullopt;
    const Slot &from = body.slots[copy->from], &to = body.slots[copy->to];
    if (from.kind != Slot::Kind::Output || to.kind != Slot::Kind::Output) return std::nullopt;
    if (from.index >= carried || to.index < carried || copies[from.index] >= 0) return std::nullopt;
    copies[from.index] = to.index - carried;
  }
  return copies;
}

std::vector<Transfer> transfers(const Plan& plan, bool stays) {
  return plan.device ? Walk(plan, stays).run() : std::vector<Transfer>();
}

}  // namespace weft::runtime
