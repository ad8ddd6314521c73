// The functions of wgpu-native that are used, opened at run time: Weft is built and starts without it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "target/webgpu/api.h"

namespace weft::target::webgpu {

struct Library {
#define FUNCTION(name, result, parameters) result(*name) parameters = nullptr;
#include "target/webgpu/functions.def"
#undef FUNCTION
  Instance* instance = nullptr;
};

// Opened once: WEFT_WEBGPU_LIBRARY, or libwgpu_native.so where libraries are. Unsupported without it.
Result<const Library*> library();

// What an adapter says of itself.
struct Facts {
  std::string name;
  bool is_cpu = false;
  bool has_i64 = false, has_f64 = false, has_i64_atomics = false;
  Limits limits{};
};

struct Found {
  Adapter* adapter;  // the library's, never given back
  Facts facts;
};
// All adapters, listed once; none is an error that says what to install.
Result<const std::vector<Found>*> adapters();

std::string text_of(Text text);

}  // namespace weft::target::webgpu
