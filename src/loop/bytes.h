// Sums of products of bytes, which processors have units for: four steps at once.
#pragma once

#include <optional>

#include "loop/group.h"

namespace weft::loop {

constexpr std::int64_t kBytesInWord = 4;

// `update t sum= i32(a) * i32(b)` in i32, where one of a and b is u8 and the other i8.
struct ByteProduct {
  ExprId a = -1, b = -1;  // as they stand in the product, before they are widened
};
std::optional<ByteProduct> byte_product(const Group& group, const Stmt& update);

// Whether the loop takes the steps of one word: a sum over four.
bool in_word(const Group& group, LoopId loop);

}  // namespace weft::loop
