// Loading for given inputs: when a model cannot be compiled for every size, it is compiled for the sizes of these inputs,
// and when that is not enough, for the values of the small ones (axes, shapes, factors) as well.
#pragma once

#include <map>
#include <string>

#include "weft/weft.h"

namespace weft {

struct Specialised {
  Model model;
  std::string note;  // what was fixed, for the user; empty when nothing was
};

// Small enough to be compiled in by value: a scalar or a short list.
bool is_setting(const Tensor& tensor);

// `inputs` by name; those that are missing are left as they are.
Result<Specialised> load_for(const std::string& path, LoadOptions options, const std::map<std::string, Tensor>& inputs);

}  // namespace weft
