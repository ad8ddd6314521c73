// The places of a `--target`.
#pragma once

#include <string_view>
#include <vector>

namespace weft::target {

std::vector<std::string_view> split(std::string_view places);  // "opencl+cpu": {"opencl", "cpu"}

}  // namespace weft::target
