// The calling convention of compiled kernels, shared by the code generators and the runtime.
#pragma once

#include <cstdint>

namespace weft::runtime {

// What a check says that fails because a fast form of an operator met a value it is not exact for (an infinity, a NaN):
// the run is to be repeated by a program without such forms.
inline constexpr const char* kNeedsExact = "a value is not one that a fast form of a product is exact for";

// Runs programs begin <= pid < end of the grid.
//   buffers  one pointer per Memory buffer of the kernel function, in order
//   sizes    its i64 size parameters
//   scratch  private memory for OnChip buffers, 64-byte aligned, at least as large as the kernel states
//   status   0 before the run; a failed check stores its code (> 0) there; threads may race, any code may win
using KernelFn = void (*)(void* const* buffers, const std::int64_t* sizes, std::int64_t begin, std::int64_t end,
                          void* scratch, std::int64_t* status);

// On devices: where buffers begin, in bytes, for kernels of several threads, whose widest accesses are that wide.
inline constexpr std::int64_t kGroupBufferAlign = 16;

}  // namespace weft::runtime
