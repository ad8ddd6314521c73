// Products of loop counters become sums that the loop carries.
#pragma once

#include "kernel/kernel.h"

namespace weft::kernel::simt {

void carry_products(Function& function);

}  // namespace weft::kernel::simt
