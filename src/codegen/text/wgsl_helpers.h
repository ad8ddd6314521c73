// Functions that WGSL text calls for what the language spells otherwise or leaves open: division by zero, shifts, casts
// that clamp, half floats.
#pragma once

#include <string>
#include <string_view>

namespace weft::codegen::text {

// Those that the text calls, and what these call in turn, each after what it needs.
std::string wgsl_helpers(std::string_view text);

}  // namespace weft::codegen::text
