#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "kernel/kernel.h"
#include "ssa/fold.h"

namespace weft::kernel {
namespace {

Op reduce_op_of(Combine c) {
  WEFT_CHECK(c != Combine::None, "a reduction by nothing");
  return static_cast<Op>(static_cast<int>(Op::ReduceSum) + static_cast<int>(c) -
                         static_cast<int>(Combine::Sum));
}

}  // namespace

// Where each value lives, what it is, and the pure instructions seen so far in the open blocks.
struct Builder::Numbering : ssa::Folding {
  struct Def {
    Op op = Op::For;
    std::vector<ValueId> operands;
    std::int64_t imm = 0;
    double fimm = 0;
    int depth = 0;  // of the block that defines it: 0 is the body
  };

  // What makes two pure instructions equal. The constant's bits tell 0 from -0.
  struct Key {
    Op op;
    std::vector<ValueId> operands;
    Type type;
    std::int64_t imm;
    std::uint64_t fimm;

    auto tie() const { return std::tie(op, operands, type.dtype, type.rank, type.shape, imm, fimm); }
    bool operator<(const Key& other) const { return tie() < other.tie(); }
  };

  explicit Numbering(Builder& builder) : b(builder), seen(1) {}

  Builder& b;
  std::vector<Def> defs;                     // by value
  std::vector<std::map<Key, ValueId>> seen;  // by depth
  std::vector<int> floors = {0};  // by depth: how far out of it branch-only work may move

  const Def* def(ValueId v) const {
    return v < static_cast<ValueId>(defs.size()) ? &defs[v] : nullptr;
  }
  void define(ValueId v, Def d) {
    if (defs.size() <= static_cast<std::size_t>(v)) defs.resize(v + 1);
    defs[v] = std::move(d);
  }
  void open(bool branch) {
    seen.emplace_back();
    const int depth = static_cast<int>(seen.size()) - 1;
    floors.push_back(branch ? depth : floors.back());
  }
  void close() {
    seen.pop_back();
    floors.pop_back();
  }
  void define_here(const std::vector<ValueId>& values) {
    for (ValueId v : values) define(v, {Op::For, {}, 0, 0, b.depth()});
  }

  Type type_of(ValueId v) const override { return b.type(v); }
  std::optional<Scalar> constant_of(ValueId v) const override {
    const Def* d = def(v);
    if (d != nullptr && d->op == Op::Splat) d = def(d->operands[0]);
    if (d == nullptr || d->op != Op::Const) return std::nullopt;
    return Scalar{d->fimm, d->imm};
  }
  std::optional<ssa::ScalarDef> definition_of(ValueId v) const override {
    const Def* d = def(v);
    const auto op = d != nullptr ? as_scalar(d->op) : std::nullopt;
    if (!op) return std::nullopt;
    return ssa::ScalarDef{*op, d->operands};
  }
  ValueId make_constant(const Type& type, Scalar value) override {
    const Type scalar = Type::scalar(type.dtype);
    const bool real = is_float(type.dtype);
    const ValueId v = b.append(Op::Const, {}, {scalar}, real ? 0 : value.i, real ? value.f : 0)[0];
    return type.rank == 0 ? v : b.splat(v, type.lanes());
  }
  ValueId make(ScalarOp op, std::vector<ValueId> operands) override {
    return b.scalar(op, std::move(operands));
  }
};

Builder::Builder(std::string name)
    : FunctionBuilder(op_table(), std::move(name)),
      numbering_(std::make_unique<Numbering>(*this)) {}
Builder::~Builder() = default;

std::vector<ValueId> Builder::append(Op op, std::vector<ValueId> operands,
                                     std::vector<Type> results, std::int64_t imm, double fimm) {
  Numbering& n = *numbering_;
  const bool pure = op_table().ops[static_cast<int>(op)].pure;
  int depth = this->depth();
  if (pure) {
    int outermost = 0;
    for (ValueId v : operands)
      outermost = std::max(outermost, n.def(v) != nullptr ? n.def(v)->depth : depth);
    const bool light =
        operands.empty() || op == Op::Splat || results[0] == Type::scalar(DType::I64);
    depth = light ? outermost : std::max(outermost, n.floors[depth]);
  }
  Numbering::Key key{op, operands, pure ? results[0] : Type{}, imm, std::bit_cast<std::uint64_t>(fimm)};
  if (pure) {
    for (int d = 0; d <= this->depth(); ++d) {
      if (const auto it = n.seen[d].find(key); it != n.seen[d].end()) return {it->second};
    }
  }
  ssa::Inst inst;
  inst.op = static_cast<std::uint16_t>(op);
  inst.operands = operands;
  inst.imm = imm;
  inst.fimm = fimm;
  for (const Type& t : results) {
    inst.results.push_back(new_value(t));
    n.define(inst.results.back(), {op, operands, imm, fimm, depth});
  }
  if (pure) n.seen[depth].emplace(std::move(key), inst.results[0]);
  const std::vector<ValueId> values = inst.results;
  block_at(depth).insts.push_back(std::move(inst));
  return values;
}

ValueId Builder::constant(DType dtype, double value) {
  if (!is_float(dtype)) return constant_i64(static_cast<std::int64_t>(value), dtype);
  const Scalar wide{value, 0};
  return numbering_->make_constant(Type::scalar(dtype),
                                   evaluate(ScalarOp::Cast, DType::F64, dtype, {&wide, 1}));
}

ValueId Builder::constant_i64(std::int64_t value, DType dtype) {
  const Scalar wide{0, value};
  return numbering_->make_constant(Type::scalar(dtype),
                                   evaluate(ScalarOp::Cast, DType::I64, dtype, {&wide, 1}));
}

ValueId Builder::constant_like(ValueId x, double value) {
  const Type t = type(x);
  return splat(constant(t.dtype, value), t.rank == 0 ? 0 : t.lanes());
}

ValueId Builder::size(int number) {
  return append(Op::Size, {}, {Type::scalar(DType::I64)}, number)[0];
}
ValueId Builder::program_id() { return append(Op::ProgramId, {}, {Type::scalar(DType::I64)})[0]; }

ValueId Builder::thread_id() { return append(Op::ThreadId, {}, {Type::scalar(DType::I64)})[0]; }
void Builder::barrier() { append(Op::Barrier, {}, {}); }
ValueId Builder::shuffle(ValueId x, ValueId lane) { return append(Op::Shuffle, {x, lane}, {type(x)})[0]; }

ValueId Builder::multiply_matrix(ValueId a, ValueId b, ValueId sum) { return append(Op::MultiplyMatrix, {a, b, sum}, {type(sum)})[0]; }

ValueId Builder::load_matrix(int buffer, ValueId index, int matrices, bool turned) {
  const DType t = f_.buffers[buffer].dtype;
  const int lanes = matrices * word_elements(t);
  return append(turned ? Op::LoadMatrixTurned : Op::LoadMatrix, {index}, {lanes == 1 ? Type::scalar(t) : Type::vector(t, lanes)}, buffer)[0];
}

ValueId Builder::multiply_group(const ssa::BlocksImm& blocks, ValueId a, ValueId b, ValueId sum) {
  return append(Op::MultiplyGroup, {a, b, sum}, {type(sum)}, blocks.packed())[0];
}
void Builder::fence_products() { append(Op::FenceProducts, {}, {}); }
void Builder::fence_shared() { append(Op::FenceShared, {}, {}); }
void Builder::commit_products() { append(Op::CommitProducts, {}, {}); }
ValueId Builder::wait_products(ValueId sum, int groups_left) { return append(Op::WaitProducts, {sum}, {type(sum)}, groups_left)[0]; }

void Builder::copy_async(ssa::CopyImm copy, ValueId to, ValueId from, ValueId mask) {
  std::vector<ValueId> operands = {to, from};
  if (mask >= 0) operands.push_back(mask);
  append(Op::CopyAsync, std::move(operands), {}, copy.packed());
}

void Builder::commit_copies() { append(Op::CommitCopies, {}, {}); }
void Builder::wait_copies(int groups_left) { append(Op::WaitCopies, {}, {}, groups_left); }

ValueId Builder::splat(ValueId x, int lanes) {
  WEFT_CHECK(type(x).rank == 0, "splat of a scalar");
  if (lanes == 0) return x;
  return append(Op::Splat, {x}, {Type::vector(type(x).dtype, lanes)})[0];
}

ValueId Builder::iota(DType dtype, int lanes) {
  return append(Op::Iota, {}, {Type::vector(dtype, lanes)})[0];
}

ValueId Builder::extract(ValueId x, int lane) {
  const auto* d = numbering_->def(x);
  if (d != nullptr && d->op == Op::Splat) return d->operands[0];
  if (d != nullptr && d->op == Op::Iota) return constant_i64(lane, type(x).dtype);
  if (d != nullptr && d->op == Op::Insert) {
    return d->imm == lane ? d->operands[1] : extract(d->operands[0], lane);
  }
  return append(Op::Extract, {x}, {Type::scalar(type(x).dtype)}, lane)[0];
}

ValueId Builder::interleave(ValueId a, ValueId b, int half) {
  return append(Op::Interleave, {a, b}, {type(a)}, half)[0];
}

ValueId Builder::insert(ValueId x, ValueId scalar, int lane) {
  return append(Op::Insert, {x, scalar}, {type(x)}, lane)[0];
}

ValueId Builder::scalar(ScalarOp op, std::vector<ValueId> operands) {
  WEFT_CHECK(info(op).result != ScalarResult::Cast, "casts name their dtype");
  const Type operand = type(operands.back());
  const Type result = info(op).result == ScalarResult::Bool ? operand.with(DType::Bool) : operand;
  const std::size_t first = op == ScalarOp::Select ? 1 : 0;
  for (std::size_t i = first; i < operands.size(); ++i) {
    WEFT_CHECK(type(operands[i]) == operand, std::string(info(op).name) + " of " +
                                                 str(type(operands[i])) + " and " + str(operand));
  }
  if (const ValueId v = ssa::fold(*numbering_, op, operands, result); v >= 0) return v;
  return append(from_scalar(op), std::move(operands), {result})[0];
}

ValueId Builder::cast(ValueId x, DType dtype) {
  std::vector<ValueId> operands = {x};
  const Type result = type(x).with(dtype);
  if (const ValueId v = ssa::fold(*numbering_, ScalarOp::Cast, operands, result); v >= 0) return v;
  return append(Op::Cast, std::move(operands), {result})[0];
}

ValueId Builder::bitcast(ValueId x, DType dtype) {
  WEFT_CHECK(bits(type(x).dtype) == bits(dtype), "a bitcast keeps the width");
  std::vector<ValueId> operands = {x};
  const Type result = type(x).with(dtype);
  if (const ValueId v = ssa::fold(*numbering_, ScalarOp::Bitcast, operands, result); v >= 0)
    return v;
  return append(Op::Bitcast, std::move(operands), {result})[0];
}

ValueId Builder::ldexp(ValueId x, ValueId n) { return append(Op::Ldexp, {x, n}, {type(x)})[0]; }

ValueId Builder::words(ValueId elements) {
  const Type word = Type::scalar(DType::I32);
  const int lanes = type(elements).lanes() * bits(type(elements).dtype) / bits(word.dtype);
  return append(Op::Words, {elements}, {lanes == 1 ? word : Type::vector(word.dtype, lanes)})[0];
}

ValueId Builder::dot4(ValueId a, ValueId b, ValueId sum) {
  return append(Op::Dot4, {a, b, sum}, {type(sum)})[0];
}

ValueId Builder::zero_tile(DType dtype) { return append(Op::ZeroTile, {}, {matrix_tile(dtype)})[0]; }

ValueId Builder::load_tile(int buffer, ValueId index, ValueId stride) {
  return append(Op::LoadTile, {index, stride}, {matrix_tile(f_.buffers[buffer].dtype)}, buffer)[0];
}

void Builder::store_tile(int buffer, ValueId tile, ValueId index, ValueId stride) {
  append(Op::StoreTile, {tile, index, stride}, {}, buffer);
}

ValueId Builder::multiply_tiles(ValueId a, ValueId b, ValueId sum) {
  return append(Op::MultiplyTiles, {a, b, sum}, {type(sum)})[0];
}

ValueId Builder::dot2(ValueId a, ValueId b, ValueId sum) {
  return append(Op::Dot2, {a, b, sum}, {type(sum)})[0];
}

ValueId Builder::load(int buffer, ValueId index, int lanes, ValueId mask) {
  const DType t = f_.buffers[buffer].dtype;
  std::vector<ValueId> operands = {index};
  if (mask >= 0) operands.push_back(mask);
  return append(Op::Load, std::move(operands),
                {lanes == 0 ? Type::scalar(t) : Type::vector(t, lanes)}, buffer)[0];
}

void Builder::store(int buffer, ValueId value, ValueId index, ValueId mask) {
  std::vector<ValueId> operands = {value, index};
  if (mask >= 0) operands.push_back(mask);
  append(Op::Store, std::move(operands), {}, buffer);
}

ValueId Builder::gather(int buffer, ValueId index, ValueId mask) {
  std::vector<ValueId> operands = {index};
  if (mask >= 0) operands.push_back(mask);
  return append(Op::Gather, std::move(operands), {type(index).with(f_.buffers[buffer].dtype)},
                buffer)[0];
}

void Builder::scatter(int buffer, ValueId value, ValueId index, ValueId mask) {
  std::vector<ValueId> operands = {value, index};
  if (mask >= 0) operands.push_back(mask);
  append(Op::Scatter, std::move(operands), {}, buffer);
}

ValueId Builder::atomic(Combine combine, int buffer, ValueId value, ValueId index, ValueId mask) {
  const Op op = combine == Combine::Max ? Op::AtomicMax : combine == Combine::Min ? Op::AtomicMin : Op::AtomicAdd;
  std::vector<ValueId> operands = {value, index};
  if (mask >= 0) operands.push_back(mask);
  return append(op, std::move(operands), {type(value)}, buffer)[0];
}

ValueId Builder::reduce(Combine combine, ValueId x) {
  if (type(x).rank == 0) return x;
  return append(reduce_op_of(combine), {x}, {Type::scalar(type(x).dtype)})[0];
}

void Builder::check(ValueId ok, int code) {
  const auto known = numbering_->constant_of(ok);
  if (known && known->i != 0) return;
  append(Op::Check, {ok}, {}, code);
}

Builder::Loop Builder::begin_for(ValueId lo, ValueId hi, ValueId step, std::vector<ValueId> inits) {
  Loop loop = FunctionBuilder::begin_for(static_cast<std::uint16_t>(Op::For), lo, hi, step,
                                         std::move(inits));
  numbering_->open(false);
  numbering_->define_here({loop.iv});
  numbering_->define_here(loop.carried);
  return loop;
}

std::vector<ValueId> Builder::end_for(std::vector<ValueId> next) {
  std::vector<ValueId> results = FunctionBuilder::end_for(std::move(next));
  numbering_->close();
  numbering_->define_here(results);
  return results;
}

void Builder::begin_if(ValueId cond, std::vector<Type> results) {
  FunctionBuilder::begin_if(static_cast<std::uint16_t>(Op::If), cond, std::move(results));
  numbering_->open(true);
}

void Builder::begin_else(std::vector<ValueId> yields) {
  FunctionBuilder::begin_else(std::move(yields));
  numbering_->close();
  numbering_->open(true);
}

std::vector<ValueId> Builder::end_if(std::vector<ValueId> yields) {
  std::vector<ValueId> results = FunctionBuilder::end_if(std::move(yields));
  numbering_->close();
  numbering_->define_here(results);
  return results;
}

}  // namespace weft::kernel
