// What a kernel's arguments are once they are checked. Private to api/tile.
#pragma once

#include <memory>
#include <span>

#include "api/tile/recorder.h"

namespace weft::tile {

struct Kernel::State {
  std::string name;
  std::function<void(Recorder&)> body;
  Recorded recorded;
};

// Arguments in the order of the function's buffers and sizes. With print()s, their count and words follow.
struct Bound {
  std::vector<BufferView> buffers;
  std::vector<std::int64_t> sizes;
  std::int32_t printed = 0;
  std::vector<std::int64_t> words;
};
Result<std::unique_ptr<Bound>> bind(const Kernel::State& kernel, std::int64_t grid, const Arguments& arguments);

Error no_kernel();  // of a handle that was never filled
// The error of a failed check.
Error failed_check(const Kernel::State& kernel, std::int64_t code);

// Writes what print()s left, by program and in each in order, to stderr.
void show_prints(const Recorded& recorded, const Bound& bound);
void show_print(const PrintSite& site, std::int64_t program, const std::function<Scalar(std::int64_t)>& element);

}  // namespace weft::tile
