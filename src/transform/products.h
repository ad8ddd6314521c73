// How products with constant weights may be computed, as whoever knows the machine decides.
#pragma once

#include <functional>

#include "base/dim.h"

namespace weft::transform {

// result[rows, lanes] = sum over depth, of f32.
struct ProductShape {
  Dim rows;
  std::int64_t depth = 0, lanes = 0;
  bool pairs = false;  // the last axis that is summed over comes in whole pairs
};

enum class ProductForm : std::uint8_t {
  Wide,     // as it is
  Weights,  // the weights are kept in bf16
  Pairs,    // both operands are rounded to bf16, and multiplied in pairs
};

struct ProductChoice {
  ProductForm form = ProductForm::Wide;
  double gain = 1;  // how many times faster than as it is
};
using ProductChooser = std::function<ProductChoice(const ProductShape& shape, const DimFacts& facts)>;

}  // namespace weft::transform
