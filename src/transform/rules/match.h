// What rules of simplify() are made of: each looks at a node about to be copied and says what it equals, or nothing.
// A rule holds for every value, NaN, infinities and the integers' extremes included; dtypes and shapes are kept.
#pragma once

#include <optional>
#include <vector>

#include "graph/rewrite.h"

namespace weft::transform {

using Answer = std::optional<graph::ValueId>;
using Axes = std::vector<std::int64_t>;

inline bool is_byte(DType t) { return t == DType::U8 || t == DType::I8; }

struct Rule {
  const char* name;
  Answer (*apply)(const graph::RewriteContext&);
};

// Tables by family, each in its own file.
const std::vector<Rule>& arithmetic_rules();
const std::vector<Rule>& choice_rules();
const std::vector<Rule>& movement_rules();
const std::vector<Rule>& index_rules();

// The node that defines an operand in the new graph, when it is of that op.
const graph::Node* operand_def(const graph::RewriteContext& c, std::size_t operand, graph::Op op);
const graph::Type& result_type(const graph::RewriteContext& c);

// The one element that all elements equal: a constant of one element, through broadcasts and reshapes.
const Tensor* splat_of(const graph::Graph& g, graph::ValueId v);
bool is_splat(const graph::RewriteContext& c, graph::ValueId v, double value);  // -0 is not 0

// An integer value as base + the sum of coefficients times the index along each axis.
struct Affine {
  Dim base;
  Shape coefficients;
};
std::optional<Affine> affine_of(const graph::Graph& g, graph::ValueId v);

}  // namespace weft::transform
