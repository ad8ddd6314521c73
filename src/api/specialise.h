// Models made for given inputs. Two sizes with names of their own that meet in one operator are taken to be equal; where
// inputs say that one of them is 1 and what holds it is spread out, the model is imported once more for their sizes: by a
// program's run when it meets such inputs first, by the command line before it compiles.
// And when a model cannot be compiled for every size at all, it is loaded for the sizes of these inputs, and when that is
// not enough, for the values of the small ones (axes, shapes, factors) as well.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "frontend/onnx/import/import.h"
#include "weft/weft.h"

namespace weft {

struct Specialised {
  Model model;
  std::string note;  // what was fixed, for the user; empty when nothing was
};

// How the model is to be imported for these inputs, in the order of its own: nothing when it takes them as it is, or when
// no size is left to fix.
std::optional<onnx::ImportOptions> fixing(const Model& model, const std::vector<Tensor>& inputs);

// Small enough to be compiled in by value: a scalar or a short list.
bool is_setting(const Tensor& tensor);

// `inputs` by name; those that are missing are left as they are.
Result<Specialised> load_for(const std::string& path, LoadOptions options, const std::map<std::string, Tensor>& inputs);

}  // namespace weft
