#include <fmt/format.h>

#include "graph/interpret/eval.h"
#include "runtime/hostops/hostops.h"

namespace weft::graph::interpreter {
namespace {

Result<Tensor> iota(Eval& e) {
  const DType t = e.attrs().dtype(Attr::DType);
  const std::int64_t axis = e.attrs().integer(Attr::Axis);
  const Sizes shape = WEFT_TRY(evaluate(e.attrs().dims(Attr::Shape), e.bindings));
  Tensor y = WEFT_TRY(result_tensor(t, shape));
  const std::int64_t inner = count_of(shape, axis + 1, shape.size());
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const std::int64_t index = i / inner % shape[axis];
    if (is_float(t)) {
      y.set_f64(i, int_to_float(t, index, false));
    } else {
      y.set_i64(i, index);
    }
  }
  return y;
}

// Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011).
struct Philox {
  std::uint32_t counter[4];
  std::uint32_t key[2];
  void run() {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
      const std::uint32_t next[4] = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0],
                                     static_cast<std::uint32_t>(b),
                                     static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1],
                                     static_cast<std::uint32_t>(a)};
      for (int i = 0; i < 4; ++i) counter[i] = next[i];
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
  }
};

// Element i: the first word (u32) or the first two (u64, low word first) of the block whose counter is
// (i, key[1]) and whose key is key[0].
Result<Tensor> random_bits(Eval& e) {
  const DType t = e.attrs().dtype(Attr::DType);
  if (e.in[0].size() != 2) return e.error("shape-mismatch", "the key is u64[2]").found(shape_str(e.in[0].shape()));
  Tensor y = WEFT_TRY(result_tensor(t, WEFT_TRY(evaluate(e.attrs().dims(Attr::Shape), e.bindings))));
  const auto key = static_cast<std::uint64_t>(e.in[0].i64(0)), stream = static_cast<std::uint64_t>(e.in[0].i64(1));
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    Philox p{{low(n), high(n), low(stream), high(stream)}, {low(key), high(key)}};
    p.run();
    y.set_i64(i, static_cast<std::int64_t>(p.counter[0] | std::uint64_t{p.counter[1]} << 32));
  }
  return y;
}

Result<Tensors> bind(Eval& e) {
  const Shape& symbols = e.attrs().dims(Attr::Shape);
  WEFT_TRY(runtime::bind(e.in[0], symbols, e.bindings));
  for (const Dim& d : symbols) {  // the new values must be in the ranges that the graph relies on
    const auto known = d.as_symbol() ? e.graph.facts.symbols().find(*d.as_symbol()) : e.graph.facts.symbols().end();
    if (known == e.graph.facts.symbols().end()) continue;
    DimFacts facts;
    facts.declare(known->first, known->second);
    WEFT_TRY(facts.check({{known->first, WEFT_TRY(d.evaluate(e.bindings))}}));
  }
  return Tensors{};
}

}  // namespace

Result<Tensors> eval_source(Eval& e) {
  switch (e.op()) {
    case Op::Constant: return Tensors{e.attrs().data(Attr::Data)};
    case Op::Iota: return one(iota(e));
    case Op::ShapeValue: return one(runtime::shape_value(e.attrs().dims(Attr::Shape), e.bindings));
    case Op::Bind: return bind(e);
    case Op::RandomBits: return one(random_bits(e));
    default: break;
  }
  return internal_error(std::string("a source op without evaluation: ") + info(e.op()).name);
}

}  // namespace weft::graph::interpreter
