// Decoding one token with a paged cache: keys and values of a sequence lie in pages anywhere in a pool, and a table says
// where. A program owns one head of one sequence and gathers pages through the table. (Kwon et al., PagedAttention, 2023.)
#include "example.h"

namespace examples {
namespace {

template <int D, int Page>
void decode(In<float> q, In<float> keys, In<float> values, In<std::int32_t> table, In<std::int32_t> lengths, Out<float> out,
            Int heads, Int pages) {
  const Tile sequence = program_id() / heads, head = program_id() % heads;
  const Tile length = cast<std::int64_t>(load(lengths, sequence));
  const Tile d = lanes(D);
  const Tile query = load(q, program_id() * D + d) * (1.0f / std::sqrt(float{D}));
  Var most = full<float>(1, 1, -1e30f), total = zeros<float>(1, 1), acc = zeros<float>(1, D);
  for (Tile page : range(0, (length + (Page - 1)) / Page)) {
    const Tile place = cast<std::int64_t>(load(table, sequence * pages + page));  // in the pool: [page, head, token, d]
    const Tile at = ((place * heads + head) * Page + rows(Page)) * D + d;
    const Tile inside = page * Page + rows(Page) < length;
    const Tile score = where(inside, sum(load(keys, at, inside) * query), -1e30f);  // [Page, 1]
    const Tile higher = maximum(most, max(score, 0));
    const Tile weight = exp(score - higher), shrink = exp(most - higher);
    total = total * shrink + sum(weight, 0);
    acc = acc * shrink + sum(weight * load(values, at, inside), 0);
    most = higher;
  }
  store(out, program_id() * D + d, acc / total);
}

}  // namespace

bool paged_attention(const weft::CompileOptions& options) {
  constexpr int D = 32, kPage = 16;
  const int heads = 4, pages = 5, pool = 12;
  std::vector<std::int32_t> lengths = {70, 17, 1}, table = {3, 11, 0, 7, 5, 2, 9, -1, -1, -1, 4, -1, -1, -1, -1};
  const int sequences = static_cast<int>(lengths.size());
  std::vector<float> q = random_floats(sequences * heads * D, 1), keys = random_floats(pool * heads * kPage * D, 2),
                     values = random_floats(pool * heads * kPage * D, 3), out(q.size()), expected(q.size());
  std::int64_t tokens = 0;
  for (int s = 0; s < sequences; ++s) {
    tokens += lengths[s];
    for (int h = 0; h < heads; ++h) {
      const float* query = &q[(s * heads + h) * D];
      double total = 0;
      std::vector<double> sum(D);
      for (int t = 0; t < lengths[s]; ++t) {
        const int at = ((table[s * pages + t / kPage] * heads + h) * kPage + t % kPage) * D;
        double score = 0;
        for (int d = 0; d < D; ++d) score += double{query[d]} * keys[at + d];
        const double weight = std::exp(score / std::sqrt(double{D}));
        total += weight;
        for (int d = 0; d < D; ++d) sum[d] += weight * values[at + d];
      }
      for (int d = 0; d < D; ++d) expected[(s * heads + h) * D + d] = static_cast<float>(sum[d] / total);
    }
  }
  return report({.kernel = kernel("paged_attention", decode<D, kPage>), .grid = sequences * heads,
                 .arguments = {q, keys, values, table, lengths, out, heads, pages}, .result = out, .expected = expected,
                 .least_bytes = 4LL * (2 * tokens * heads * D + 2 * static_cast<std::int64_t>(q.size()))}, options);
}

}  // namespace examples
