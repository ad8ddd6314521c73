// A histogram: programs meet in the counts, so they add by atomics. Lanes of one program may meet there too.
#include "example.h"

namespace examples {

bool histogram(const weft::CompileOptions& options) {
  constexpr int kBlock = 64, kBins = 32;
  const Kernel count = kernel("histogram", [](In<float> x, InOut<float> counts, Int n) {
    const Tile i = program_id() * kBlock + lanes(kBlock), inside = i < n;
    const Tile bin = cast<std::int64_t>(floor((load(x, i, inside) + 1.0f) * (kBins / 2.0f)));
    atomic_add(counts, minimum(maximum(bin, 0), kBins - 1), 1.0f, inside);
  });

  const int n = 20'000;
  std::vector<float> x = random_floats(n), counts(kBins), expected(kBins);
  for (const float v : x) {
    const int bin = static_cast<int>(std::floor((v + 1.0f) * (kBins / 2.0f)));
    expected[std::min(std::max(bin, 0), kBins - 1)] += 1;
  }
  return report({.kernel = count, .grid = (n + kBlock - 1) / kBlock, .arguments = {x, counts, n}, .result = counts,
                 .expected = expected, .tolerance = 0, .least_bytes = 4LL * (n + 2 * kBins)}, options);
}

}  // namespace examples
