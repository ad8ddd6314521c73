// How products with constant weights may be computed, as whoever knows the machine decides.
#pragma once

#include <functional>

#include "base/dim.h"

namespace weft::transform {

// result[runs rows, lanes] = sum over depth, of f32.
struct ProductShape {
  Dim rows;
  std::int64_t depth = 0, lanes = 0;
  std::int64_t words = 0;  // pairs that the depth comes in, filled up where that can be; 0: it does not
  int parts = 1;  // of each operand, multiplied in pairs: all products of parts but the least are summed
  Dim runs = 1;   // of rows: tiles end where they do
  std::int64_t taps = 1;  // that the depth is made of: rows of the operand beside each other
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
