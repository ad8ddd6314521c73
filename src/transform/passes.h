// The passes of the pipeline; each in the .cpp of its name.
#pragma once

#include "transform/pipeline.h"

namespace weft::transform {

Result<graph::Graph> inline_composites(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> sink_constants(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> fold_shapes(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> multiply_bytes(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> look_up(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> requantise(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> fold_constants(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> simplify(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> fold_scale(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> split_axes(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> split_contractions(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> choose_layouts(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> split_products(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> split_sums(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> narrow_weights(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> round_products(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> split_phases(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> winograd(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> expand_data_sizes(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> widen(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> merge_equal(const graph::Graph& graph, const PassOptions& options);
Result<graph::Graph> remove_dead(const graph::Graph& graph, const PassOptions& options);

// The product that a dot or convolution of f32 is, whose weights are not batched.
std::optional<ProductShape> product_shape(const graph::Graph& graph, const graph::Node& node);
// The same as a sum of products of so many parts of each operand; nothing where the operands or sizes are not what that takes.
std::optional<ProductShape> split_shape(const graph::Graph& graph, const graph::Node& node, int parts);

}  // namespace weft::transform
