// The machine code of a plan's kernels, by number. What only some sizes take may be made when a run first takes it.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "runtime/kernel_abi.h"

namespace weft::runtime {

class KernelCode {
 public:
  virtual ~KernelCode() = default;
  // Makes what is missing of these. May be called from several threads at once.
  virtual Result<void> require(std::span<const std::int32_t> kernels) = 0;
  virtual KernelFn function(std::int32_t kernel) const = 0;  // null: not made yet
};

}  // namespace weft::runtime
