// Blocks of keys that add nothing to a row of attention, because a mask excludes them. Private to loop/lower.
//
// A score is what the mask gives to a product of 0, plus at most the product times a constant factor. So a block's scores
// are at most
//   masks[row, block] = max over its keys of the score of a product of 0, and over kRowsTogether rows,   plus
//   reach             = |factor| size max |query| keys[block],   keys[block] = max |key|.
// Where that is further below the row's present maximum than exp() reaches, its probabilities are 0, and 0 times its values
// is 0 if they are finite; where they are not, keys[block] is NaN and nothing is left out. Two small kernels compute both
// arrays before attention runs. Blocks are what is left out at once: parts of those that share a maximum, where these have
// parts.
//
// Where masks are what the scores are made of last, the first kernel also says which blocks no mask changes: plain[row, block]
// is 1, and the masks need not be read again.
#pragma once

#include <optional>
#include <vector>

#include "loop/lower/emit.h"

namespace weft::loop {

constexpr std::int64_t kRowsTogether = 16;

struct AttentionSkips {
  std::vector<std::size_t> mask_axes;  // of the scores but for the keys: those that the masks depend on
  double factor = 1;                   // of the product in a score
  std::int64_t count = 0;              // keys that are left out at once
  graph::ValueId unmasked = -1;        // the scores before the masks; -1: something else is done after them
  graph::ValueId masks = 0, keys = 0, plain = 0;  // scratch, f32
  Shape masks_shape, keys_shape;       // the last axis counts what is left out at once; plain's shape is that of masks
};

// None: no mask that differs from row to row, or one that is as large as the scores are.
std::optional<AttentionSkips> attention_skips(const EmitContext& context, const Unit& unit);

// The two kernels.
std::vector<Step> emit_attention_skips(const EmitContext& context, const Unit& unit, const AttentionSkips& skips);

// Whether a block must be walked over, of a row whose largest score so far is `most`.
ExprId block_needed(Group& g, ExprId most, ExprId mask, ExprId reach);

// Coordinates of an operand of one of attention's products, for a row at `at`: batch and free axes as the row has them,
// `inner` along the contracted axis, `free` along the right side's free one.
std::vector<ExprId> attention_coordinates(const graph::Graph& graph, const Attention& a, graph::NodeId dot, int side,
                                          const std::vector<ExprId>& at, ExprId inner, ExprId free);

}  // namespace weft::loop
