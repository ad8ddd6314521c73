#include "runtime/touched.h"

namespace weft::runtime {
namespace {

struct Visitor {
  Touched found;

  void read(const std::vector<SlotId>& list) { found.reads.insert(found.reads.end(), list.begin(), list.end()); }
  void write(const std::vector<SlotId>& list) { found.writes.insert(found.writes.end(), list.begin(), list.end()); }

  void operator()(const Launch& s) { read(s.buffers); }
  void operator()(const HostCall& s) {
    read(s.inputs);
    write(s.outputs);
  }
  void operator()(const BranchStep& s) {
    read({s.condition});
    read(s.inputs);
    write(s.outputs);
  }
  void operator()(const LoopStep& s) {
    read({s.trip_count, s.condition});
    for (const auto* list : {&s.carried, &s.captures}) read(*list);
    for (const auto* list : {&s.carried_out, &s.stacked_out}) write(*list);
  }
  void operator()(const ScanStep& s) {
    for (const auto* list : {&s.carried, &s.xs, &s.captures}) read(*list);
    for (const auto* list : {&s.carried_out, &s.ys}) write(*list);
  }
  void operator()(const CopyStep& s) {
    read({s.from});
    write({s.to});
  }
};

}  // namespace

Touched touched(const PlanStep& step) {
  Visitor visitor;
  std::visit(visitor, step);
  return std::move(visitor.found);
}

SlotId base_of(const Plan& plan, SlotId slot) {
  while (plan.slots[slot].kind == Slot::Kind::Alias) slot = plan.slots[slot].index;
  return slot;
}

}  // namespace weft::runtime
