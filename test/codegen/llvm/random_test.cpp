// Random kernels against the interpreter: expressions of mixed dtypes, masked and indexed memory, loops, branches,
// reductions, as the builder folds and moves them.
#include <cmath>

#include "codegen/llvm/harness.h"

namespace weft::codegen::test {
namespace {

using S = ScalarOp;

class Generator {
 public:
  explicit Generator(unsigned seed) : rng_(seed), b_("k") {
    const int widths[] = {0, 4, 8, 16, 6};
    lanes_ = widths[rng_() % 5];
    b_.add_size();
    for (DType t : kinds) buffers_.push_back(b_.add_buffer({t, ssa::Space::Memory, true, false, 0}));
    for (DType t : kinds) outputs_.push_back(b_.add_buffer({t, ssa::Space::Memory, true, true, 0}));
    chip_ = b_.add_buffer({DType::F32, ssa::Space::OnChip, true, true, elements});
    pools_.resize(std::size(kinds));
  }

  ssa::Function make() {
    const int n = std::max(lanes_, 1);
    const ValueId size = b_.size(0);
    const ValueId first = b_.mul(b_.program_id(), b_.constant_i64(per_program));
    auto loop = b_.begin_for(b_.constant_i64(0), b_.constant_i64(per_program), b_.constant_i64(n), {floats(0)});
    index_ = b_.add(first, loop.iv);
    const ValueId lane = lanes_ == 0 ? index_ : b_.add(b_.splat(index_, lanes_), b_.iota(DType::I64, lanes_));
    mask_ = b_.scalar(S::Lt, {lane, b_.splat(size, lanes_)});
    pools_[0] = {loop.carried[0]};
    for (std::size_t k = 0; k < std::size(kinds); ++k) pools_[k].push_back(b_.load(buffers_[k], index_, lanes_, mask_));
    // The bytes of an on-chip buffer are undefined until written.
    b_.store(chip_, pools_[0].back(), b_.constant_i64(0));
    if (lanes_ != 0) gather();
    for (int i = 0; i < 12; ++i) step(2);
    for (std::size_t k = 0; k < std::size(kinds); ++k) b_.store(outputs_[k], pick(k), index_, mask_);
    const ValueId next = pick(0);
    b_.end_for({b_.select(b_.scalar(S::IsNan, {next}), floats(1), next)});
    return b_.finish();
  }

  static constexpr DType kinds[] = {DType::F32, DType::I32, DType::Bool, DType::I64, DType::U8, DType::F64};
  static constexpr std::int64_t elements = 64, per_program = 24;

 private:
  ValueId floats(double v) { return b_.splat(b_.constant(DType::F32, v), lanes_); }
  ValueId pick(std::size_t k) { return pools_[k][rng_() % pools_[k].size()]; }

  void gather() {
    // Any index, made valid: 0 <= (x mod elements).
    const ValueId at = b_.scalar(S::Mod, {pools_[3].back(), b_.splat(b_.constant_i64(elements), lanes_)});
    pools_[0].push_back(b_.gather(buffers_[0], at, mask_));
    pools_[4].push_back(b_.gather(buffers_[4], at));
  }

  ValueId arithmetic(std::size_t k) {
    const DType t = kinds[k];
    static constexpr S real[] = {S::Add, S::Sub, S::Mul, S::Div, S::Max, S::Min, S::FloorDiv};
    static constexpr S whole[] = {S::Add, S::Sub, S::Mul, S::Div, S::Max, S::Min, S::FloorDiv, S::Mod, S::Fmod, S::And,
                                  S::Or, S::Xor, S::Shl, S::Shr};
    static constexpr S logic[] = {S::And, S::Or, S::Xor};
    S op = is_float(t) ? real[rng_() % std::size(real)] : whole[rng_() % std::size(whole)];
    if (is_bool(t)) op = logic[rng_() % std::size(logic)];
    return b_.scalar(op, {pick(k), pick(k)});
  }

  void step(int depth) {
    const std::size_t k = rng_() % std::size(kinds);
    static constexpr S compares[] = {S::Eq, S::Ne, S::Lt, S::Le, S::Gt, S::Ge};
    switch (rng_() % 9) {
      case 0: pools_[2].push_back(b_.scalar(compares[rng_() % 6], {pick(k), pick(k)})); return;
      case 1: pools_[k].push_back(b_.select(pick(2), pick(k), pick(k))); return;
      case 2: pools_[k].push_back(b_.cast(pick(rng_() % std::size(kinds)), kinds[k])); return;
      case 3:
        if (depth > 0) branch(depth);
        return;
      case 4:
        if (depth > 0) nested(depth);
        return;
      case 5:
        if (lanes_ != 0 && (kinds[k] != DType::Bool)) {
          pools_[k].push_back(b_.splat(b_.reduce(rng_() % 2 ? Combine::Max : Combine::Sum, pick(k)), lanes_));
        }
        return;
      case 6: pools_[0].push_back(b_.scalar(S::Fma, {pick(0), pick(0), pick(0)})); return;
      default: pools_[k].push_back(arithmetic(k)); return;
    }
  }

  void branch(int depth) {
    const auto saved = pools_;
    const ValueId cond = b_.scalar(S::Lt, {index_, b_.constant_i64(static_cast<std::int64_t>(rng_() % 80))});
    b_.begin_if(cond, {b_.type(pick(0)), b_.type(pick(3))});
    for (int i = 0; i < 3; ++i) step(depth - 1);
    const std::vector<ValueId> yes = {pick(0), pick(3)};
    pools_ = saved;
    b_.begin_else(yes);
    for (int i = 0; i < 3; ++i) step(depth - 1);
    const std::vector<ValueId> no = {pick(0), pick(3)};
    pools_ = saved;
    const auto results = b_.end_if(no);
    pools_[0].push_back(results[0]);
    pools_[3].push_back(results[1]);
  }

  void nested(int depth) {
    const auto saved = pools_;
    const int n = std::max(lanes_, 1);
    auto loop = b_.begin_for(b_.constant_i64(0), b_.scalar(S::Mod, {index_, b_.constant_i64(3)}), b_.constant_i64(1),
                             {pick(0), pick(1)});
    pools_[0].push_back(loop.carried[0]);
    pools_[1].push_back(loop.carried[1]);
    pools_[0].push_back(b_.load(chip_, b_.constant_i64(0), lanes_));
    const ValueId at = b_.add(b_.mul(loop.iv, b_.constant_i64(n)), b_.constant_i64(1));
    pools_[0].push_back(b_.load(buffers_[0], at, lanes_));
    for (int i = 0; i < 3; ++i) step(depth - 1);
    b_.store(chip_, pick(0), b_.constant_i64(0));
    const std::vector<ValueId> next = {pick(0), pick(1)};
    pools_ = saved;
    const auto results = b_.end_for(next);
    pools_[0].push_back(results[0]);
    pools_[1].push_back(results[1]);
  }

  std::mt19937_64 rng_;
  kernel::Builder b_;
  int lanes_;
  int chip_ = 0;
  ValueId index_ = 0, mask_ = 0;
  std::vector<int> buffers_, outputs_;
  std::vector<std::vector<ValueId>> pools_;  // values by kind
};

void fill(Guarded& buffer, std::mt19937_64& rng) {
  for (std::int64_t i = 0; i < buffer.elements(); ++i) {
    const auto v = static_cast<std::int64_t>(rng() >> (rng() % 64));
    if (is_float(buffer.dtype())) buffer.set(i, {std::ldexp(static_cast<double>(v % 2001 - 1000), -7), 0});
    else buffer.set(i, {0, is_bool(buffer.dtype()) ? v & 1 : v});
  }
}

// Equal, except that a NaN may have any bits and a zero any sign.
bool same(DType t, Scalar a, Scalar b) {
  if (!is_float(t)) return a.i == b.i;
  return a.f == b.f || (std::isnan(a.f) && std::isnan(b.f));
}

void check_seed(unsigned seed) {
  const ssa::Function f = Generator(seed).make();
  constexpr std::int64_t grid = 3, size = grid * Generator::per_program - 5;
  std::mt19937_64 rng(seed);
  std::vector<Guarded> inputs, got, want;
  for (DType t : Generator::kinds) fill(inputs.emplace_back(t, size), rng);
  for (DType t : Generator::kinds) got.emplace_back(t, size), want.emplace_back(t, size);
  std::vector<Guarded*> buffers;
  std::vector<kernel::BufferView> views;
  for (Guarded& g : inputs) buffers.push_back(&g), views.push_back({g.data(), size});
  for (Guarded& g : got) buffers.push_back(&g);
  for (Guarded& g : want) views.push_back({g.data(), size});
  const std::vector<std::int64_t> sizes = {size};
  kernel::interpret(f, views, sizes, grid).value();
  const Compiled code = build(f);
  if (!code.runs) return;
  ASSERT_EQ(code.run(buffers, sizes, 0, grid), 0);
  for (std::size_t k = 0; k < got.size(); ++k) {
    for (std::int64_t i = 0; i < size; ++i) {
      const DType t = Generator::kinds[k];
      ASSERT_TRUE(same(t, got[k].at(i), want[k].at(i)))
          << "output " << k << " at " << i << ": " << got[k].at(i).f << "/" << got[k].at(i).i << " for "
          << want[k].at(i).f << "/" << want[k].at(i).i << "\n" << ssa::print(f);
    }
    ASSERT_TRUE(got[k].intact());
  }
}

TEST(RandomKernels, MatchTheInterpreter) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(check_seed(seed));
  }
}

}  // namespace
}  // namespace weft::codegen::test
