// Random bits as arithmetic: Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011). The
// meaning, word by word, is that of `random_bits` in docs/semantics.md.
#include <array>

#include "loop/lower/reader.h"

namespace weft::loop {

namespace {

constexpr int kRounds = 10;
constexpr std::int64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
constexpr std::int64_t kKeySteps[] = {0x9E3779B9, 0xBB67AE85};

struct Words {
  Group& g;
  ExprId low(ExprId v) const { return g.cast(v, DType::U32); }
  ExprId high(ExprId v) const {
    return low(g.scalar(ScalarOp::Shr, DType::U64, {v, g.constant_i64(32, DType::U64)}));
  }
  ExprId product(ExprId word, std::int64_t by) const {
    return g.scalar(ScalarOp::Mul, DType::U64, {g.cast(word, DType::U64), g.constant_i64(by, DType::U64)});
  }
  ExprId op(ScalarOp o, ExprId a, ExprId b) const { return g.scalar(o, DType::U32, {a, b}); }
};

}  // namespace

ExprId random_bits(Group& g, DType t, ExprId element, ExprId key, ExprId stream) {
  const Words w{g};
  ExprId n = g.cast(element, DType::U64);
  std::array<ExprId, 4> counter{w.low(n), w.high(n), w.low(stream), w.high(stream)};
  std::array<ExprId, 2> round_key{w.low(key), w.high(key)};
  for (int round = 0; round < kRounds; ++round) {
    ExprId a = w.product(counter[0], kMultipliers[0]), b = w.product(counter[2], kMultipliers[1]);
    counter = {w.op(ScalarOp::Xor, w.op(ScalarOp::Xor, w.high(b), counter[1]), round_key[0]), w.low(b),
               w.op(ScalarOp::Xor, w.op(ScalarOp::Xor, w.high(a), counter[3]), round_key[1]), w.low(a)};
    for (int i = 0; i < 2; ++i) {
      round_key[i] = w.op(ScalarOp::Add, round_key[i], g.constant_i64(kKeySteps[i], DType::U32));
    }
  }
  if (t == DType::U32) return counter[0];
  ExprId high = g.scalar(ScalarOp::Shl, DType::U64, {g.cast(counter[1], DType::U64), g.constant_i64(32, DType::U64)});
  return g.scalar(ScalarOp::Or, DType::U64, {high, g.cast(counter[0], DType::U64)});
}

}  // namespace weft::loop
