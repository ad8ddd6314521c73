// What the threads of a group do together: barriers, shuffles, products; and what runs beside them: copies and products.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/interpret/interpreter.h"
#include "kernel/interpret/matrix.h"

namespace weft::kernel {
namespace {

constexpr int kWidestBits = 128;  // that one access takes

double number(DType t, const Scalar& x) { return is_float(t) ? x.f : static_cast<double>(x.i); }

}  // namespace

Result<void> Interpreter::barrier(const ssa::Inst& i) {
  if (static_cast<int>(active_.size()) != f_.threads) {
    return bad("divergent-barrier", i, fmt::format("that only {} of {} threads reach", active_.size(), f_.threads));
  }
  ++now_.epoch;
  fenced_ = fences_;
  return {};
}

Result<void> Interpreter::shuffle(const ssa::Inst& i) {
  const ValueId x = i.operands[0];
  std::vector<Scalar> results;
  for (const int thread : active_) {
    const std::int64_t lane = lanes(i.operands[1], thread)->i;
    const std::int64_t from = thread / f_.warp * f_.warp + lane;
    if (lane < 0 || lane >= f_.warp || !std::binary_search(active_.begin(), active_.end(), from)) {
      return bad("divergent-shuffle", i, fmt::format("by thread {} from lane {}, which does not take part", thread, lane));
    }
    results.push_back(*lanes(x, static_cast<int>(from)));
  }
  for (std::size_t n = 0; n < active_.size(); ++n) *lanes(i.results[0], active_[n]) = results[n];
  return {};
}

Result<std::vector<int>> Interpreter::whole_warps(const ssa::Inst& i, int threads) const {
  const auto all = static_cast<std::size_t>(threads);
  std::vector<int> firsts;
  for (std::size_t n = 0; n < active_.size(); n += all) {
    const int first = active_[n];
    const bool whole = n + all <= active_.size() && first % threads == 0 && active_[n + all - 1] == first + threads - 1;
    if (!whole) return bad("divergent-matrix", i, threads == kMatrixWarp ? "by a part of a warp" : "by a part of four warps");
    firsts.push_back(first);
  }
  return firsts;
}

Result<void> Interpreter::multiply_matrix(const ssa::Inst& i) {
  const DType t = dtype(i.operands[0]);
  for (const int warp : WEFT_TRY(whole_warps(i))) {
    const auto operand = [&](int n) { return [&i, this, warp, n](int lane) { return static_cast<const Scalar*>(lanes(i.operands[n], warp + lane)); }; };
    kernel::multiply_matrix({operand(0), operand(1), operand(2), [&](int lane) { return lanes(i.results[0], warp + lane); }, t, word_elements(t)});
  }
  return {};
}

Result<void> Interpreter::load_matrix(const ssa::Inst& i) {
  const ValueId r = i.results[0];
  const DType t = dtype(r);
  const int word = word_elements(t), rows = count(r) / word * kPartRows, row_elements = kPartWords * word;
  const bool turned = static_cast<Op>(i.op) == Op::LoadMatrixTurned;
  const BufferView& view = views_[i.imm];
  for (const int warp : WEFT_TRY(whole_warps(i))) {
    for (int row = 0; row < rows; ++row) {
      const std::int64_t at = lanes(i.operands[0], warp + row)->i;
      if (at % row_elements != 0) return bad("misaligned", i, fmt::format("of a row at {} of buffer {}, which is not aligned", at, i.imm));
      if (at < 0 || at + row_elements > view.elements) return bad("out-of-range", i, fmt::format("at {} of buffer {} of {} elements", at, i.imm, view.elements));
    }
    for (int lane = 0; lane < kMatrixWarp; ++lane) {
      for (int k = 0; k < count(r); ++k) {
        const MatrixElement from = matrix_element(lane, k, word, turned);
        const std::int64_t at = lanes(i.operands[0], warp + from.row)->i + from.offset;
        WEFT_TRY(watch(i, warp + lane, at));
        lanes(r, warp + lane)[k] = load_scalar(t, view.data, at);
      }
    }
  }
  return {};
}

Result<void> Interpreter::there(std::span<const ValueId> values) const {
  if (products_.none()) return {};
  for (const ValueId v : values) {
    for (std::size_t n = 0; n < active_.size(); n += kMatrixWarp) {
      if (!products_.flying(v, active_[n])) continue;
      return user_error("race", fmt::format("a race: the sum of a product on its way is used, program {}", now_.program)).at(fmt::format("@{}", f_.name));
    }
  }
  return {};
}

Result<std::int64_t> Interpreter::block_index(const ssa::Inst& i, ValueId index, int first, DType t) {
  const std::int64_t at = lanes(index, first)->i;
  for (int thread = first; thread < first + kGroupThreads; ++thread) {
    if (lanes(index, thread)->i != at) return bad("divergent-matrix", i, fmt::format("at {} by thread {}, at {} by thread {}", at, first, lanes(index, thread)->i, thread));
  }
  if (at * bits(t) % kWidestBits != 0) return bad("misaligned", i, fmt::format("of a block at {}, which is not aligned", at));
  return at;
}

Result<std::vector<std::int64_t>> Interpreter::begin_block(const ssa::Inst& i, const ssa::BlockImm& block, std::int64_t at, int others, int steps) {
  std::vector<std::int64_t> elements;
  for (int other = 0; other < others; ++other) {
    for (int step = 0; step < steps; ++step) {
      const std::int64_t e = block_element(block, f_.buffers[block.buffer].dtype, at, other, step);
      if (e < 0 || e >= views_[block.buffer].elements) {
        return bad("out-of-range", i, fmt::format("at {} of buffer {} of {} elements", e, block.buffer, views_[block.buffer].elements));
      }
      if (const auto wrong = shadows_[block.buffer].begin_product(e, now_, fenced_)) {
        return bad("race", i, fmt::format("at {} of buffer {}: {}", e, block.buffer, *wrong));
      }
      elements.push_back(e);
    }
  }
  return elements;
}

Result<void> Interpreter::multiply_group(const ssa::Inst& i) {
  const ValueId sum = i.operands[2];
  const auto blocks = ssa::BlocksImm::of(i.imm);
  const DType t = f_.buffers[blocks.right.buffer].dtype;
  const int word = word_elements(t), steps = kMatrixWords * word;
  const bool in_registers = f_.type(i.operands[0]).rank == 1;
  for (const int first : WEFT_TRY(whole_warps(i, kGroupThreads))) {
    const std::uint32_t fence = product_fences_[static_cast<std::size_t>(first / kGroupThreads)];
    if (products_.holds(i.results[0], first)) return bad("race", i, "into a sum that is on its way");
    if (products_.flying(sum, first) && !products_.holds(sum, first)) return bad("race", i, "to a sum that another product adds to");
    if (!products_.flying(sum, first) && defined_[sum] >= fence) return bad("race", i, "to a sum that was written without a fence_products since");
    if (in_registers && defined_[i.operands[0]] >= fence) return bad("race", i, "of words that were written without a fence_products since");
    Product p{first, blocks, products_.flying(sum, first) ? products_.take(sum, first) : accumulator(sum, first), 2 * count(sum), steps, {}, {}, {}};
    now_.thread = first;
    if (in_registers) {
      p.left.resize(static_cast<std::size_t>(kGroupRows * steps));
      for (int thread = 0; thread < kGroupThreads; ++thread) {
        for (int n = 0; n < 4 * word; ++n) {
          const SumElement at = left_element(thread, n, word);
          p.left[static_cast<std::size_t>(at.row * steps + at.column)] = number(f_.type(i.operands[0]).dtype, lanes(i.operands[0], first + thread)[n]);
        }
      }
    } else {
      p.a = WEFT_TRY(begin_block(i, blocks.left, WEFT_TRY(block_index(i, i.operands[0], first, t)), kGroupRows, steps));
    }
    p.b = WEFT_TRY(begin_block(i, blocks.right, WEFT_TRY(block_index(i, i.operands[1], first, t)), p.columns, steps));
    if (early()) multiply(p, !is_float(dtype(sum)));
    products_.give(i.results[0], first, p.sum);
    products_.add(std::move(p));
  }
  return {};
}

std::shared_ptr<Accumulator> Interpreter::accumulator(ValueId v, int first) {
  const Scalar* begin = lanes(v, first);
  return std::make_shared<Accumulator>(Accumulator{{begin, begin + kGroupThreads * count(v)}, 0});
}

void Interpreter::multiply(const Product& p, bool whole) {
  const auto read = [&](int buffer, std::int64_t e) {
    const DType t = f_.buffers[buffer].dtype;
    return number(t, load_scalar(t, views_[buffer].data, e));
  };
  kernel::multiply(p, whole, read);
}

Result<void> Interpreter::carry(std::span<const ValueId> to, std::span<const ValueId> from) {
  if (products_.none()) return assign(to, from), Result<void>();
  std::vector<std::shared_ptr<Accumulator>> sums;  // by value and four warps
  const auto each = [&](std::span<const ValueId> values, auto visit) {
    for (const ValueId v : values) {
      for (std::size_t n = 0; n < active_.size(); n += kGroupThreads) visit(v, active_[n]);
    }
  };
  bool there = true;
  each(from, [&](ValueId v, int thread) {
    sums.push_back(products_.flying(v, thread) ? products_.take(v, thread) : nullptr);
    there = there && (sums.back() != nullptr || !products_.flying(v, thread));
  });
  if (!there) return this->there(from);
  assign(to, from);
  auto next = sums.begin();
  each(to, [&](ValueId v, int thread) {
    if (*next != nullptr) products_.give(v, thread, std::move(*next));
    else products_.forget(v, thread);
    ++next;
  });
  return {};
}

Result<void> Interpreter::wait_products(const ssa::Inst& i) {
  const ValueId sum = i.operands[0];
  for (const int first : WEFT_TRY(whole_warps(i, kGroupThreads))) {
    for (const Product& p : products_.finish(first, i.imm)) {
      if (!early()) multiply(p, !is_float(dtype(sum)));
      for (const std::int64_t e : p.a) shadows_[p.blocks.left.buffer].end_product(e, now_);
      for (const std::int64_t e : p.b) shadows_[p.blocks.right.buffer].end_product(e, now_);
    }
    const ValueId result = i.results[0];
    products_.forget(result, first);
    if (!products_.flying(sum, first)) {
      std::copy_n(lanes(sum, first), kGroupThreads * count(sum), lanes(result, first));
      continue;
    }
    const auto registers = products_.take(sum, first);
    if (registers == nullptr) return there({&sum, 1});
    if (registers->pending > 0) products_.give(result, first, registers);
    else std::copy(registers->lanes.begin(), registers->lanes.end(), lanes(result, first));
  }
  return {};
}

Result<void> Interpreter::fence_products(const ssa::Inst& i) {
  for (const int first : WEFT_TRY(whole_warps(i, kGroupThreads))) product_fences_[static_cast<std::size_t>(first / kGroupThreads)] = now_.tick;
  return {};
}

Result<void> Interpreter::commit_products(const ssa::Inst& i) {
  for (const int first : WEFT_TRY(whole_warps(i, kGroupThreads))) products_.commit(first);
  return {};
}

void Interpreter::copy(const CopyQueues::Copy& c) {
  const DType t = f_.buffers[c.to].dtype;
  for (int n = 0; n < c.elements; ++n) {
    store_scalar(t, views_[c.to].data, c.to_index + n, c.masked ? Scalar{} : load_scalar(t, views_[c.from].data, c.from_index + n));
  }
}

Result<void> Interpreter::copy_async(const ssa::Inst& i, int thread) {
  const auto imm = ssa::CopyImm::of(i.imm);
  CopyQueues::Copy c{imm.to, imm.from, lanes(i.operands[0], thread)->i, lanes(i.operands[1], thread)->i, imm.elements, false};
  c.masked = i.operands.size() > 2 && lanes(i.operands[2], thread)->i == 0;
  const auto within = [&](int buffer, std::int64_t at) -> Result<void> {
    if (at < 0 || at + c.elements > views_[buffer].elements) {
      return bad("out-of-range", i, fmt::format("at {} of buffer {} of {} elements", at, buffer, views_[buffer].elements));
    }
    if (at % c.elements == 0) return {};
    return bad("misaligned", i, fmt::format("of {} elements at {} of buffer {}, which is not aligned", c.elements, at, buffer));
  };
  WEFT_TRY(within(c.to, c.to_index));
  if (!c.masked) WEFT_TRY(within(c.from, c.from_index));
  now_.thread = thread;
  for (int n = 0; n < c.elements && f_.threads > 1; ++n) {
    if (const auto wrong = shadows_[c.to].ask(c.to_index + n, now_)) {
      return bad("race", i, fmt::format("at {} of buffer {}: {}", c.to_index + n, c.to, *wrong));
    }
  }
  if (early()) copy(c);
  queues_.add(thread, c);
  return {};
}

void Interpreter::wait_copies(const ssa::Inst& i, int thread) {
  now_.thread = thread;
  for (const CopyQueues::Copy& c : queues_.finish(thread, i.imm)) {
    if (!early()) copy(c);
    for (int n = 0; n < c.elements && f_.threads > 1; ++n) shadows_[c.to].arrive(c.to_index + n, now_);
  }
}

Result<void> Interpreter::all_arrived() {
  if (products_.pending() > 0) {
    return user_error("unfinished-products", fmt::format("program {} ends while {} products are on their way", now_.program, products_.pending()))
        .at(fmt::format("@{}", f_.name));
  }
  products_.forget_all();
  const int left = queues_.pending();
  if (left == 0) return {};
  return user_error("unfinished-copies", fmt::format("program {} ends while {} copies are on their way", now_.program, left))
      .at(fmt::format("@{}", f_.name));
}

}  // namespace weft::kernel
