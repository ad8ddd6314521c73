// Inputs made from the command line: --input NAME=SPEC and --dim NAME=SIZE.
//   SPEC: FILE.npy, a number, random, zeros, ones, range:LO:HI (uniform in [LO, HI)).
// What is not given is random with a fixed seed: floats in [-1, 1), integers in [0, 2). Named sizes that neither --dim
// nor a file gives are 1, or the smallest that is allowed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace weft::cli {

using Sizes = std::map<std::string, std::int64_t>;

Result<Sizes> parse_dims(const std::vector<std::string>& arguments);  // "batch=8"
Result<std::vector<Tensor>> make_inputs(const Model& model, const std::vector<std::string>& arguments, const Sizes& dims);

// One input by a SPEC that is no file.
Result<Tensor> make_tensor(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                           const std::string& spec);

}  // namespace weft::cli
