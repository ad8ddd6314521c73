#include "loop/bytes.h"

namespace weft::loop {

std::optional<ByteProduct> byte_product(const Group& g, const Stmt& s) {
  if (s.kind != Stmt::Kind::Update || s.combine != Combine::Sum) return std::nullopt;
  const Expr& product = g.expr(s.value);
  if (product.op != Op::Mul || product.dtype != DType::I32) return std::nullopt;
  const Expr &a = g.expr(product.args[0]), &b = g.expr(product.args[1]);
  if (a.op != Op::Cast || b.op != Op::Cast) return std::nullopt;
  const DType left = g.expr(a.args[0]).dtype, right = g.expr(b.args[0]).dtype;
  const bool bytes = (left == DType::U8 && right == DType::I8) || (left == DType::I8 && right == DType::U8);
  return bytes ? std::optional(ByteProduct{a.args[0], b.args[0]}) : std::nullopt;
}

bool in_word(const Group& g, LoopId loop) {
  return g.loops[loop].kind == LoopKind::Reduce && g.loops[loop].extent.is(kBytesInWord);
}

}  // namespace weft::loop
