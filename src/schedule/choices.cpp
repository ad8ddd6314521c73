#include "schedule/choices.h"

#include "schedule/attention.h"

namespace weft::schedule {

loop::Choices lowering_choices(const Machine& machine) {
  // The other half of the first-level cache is for what passes by.
  const std::int64_t kept = machine.has_groups() ? 0 : machine.l1_bytes / 2;
  return {attention_chooser(machine), machine.dot2s() > 0 && !machine.has_groups(), kept};
}

}  // namespace weft::schedule
