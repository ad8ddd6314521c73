#include "schedule/choices.h"

#include "schedule/attention.h"

namespace weft::schedule {

loop::Choices lowering_choices(const Machine& machine) {
  return {attention_chooser(machine), machine.dot2s() > 0 && !machine.has_groups()};
}

}  // namespace weft::schedule
