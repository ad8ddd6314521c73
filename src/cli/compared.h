// A default for an integer that a model asks about: a sampling rate, a mode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontend/onnx/model.h"

namespace weft::cli {

// What the graph compares this input with, where that is one integer and the graph says which: a value the model knows.
std::optional<std::int64_t> compared_with(const onnx::Graph& graph, const std::string& input);

}  // namespace weft::cli
