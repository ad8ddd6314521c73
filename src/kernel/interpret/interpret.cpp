// Plain evaluation, lane by lane, with every access checked. Lanes of reductions combine pairwise, as emitters do. The
// threads of a program go in step: an instruction is done for all that are active before the next one begins.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernel/interpret/interpreter.h"

namespace weft::kernel {

Interpreter::Interpreter(const Function& f, std::span<const BufferView> buffers, std::span<const std::int64_t> sizes, std::int32_t* check, Copies copies)
    : f_(f), views_(buffers.begin(), buffers.end()), sizes_(sizes), check_(check), copies_(copies), queues_(f.threads), products_(f.threads) {
  std::size_t total = 0;
  for (const Type& t : f.types) {
    offsets_.push_back(total);
    total += static_cast<std::size_t>(t.elements()) * f.threads;
  }
  cells_.resize(total);
  defined_.resize(f.types.size());
  fences_.resize(static_cast<std::size_t>(f.threads));
  fenced_ = fences_;
  product_fences_.resize(static_cast<std::size_t>(f.threads / kGroupThreads + 1));
  active_.resize(f.threads);
  std::iota(active_.begin(), active_.end(), 0);
}

Result<void> Interpreter::allocate() {
  for (std::size_t b = views_.size(); b < f_.buffers.size(); ++b) {
    storage_.push_back(WEFT_TRY(Tensor::zeros(f_.buffers[b].dtype, {f_.buffers[b].elements})));
    views_.push_back({storage_.back().mutable_data(), f_.buffers[b].elements});
  }
  if (f_.threads == 1) return {};
  for (std::size_t b = 0; b < f_.buffers.size(); ++b) {
    const bool on_chip = f_.buffers[b].space == ssa::Space::OnChip;
    shadows_.emplace_back(on_chip || f_.buffers[b].written ? views_[b].elements : 0, on_chip);
  }
  return {};
}

Result<void> Interpreter::program(std::int64_t pid) {
  now_.program = pid;
  now_.program_epoch = ++now_.epoch;
  WEFT_TRY(block(f_.body));
  return all_arrived();
}

Error Interpreter::bad(const char* code, const ssa::Inst& i, const std::string& what) const {
  return user_error(code, fmt::format("{} {}, program {}", f_.info(i).name, what, now_.program))
      .at(fmt::format("@{}", f_.name));
}

void Interpreter::assign(std::span<const ValueId> to, std::span<const ValueId> from) {
  // Through a copy: a loop may carry one value in the place of another.
  std::vector<Scalar> copy;
  for (const int thread : active_) {
    copy.clear();
    for (ValueId v : from) copy.insert(copy.end(), lanes(v, thread), lanes(v, thread) + count(v));
    const Scalar* next = copy.data();
    for (ValueId v : to) {
      std::copy_n(next, count(v), lanes(v, thread));
      next += count(v);
    }
  }
  for (const ValueId v : to) defined_[v] = now_.tick;
}

Result<void> Interpreter::block(const ssa::Block& b) {
  for (const ssa::Inst& i : b.insts) WEFT_TRY(inst(i));
  return {};
}

Result<void> Interpreter::loop(const ssa::Inst& i) {
  const ssa::Block& body = i.regions[0];
  const std::span carried = std::span(body.args).subspan(1);
  const std::vector<int> all = active_;
  assign(carried, std::span(i.operands).subspan(3));
  for (const int thread : all) {
    const std::int64_t step = lanes(i.operands[2], thread)->i;
    if (step <= 0) return bad("bad-kernel", i, fmt::format("of step {}", step));
    *lanes(body.args[0], thread) = *lanes(i.operands[0], thread);
  }
  const auto done = [&](int thread) { return lanes(body.args[0], thread)->i >= lanes(i.operands[1], thread)->i; };
  std::erase_if(active_, done);
  while (!active_.empty()) {
    WEFT_TRY(block(body));
    WEFT_TRY(carry(carried, body.yields));
    std::erase_if(active_, [&](int thread) {
      std::int64_t& iv = lanes(body.args[0], thread)->i;
      return __builtin_add_overflow(iv, lanes(i.operands[2], thread)->i, &iv) || done(thread);
    });
  }
  active_ = all;
  return carry(i.results, carried);
}

Result<void> Interpreter::branch(const ssa::Inst& i) {
  const std::vector<int> all = active_;
  for (const int side : {0, 1}) {
    active_ = all;
    std::erase_if(active_, [&](int thread) { return (lanes(i.operands[0], thread)->i != 0) == (side == 1); });
    if (active_.empty()) continue;
    WEFT_TRY(block(i.regions[side]));
    WEFT_TRY(there(i.regions[side].yields));
    assign(i.results, i.regions[side].yields);
  }
  active_ = all;
  return {};
}

void Interpreter::elementwise(const ssa::Inst& i, ScalarOp op) {
  const ValueId result = i.results[0];
  const DType from = dtype(i.operands.back()), to = dtype(result);
  const std::size_t operands = i.operands.size();
  const int width = count(result);
  Scalar args[3];
  const Scalar* x[3];
  for (const int thread : active_) {
    Scalar* r = lanes(result, thread);
    for (std::size_t n = 0; n < operands; ++n) x[n] = lanes(i.operands[n], thread);
    for (int lane = 0; lane < width; ++lane) {
      for (std::size_t n = 0; n < operands; ++n) args[n] = x[n][lane];
      r[lane] = evaluate(op, from, to, {args, operands});
    }
  }
}

void Interpreter::reduce(const ssa::Inst& i, int thread) {
  const auto c = static_cast<Combine>(i.op - static_cast<int>(Op::ReduceSum) +
                                      static_cast<int>(Combine::Sum));
  const ValueId x = i.operands[0];
  std::vector<Scalar> parts(lanes(x, thread), lanes(x, thread) + count(x));
  while (parts.size() > 1) {
    const std::size_t half = (parts.size() + 1) / 2;
    for (std::size_t n = 0; n + half < parts.size(); ++n)
      parts[n] = combine(c, dtype(x), parts[n], parts[n + half]);
    parts.resize(half);
  }
  *lanes(i.results[0], thread) = parts[0];
}

Result<void> Interpreter::watch(const ssa::Inst& i, int thread, std::int64_t at) {
  if (f_.threads == 1) return {};
  const ssa::Buffer& buffer = f_.buffers[i.imm];
  if (buffer.space == ssa::Space::Memory && !buffer.written) return {};
  now_.thread = thread;
  Shadow& shadow = shadows_[i.imm];
  const auto wrong = as_atomic(static_cast<Op>(i.op)) ? shadow.atomic(at, now_)
                     : i.results.empty()              ? shadow.write(at, now_)
                                                      : shadow.read(at, now_);
  if (!wrong) return {};
  return bad("race", i, fmt::format("at {} of buffer {}: {}", at, i.imm, *wrong));
}

template <class Visit>
Result<void> Interpreter::access(const ssa::Inst& i, int thread, int width, int first, Visit visit) {
  const BufferView& view = views_[i.imm];
  const ValueId index = i.operands[first];
  const bool own = f_.type(index).rank == 1;
  const Scalar* mask = i.operands.size() > static_cast<std::size_t>(first) + 1
                           ? lanes(i.operands[first + 1], thread)
                           : nullptr;
  if (f_.threads > 1 && !own && mask == nullptr && width > 1 && lanes(index, thread)->i % width != 0) {
    return bad("misaligned", i, fmt::format("of {} elements at {} of buffer {}, which is not aligned", width, lanes(index, thread)->i, i.imm));
  }
  for (int lane = 0; lane < width; ++lane) {
    if (mask != nullptr && mask[lane].i == 0) continue;
    const std::int64_t at = own ? lanes(index, thread)[lane].i : lanes(index, thread)->i + lane;
    if (at < 0 || at >= view.elements) {
      return bad("out-of-range", i, fmt::format("at {} of buffer {} of {} elements", at, i.imm, view.elements));
    }
    WEFT_TRY(watch(i, thread, at));
    visit(lane, at);
  }
  return {};
}

Result<void> Interpreter::read(const ssa::Inst& i, int thread) {
  const ValueId r = i.results[0];
  std::fill_n(lanes(r, thread), count(r), Scalar{});
  return access(i, thread, count(r), 0, [&](int lane, std::int64_t at) {
    lanes(r, thread)[lane] = load_scalar(dtype(r), views_[i.imm].data, at);
  });
}

Result<void> Interpreter::write(const ssa::Inst& i, int thread) {
  const ValueId v = i.operands[0];
  return access(i, thread, count(v), 1, [&](int lane, std::int64_t at) {
    store_scalar(dtype(v), views_[i.imm].data, at, lanes(v, thread)[lane]);
  });
}

Result<void> Interpreter::atomic(const ssa::Inst& i, int thread, Combine how) {
  const ValueId r = i.results[0];
  std::fill_n(lanes(r, thread), count(r), Scalar{});
  return access(i, thread, count(r), 1, [&](int lane, std::int64_t at) {
    Scalar& before = lanes(r, thread)[lane];
    before = load_scalar(dtype(r), views_[i.imm].data, at);
    store_scalar(dtype(r), views_[i.imm].data, at,
                 combine(how, dtype(r), before, lanes(i.operands[0], thread)[lane]));
  });
}

void Interpreter::ldexp(const ssa::Inst& i, int thread) {
  const ValueId r = i.results[0];
  for (int lane = 0; lane < count(r); ++lane) {
    const Scalar wide{std::ldexp(lanes(i.operands[0], thread)[lane].f,
                                 static_cast<int>(lanes(i.operands[1], thread)[lane].i)),
                      0};
    lanes(r, thread)[lane] = evaluate(ScalarOp::Cast, DType::F64, dtype(r), {&wide, 1});
  }
}

void Interpreter::unit(const ssa::Inst& i, int thread) {
  const bool power = static_cast<Op>(i.op) == Op::Exp2Unit;
  const ValueId r = i.results[0];
  for (int lane = 0; lane < count(r); ++lane) {
    const double x = lanes(i.operands[0], thread)[lane].f;
    lanes(r, thread)[lane].f = power ? std::exp2(static_cast<float>(x)) : x > 0 ? std::min(x, 1.0) : 0.0;
  }
}

void Interpreter::words(const ssa::Inst& i, int thread) {
  const ValueId r = i.results[0];
  const ValueId from = i.operands[0];
  const Scalar* elements = lanes(from, thread);
  const int width = bits(dtype(from)), steps = 32 / width;
  for (int lane = 0; lane < count(r); ++lane) {
    std::uint32_t word = 0;
    for (int k = 0; k < steps; ++k) {
      const Scalar& x = elements[steps * lane + k];
      const std::uint32_t code = is_float(dtype(from)) ? encode_float(dtype(from), x.f) : static_cast<std::uint32_t>(x.i);
      word |= (code & ((1U << width) - 1)) << (width * k);
    }
    lanes(r, thread)[lane] = {0, static_cast<std::int32_t>(word)};
  }
}

void Interpreter::dot4(const ssa::Inst& i, int thread) {
  const ValueId r = i.results[0];
  for (int lane = 0; lane < count(r); ++lane) {
    const std::int64_t a = lanes(i.operands[0], thread)[lane].i, b = lanes(i.operands[1], thread)[lane].i;
    std::int64_t sum = lanes(i.operands[2], thread)[lane].i;
    for (int k = 0; k < 4; ++k) {
      sum += std::int64_t{static_cast<std::uint8_t>(a >> (8 * k))} * static_cast<std::int8_t>(b >> (8 * k));
    }
    lanes(r, thread)[lane] = {0, static_cast<std::int32_t>(sum)};
  }
}

template <class Visit>
Result<void> Interpreter::access_tile(const ssa::Inst& i, ValueId tile, ValueId index, ValueId stride, Visit visit) {
  const BufferView& view = views_[i.imm];
  const int columns = f_.type(tile).shape[1];
  for (int n = 0; n < count(tile); ++n) {
    const std::int64_t at = lanes(index, 0)->i + n / columns * lanes(stride, 0)->i + n % columns;
    if (at < 0 || at >= view.elements) {
      return bad("out-of-range", i, fmt::format("at {} of buffer {} of {} elements", at, i.imm, view.elements));
    }
    visit(lanes(tile, 0)[n], at);
  }
  return {};
}

Result<void> Interpreter::load_tile(const ssa::Inst& i) {
  return access_tile(i, i.results[0], i.operands[0], i.operands[1], [&](Scalar& element, std::int64_t at) {
    element = load_scalar(dtype(i.results[0]), views_[i.imm].data, at);
  });
}

Result<void> Interpreter::store_tile(const ssa::Inst& i) {
  return access_tile(i, i.operands[0], i.operands[1], i.operands[2], [&](Scalar& element, std::int64_t at) {
    store_scalar(dtype(i.operands[0]), views_[i.imm].data, at, element);
  });
}

void Interpreter::multiply_tiles(const ssa::Inst& i) {
  const Scalar *a = lanes(i.operands[0], 0), *b = lanes(i.operands[1], 0), *sum = lanes(i.operands[2], 0);
  const int steps = f_.type(i.operands[0]).shape[1], columns = f_.type(i.results[0]).shape[1], side = steps / kTileRows;
  const bool whole = is_int(dtype(i.results[0]));
  const auto flushed = [](double x) { return std::abs(x) < std::numeric_limits<float>::min() ? 0.0 * x : x; };
  std::vector<Scalar> result;
  for (int n = 0; n < count(i.results[0]); ++n) {
    const int row = n / columns, column = n % columns;
    Scalar total = sum[n];
    for (int k = 0; k < steps; ++k) {
      const Scalar &x = a[row * steps + k], &y = b[(k / side) * steps + column * side + k % side];
      total.f += flushed(x.f) * flushed(y.f);
      total.i += x.i * y.i;
    }
    result.push_back(whole ? Scalar{0, static_cast<std::int32_t>(total.i)} : Scalar{flushed(static_cast<float>(total.f)), 0});
  }
  std::copy(result.begin(), result.end(), lanes(i.results[0], 0));
}

void Interpreter::dot2(const ssa::Inst& i, int thread) {
  const auto normal = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; };
  const ValueId r = i.results[0];
  for (int lane = 0; lane < count(r); ++lane) {
    const auto a = static_cast<std::uint32_t>(lanes(i.operands[0], thread)[lane].i);
    const auto b = static_cast<std::uint32_t>(lanes(i.operands[1], thread)[lane].i);
    float sum = normal(static_cast<float>(lanes(i.operands[2], thread)[lane].f));
    for (const int shift : {0, 16}) {  // the upper elements first
      const auto element = [&](std::uint32_t word) { return normal(std::bit_cast<float>((word << shift) & 0xffff0000U)); };
      sum = normal(std::fma(element(a), element(b), sum));
    }
    lanes(r, thread)[lane] = {sum, 0};
  }
}

Result<void> Interpreter::check(const ssa::Inst& i, int thread) {
  for (int lane = 0; lane < count(i.operands[0]); ++lane) {
    if (lanes(i.operands[0], thread)[lane].i != 0) continue;
    if (check_ != nullptr) {
      *check_ = static_cast<std::int32_t>(i.imm);
      continue;
    }
    return user_error("check-failed", fmt::format("check {} fails in program {}", i.imm, now_.program))
        .at(fmt::format("@{}", f_.name));
  }
  return {};
}

void Interpreter::source(const ssa::Inst& i, int thread) {
  Scalar* r = lanes(i.results[0], thread);
  const int n = count(i.results[0]);
  switch (static_cast<Op>(i.op)) {
    case Op::Const:
      *r = {i.fimm, i.imm};
      return;
    case Op::Size:
      *r = {0, sizes_[i.imm]};
      return;
    case Op::ProgramId:
      *r = {0, now_.program};
      return;
    case Op::ThreadId:
      *r = {0, thread};
      return;
    case Op::Splat:
      std::fill_n(r, n, *lanes(i.operands[0], thread));
      return;
    case Op::Iota:
      for (int lane = 0; lane < n; ++lane) r[lane] = {0, lane};
      return;
    case Op::Extract:
      *r = lanes(i.operands[0], thread)[i.imm];
      return;
    case Op::Interleave:
      for (int lane = 0; lane < n; ++lane)
        r[lane] = lanes(i.operands[lane % 2], thread)[static_cast<int>(i.imm) * n / 2 + lane / 2];
      return;
    default:  // Insert
      std::copy_n(lanes(i.operands[0], thread), n, r);
      r[i.imm] = *lanes(i.operands[1], thread);
  }
}

Result<void> Interpreter::alone(const ssa::Inst& i, int thread) {
  switch (static_cast<Op>(i.op)) {
    case Op::Load:
    case Op::Gather:
      return read(i, thread);
    case Op::Store:
    case Op::Scatter:
      return write(i, thread);
    case Op::AtomicAdd:
    case Op::AtomicMax:
    case Op::AtomicMin:
      return atomic(i, thread, *as_atomic(static_cast<Op>(i.op)));
    case Op::ReduceSum:
    case Op::ReduceProd:
    case Op::ReduceMax:
    case Op::ReduceMin:
    case Op::ReduceAnd:
    case Op::ReduceOr:
      return reduce(i, thread), Result<void>();
    case Op::Exp2Unit:
    case Op::Saturate:
      return unit(i, thread), Result<void>();
    case Op::Ldexp:
      return ldexp(i, thread), Result<void>();
    case Op::Words:
      return words(i, thread), Result<void>();
    case Op::Dot4:
      return dot4(i, thread), Result<void>();
    case Op::Dot2:
      return dot2(i, thread), Result<void>();
    case Op::Check:
      return check(i, thread);
    case Op::CopyAsync:
      return copy_async(i, thread);
    case Op::FenceShared:
      return fences_[static_cast<std::size_t>(thread)] = now_.tick, Result<void>();
    case Op::CommitCopies:
      return queues_.commit(thread), Result<void>();
    case Op::WaitCopies:
      return wait_copies(i, thread), Result<void>();
    default:
      return source(i, thread), Result<void>();
  }
}

Result<void> Interpreter::inst(const ssa::Inst& i) {
  const Op op = static_cast<Op>(i.op);
  ++now_.tick;
  for (const ValueId v : i.results) defined_[v] = now_.tick;
  if (op == Op::MultiplyGroup) return multiply_group(i);
  if (op == Op::WaitProducts) return wait_products(i);
  WEFT_TRY(there(i.operands));
  if (const auto s = as_scalar(op)) return elementwise(i, *s), Result<void>();
  switch (op) {
    case Op::For:
      return loop(i);
    case Op::If:
      return branch(i);
    case Op::Barrier:
      return barrier(i);
    case Op::Shuffle:
      return shuffle(i);
    case Op::MultiplyMatrix:
      return multiply_matrix(i);
    case Op::LoadMatrix:
    case Op::LoadMatrixTurned:
      return load_matrix(i);
    case Op::FenceProducts:
      return fence_products(i);
    case Op::CommitProducts:
      return commit_products(i);
    case Op::ZeroTile:
      std::fill_n(lanes(i.results[0], 0), count(i.results[0]), Scalar{});
      return {};
    case Op::LoadTile:
      return load_tile(i);
    case Op::StoreTile:
      return store_tile(i);
    case Op::MultiplyTiles:
      return multiply_tiles(i), Result<void>();
    default:
      for (const int thread : active_) WEFT_TRY(alone(i, thread));
      return {};
  }
}

namespace {

Result<void> run(const Function& function, std::span<const BufferView> buffers,
                 std::span<const std::int64_t> sizes, std::int64_t grid, std::int32_t* check, Copies copies) {
  WEFT_TRY(verify(function));
  std::size_t memory = 0;
  for (const ssa::Buffer& b : function.buffers) memory += b.space == ssa::Space::Memory;
  if (buffers.size() != memory || sizes.size() != static_cast<std::size_t>(function.sizes)) {
    return user_error("bad-arguments",
                      fmt::format("{} buffers and {} sizes for a kernel of {} and {}",
                                  buffers.size(), sizes.size(), memory, function.sizes));
  }
  Interpreter interpreter(function, buffers, sizes, check, copies);
  WEFT_TRY(interpreter.allocate());
  for (std::int64_t pid = 0; pid < grid; ++pid) WEFT_TRY(interpreter.program(pid));
  return {};
}

}  // namespace

Result<void> interpret(const Function& function, std::span<const BufferView> buffers,
                       std::span<const std::int64_t> sizes, std::int64_t grid, Copies copies) {
  return run(function, buffers, sizes, grid, nullptr, copies);
}

Result<void> simulate(const Function& function, std::span<const BufferView> buffers,
                      std::span<const std::int64_t> sizes, std::int64_t grid, std::int32_t& check) {
  return run(function, buffers, sizes, grid, &check, Copies::ByTurns);
}

}  // namespace weft::kernel
