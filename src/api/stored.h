// Models and programs in the compile cache: known by the content of their file and what was asked for, so that a process
// that meets them again neither reads the graph nor compiles.
#pragma once

#include <optional>
#include <string>

#include "api/state.h"

namespace weft {

// What tells a file from all others; empty when it cannot be read.
std::string content_of(const std::string& path);

// What Model promises without the file having been read. Nothing where it is not stored, or its inputs' sizes need the graph.
bool find_model(Model::State& model);
void store_model(const Model::State& model);

// A program ready to run; `model` is asked for its graph only when a run needs code that was never made.
bool find_program(Program::State& program, const CompileOptions& options, const compiler::Options& how);
void store_program(const Program::State& program, const CompileOptions& options, const compiler::Options& how);

}  // namespace weft
