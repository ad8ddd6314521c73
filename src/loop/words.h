// Sums of products of narrow elements, several of which fill a word of 32 bits: processors have units that take all steps
// of a word at once.
#pragma once

#include <optional>

#include "loop/group.h"

namespace weft::loop {

// Steps of one word in a sum of products a * b: four of bytes, one without sign and one with it, in i32; two of bf16 in
// f32. 0: none are taken at once.
int steps_in_word(DType a, DType b, DType sum);

// `update t sum= wide(a) * wide(b)` of elements that are taken in words.
struct WordProduct {
  ExprId a = -1, b = -1;  // as they stand in the product, before they are widened
  int steps = 0;          // of a word
};
std::optional<WordProduct> word_product(const Group& group, const Stmt& update);

// Whether the loop may take the steps of one word: a sum over as many.
bool in_word(const Group& group, LoopId loop);

}  // namespace weft::loop
