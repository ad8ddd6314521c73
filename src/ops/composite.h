// Composites: operators bigger than a prim, as functions that build prims. Each stands in the graph as a named region,
// which a schedule may claim whole; otherwise it is inlined.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/builder.h"

namespace weft::ops {

using graph::Builder;
using graph::ValueId;

// Builds the body with a builder of its own, over inputs of the operands' types, and wraps it as composite `name`.
using Body = std::function<std::vector<ValueId>(Builder& b, const std::vector<ValueId>& inputs)>;
std::vector<ValueId> composite(Builder& b, const std::string& name, const std::vector<ValueId>& operands,
                               const Body& body);
ValueId composite1(Builder& b, const std::string& name, const std::vector<ValueId>& operands,
                   const std::function<ValueId(Builder& b, const std::vector<ValueId>& inputs)>& body);

}  // namespace weft::ops
