// What is chosen when the command line leaves sizes open. The least sizes come first; a model may refuse them (a size
// that must divide, a total that holds another size, a window that must fit), then small other ones are tried.
#pragma once

#include "api/specialise.h"
#include "cli/model.h"

namespace weft::cli {

// Sizes for these dimensions, in the order in which they are tried; those left out are the least that is allowed.
std::vector<Sizes> size_choices(const std::vector<std::string>& names);

// For a model that is refused for every size, as `why` says: loaded for the first default sizes and values of its small
// inputs that it also runs with. Gives `why`, which names what to give, when none will do.
Result<Specialised> load_by_defaults(const ModelArguments& arguments, const LoadOptions& options, const Error& why);

struct Fitting {
  std::vector<Tensor> inputs, outputs;
};
// Inputs that the program runs with, and what it makes of them. Where none is a file, and the program refuses the
// default sizes, others are tried; the first error stands when it refuses them all.
Result<Fitting> run_fitting(const Model& model, const Program& program, const ModelArguments& arguments);

}  // namespace weft::cli
