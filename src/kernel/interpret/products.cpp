#include "kernel/interpret/products.h"

namespace weft::kernel {
namespace {

constexpr int kLeastSwizzled = 4, kSwizzledFrom = 7;  // bits of an address

}  // namespace

std::int64_t block_element(const ssa::BlockImm& block, DType dtype, std::int64_t index, int other, int step) {
  const int bytes = bits(dtype) / 8, in_row = (1 << block.row) / bytes;
  // Eight rows of in_row elements, the next eight a stride on.
  const int row = block.turned ? step : other, along = block.turned ? other % in_row : step;
  std::int64_t at = index * bytes + along * bytes;
  at += (std::int64_t{row % kPartRows} << block.row) + (std::int64_t{row / kPartRows} << block.stride);
  if (block.turned) at += std::int64_t{other / in_row} << block.leading;
  const std::int64_t mask = (1 << (block.row - kLeastSwizzled)) - 1;
  at ^= (at >> kSwizzledFrom & mask) << kLeastSwizzled;
  return at / bytes;
}

SumElement sum_element(int thread, int n) {
  const int warp = thread / kMatrixWarp, lane = thread % kMatrixWarp;
  return {warp * kMatrixRows + lane / 4 + n / 2 % 2 * 8, n / 4 * kMatrixColumns + lane % 4 * 2 + n % 2};
}

SumElement left_element(int thread, int n, int word) {
  const int warp = thread / kMatrixWarp, lane = thread % kMatrixWarp, part = n / word;
  return {warp * kMatrixRows + lane / 4 + part % 2 * 8, (lane % 4 + part / 2 * 4) * word + n % word};
}

void multiply(const Product& p, bool whole, const std::function<double(int buffer, std::int64_t element)>& read) {
  std::vector<double> left = p.left, right;
  if (left.empty()) {
    for (const std::int64_t e : p.a) left.push_back(read(p.blocks.left.buffer, e));
  }
  for (const std::int64_t e : p.b) right.push_back(read(p.blocks.right.buffer, e));
  for (int thread = 0; thread < kGroupThreads; ++thread) {
    for (int n = 0; n < p.columns / 2; ++n) {
      const SumElement at = sum_element(thread, n);
      const double *row = &left[static_cast<std::size_t>(at.row * p.steps)], *column = &right[static_cast<std::size_t>(at.column * p.steps)];
      double products = 0;
      for (int k = 0; k < p.steps; ++k) products += row[k] * column[k];
      Scalar& sum = p.sum->lanes[static_cast<std::size_t>(thread * p.columns / 2 + n)];
      if (whole) sum = {0, static_cast<std::int32_t>(sum.i + static_cast<std::int64_t>(products))};
      else sum = {static_cast<float>(sum.f + products), 0};
    }
  }
}

}  // namespace weft::kernel
