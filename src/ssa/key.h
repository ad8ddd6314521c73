// What tells functions apart.
#pragma once

#include <string>

#include "ssa/function.h"

namespace weft::ssa {

// Equal for functions that print alike but for their names; bytes to compare, quicker made than text.
std::string key(const Function& function);

}  // namespace weft::ssa
