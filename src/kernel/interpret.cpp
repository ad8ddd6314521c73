// Plain evaluation, lane by lane, with every access checked. Lanes of reductions combine pairwise,
// as emitters do.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/tensor.h"
#include "kernel/kernel.h"

namespace weft::kernel {
namespace {

class Interpreter {
 public:
  Interpreter(const Function& f, std::span<const BufferView> buffers,
              std::span<const std::int64_t> sizes)
      : f_(f), views_(buffers.begin(), buffers.end()), sizes_(sizes) {
    std::size_t total = 0;
    for (const Type& t : f.types) {
      offsets_.push_back(total);
      total += t.lanes();
    }
    cells_.resize(total);
  }

  Result<void> allocate() {
    for (std::size_t b = views_.size(); b < f_.buffers.size(); ++b) {
      storage_.push_back(WEFT_TRY(Tensor::zeros(f_.buffers[b].dtype, {f_.buffers[b].elements})));
      views_.push_back({storage_.back().mutable_data(), f_.buffers[b].elements});
    }
    return {};
  }

  Result<void> program(std::int64_t pid) {
    pid_ = pid;
    return block(f_.body);
  }

 private:
  Scalar* lanes(ValueId v) { return cells_.data() + offsets_[v]; }
  int count(ValueId v) const { return f_.type(v).lanes(); }
  DType dtype(ValueId v) const { return f_.type(v).dtype; }
  std::int64_t integer(ValueId v) { return lanes(v)->i; }

  void assign(std::span<const ValueId> to, std::span<const ValueId> from) {
    // Through a copy: a loop may carry one value in the place of another.
    std::vector<Scalar> copy;
    for (ValueId v : from) copy.insert(copy.end(), lanes(v), lanes(v) + count(v));
    const Scalar* next = copy.data();
    for (ValueId v : to) {
      std::copy_n(next, count(v), lanes(v));
      next += count(v);
    }
  }

  Result<void> block(const ssa::Block& b) {
    for (const ssa::Inst& i : b.insts) WEFT_TRY(inst(i));
    return {};
  }

  Result<void> loop(const ssa::Inst& i) {
    const ssa::Block& body = i.regions[0];
    const std::int64_t hi = integer(i.operands[1]), step = integer(i.operands[2]);
    if (step <= 0) return user_error("bad-kernel", fmt::format("a loop of step {}", step));
    const std::span carried = std::span(body.args).subspan(1);
    assign(carried, std::span(i.operands).subspan(3));
    for (std::int64_t iv = integer(i.operands[0]); iv < hi;) {
      lanes(body.args[0])->i = iv;
      WEFT_TRY(block(body));
      assign(carried, body.yields);
      if (__builtin_add_overflow(iv, step, &iv)) break;
    }
    assign(i.results, carried);
    return {};
  }

  Result<void> branch(const ssa::Inst& i) {
    const ssa::Block& taken = i.regions[integer(i.operands[0]) != 0 ? 0 : 1];
    WEFT_TRY(block(taken));
    assign(i.results, taken.yields);
    return {};
  }

  void elementwise(const ssa::Inst& i, ScalarOp op) {
    const ValueId result = i.results[0];
    const DType from = dtype(i.operands.back()), to = dtype(result);
    Scalar args[3];
    for (int lane = 0; lane < count(result); ++lane) {
      for (std::size_t n = 0; n < i.operands.size(); ++n) args[n] = lanes(i.operands[n])[lane];
      lanes(result)[lane] = evaluate(op, from, to, {args, i.operands.size()});
    }
  }

  void reduce(const ssa::Inst& i) {
    const auto c = static_cast<Combine>(i.op - static_cast<int>(Op::ReduceSum) +
                                        static_cast<int>(Combine::Sum));
    const ValueId x = i.operands[0];
    std::vector<Scalar> parts(lanes(x), lanes(x) + count(x));
    while (parts.size() > 1) {
      const std::size_t half = (parts.size() + 1) / 2;
      for (std::size_t n = 0; n + half < parts.size(); ++n)
        parts[n] = combine(c, dtype(x), parts[n], parts[n + half]);
      parts.resize(half);
    }
    *lanes(i.results[0]) = parts[0];
  }

  // Calls visit(lane, element) for the lanes that the mask lets through; `first` is the index's
  // operand.
  template <class Visit>
  Result<void> access(const ssa::Inst& i, int width, int first, Visit visit) {
    const BufferView& view = views_[i.imm];
    const ValueId index = i.operands[first];
    const bool own = f_.type(index).rank == 1;
    const Scalar* mask = i.operands.size() > static_cast<std::size_t>(first) + 1
                             ? lanes(i.operands[first + 1])
                             : nullptr;
    for (int lane = 0; lane < width; ++lane) {
      if (mask != nullptr && mask[lane].i == 0) continue;
      const std::int64_t at = own ? lanes(index)[lane].i : integer(index) + lane;
      if (at < 0 || at >= view.elements) {
        return user_error("out-of-range",
                          fmt::format("{} at {} of buffer {} of {} elements, program {}",
                                      f_.info(i).name, at, i.imm, view.elements, pid_))
            .at(fmt::format("@{}", f_.name));
      }
      visit(lane, at);
    }
    return {};
  }

  Result<void> read(const ssa::Inst& i) {
    const ValueId r = i.results[0];
    std::fill_n(lanes(r), count(r), Scalar{});
    return access(i, count(r), 0, [&](int lane, std::int64_t at) {
      lanes(r)[lane] = load_scalar(dtype(r), views_[i.imm].data, at);
    });
  }

  Result<void> write(const ssa::Inst& i) {
    const ValueId v = i.operands[0];
    return access(i, count(v), 1, [&](int lane, std::int64_t at) {
      store_scalar(dtype(v), views_[i.imm].data, at, lanes(v)[lane]);
    });
  }

  Result<void> atomic(const ssa::Inst& i, Combine how) {
    const ValueId r = i.results[0];
    std::fill_n(lanes(r), count(r), Scalar{});
    return access(i, count(r), 1, [&](int lane, std::int64_t at) {
      lanes(r)[lane] = load_scalar(dtype(r), views_[i.imm].data, at);
      store_scalar(dtype(r), views_[i.imm].data, at,
                   combine(how, dtype(r), lanes(r)[lane], lanes(i.operands[0])[lane]));
    });
  }

  void ldexp(const ssa::Inst& i) {
    const ValueId r = i.results[0];
    for (int lane = 0; lane < count(r); ++lane) {
      const Scalar wide{
          std::ldexp(lanes(i.operands[0])[lane].f, static_cast<int>(lanes(i.operands[1])[lane].i)),
          0};
      lanes(r)[lane] = evaluate(ScalarOp::Cast, DType::F64, dtype(r), {&wide, 1});
    }
  }

  Result<void> check(const ssa::Inst& i) {
    for (int lane = 0; lane < count(i.operands[0]); ++lane) {
      if (lanes(i.operands[0])[lane].i != 0) continue;
      return user_error("check-failed", fmt::format("check {} fails in program {}", i.imm, pid_))
          .at(fmt::format("@{}", f_.name));
    }
    return {};
  }

  void source(const ssa::Inst& i) {
    Scalar* r = lanes(i.results[0]);
    const int n = count(i.results[0]);
    switch (static_cast<Op>(i.op)) {
      case Op::Const:
        *r = {i.fimm, i.imm};
        return;
      case Op::Size:
        *r = {0, sizes_[i.imm]};
        return;
      case Op::ProgramId:
        *r = {0, pid_};
        return;
      case Op::Splat:
        std::fill_n(r, n, *lanes(i.operands[0]));
        return;
      case Op::Iota:
        for (int lane = 0; lane < n; ++lane) r[lane] = {0, lane};
        return;
      case Op::Extract:
        *r = lanes(i.operands[0])[i.imm];
        return;
      default:  // Insert
        std::copy_n(lanes(i.operands[0]), n, r);
        r[i.imm] = *lanes(i.operands[1]);
    }
  }

  Result<void> inst(const ssa::Inst& i) {
    const Op op = static_cast<Op>(i.op);
    if (const auto s = as_scalar(op)) return elementwise(i, *s), Result<void>();
    switch (op) {
      case Op::Load:
      case Op::Gather:
        return read(i);
      case Op::Store:
      case Op::Scatter:
        return write(i);
      case Op::AtomicAdd:
      case Op::AtomicMax:
      case Op::AtomicMin:
        return atomic(i, *as_atomic(op));
      case Op::ReduceSum:
      case Op::ReduceProd:
      case Op::ReduceMax:
      case Op::ReduceMin:
      case Op::ReduceAnd:
      case Op::ReduceOr:
        return reduce(i), Result<void>();
      case Op::Ldexp:
        return ldexp(i), Result<void>();
      case Op::Check:
        return check(i);
      case Op::For:
        return loop(i);
      case Op::If:
        return branch(i);
      default:
        return source(i), Result<void>();
    }
  }

  const Function& f_;
  std::vector<BufferView> views_;
  std::span<const std::int64_t> sizes_;
  std::vector<Tensor> storage_;
  std::vector<std::size_t> offsets_;  // by value, into cells_
  std::vector<Scalar> cells_;
  std::int64_t pid_ = 0;
};

}  // namespace

Result<void> interpret(const Function& function, std::span<const BufferView> buffers,
                       std::span<const std::int64_t> sizes, std::int64_t grid) {
  WEFT_TRY(verify(function));
  std::size_t memory = 0;
  for (const ssa::Buffer& b : function.buffers) memory += b.space == ssa::Space::Memory;
  if (buffers.size() != memory || sizes.size() != static_cast<std::size_t>(function.sizes)) {
    return user_error("bad-arguments",
                      fmt::format("{} buffers and {} sizes for a kernel of {} and {}",
                                  buffers.size(), sizes.size(), memory, function.sizes));
  }
  Interpreter interpreter(function, buffers, sizes);
  WEFT_TRY(interpreter.allocate());
  for (std::int64_t pid = 0; pid < grid; ++pid) WEFT_TRY(interpreter.program(pid));
  return {};
}

}  // namespace weft::kernel
