#include "loop/words.h"

namespace weft::loop {
namespace {

constexpr int kWordBits = 32;

}  // namespace

int steps_in_word(DType a, DType b, DType sum) {
  const bool bytes = (a == DType::U8 && b == DType::I8) || (a == DType::I8 && b == DType::U8);
  const bool known = (bytes && sum == DType::I32) || (a == DType::BF16 && b == DType::BF16 && sum == DType::F32);
  return known ? kWordBits / bits(a) : 0;
}

std::optional<WordProduct> word_product(const Group& g, const Stmt& s) {
  if (s.kind != Stmt::Kind::Update || s.combine != Combine::Sum) return std::nullopt;
  const Expr& product = g.expr(s.value);
  if (product.op != Op::Mul) return std::nullopt;
  const Expr &a = g.expr(product.args[0]), &b = g.expr(product.args[1]);
  if (a.op != Op::Cast || b.op != Op::Cast) return std::nullopt;
  const int steps = steps_in_word(g.expr(a.args[0]).dtype, g.expr(b.args[0]).dtype, product.dtype);
  return steps > 0 ? std::optional(WordProduct{a.args[0], b.args[0], steps}) : std::nullopt;
}

bool in_word(const Group& g, LoopId loop) {
  const Dim& extent = g.loops[loop].extent;
  return g.loops[loop].kind == LoopKind::Reduce && (extent.is(2) || extent.is(4));
}

}  // namespace weft::loop
