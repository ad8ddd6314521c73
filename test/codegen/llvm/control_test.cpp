// Loops, branches, memory operands, reductions, checks; objects and what must be refused.
#include <cmath>

#include "codegen/llvm/harness.h"

namespace weft::codegen::test {
namespace {

const std::vector<DType> dtypes = {DType::Bool, DType::I8,  DType::U16,  DType::I32, DType::U64,
                                   DType::F16,  DType::BF16, DType::F32, DType::F64};

Scalar small(DType t, std::int64_t v) {
  if (is_bool(t)) return {0, v % 2};
  return is_float(t) ? Scalar{static_cast<double>(v % 50), 0} : Scalar{0, v % 50};
}

TEST(Control, ProgramsOfARangeOnly) {
  Maker m;
  m.add_size();
  m.add_size();
  const int out = m.out(DType::I64);
  m.store(out, m.mul(m.pid(), m.size(1)), m.pid());
  const ssa::Function f = m.finish();
  Guarded y(DType::I64, 10);
  build(f).run({&y}, {0, 7}, 3, 6);
  for (int i = 0; i < 10; ++i) {
    if (i >= 3 && i < 6) EXPECT_EQ(y.at(i).i, i * 7);
    else EXPECT_TRUE(y.untouched(i));
  }
}

TEST(Control, LoopCarriesValuesAndMayNotRun) {
  Maker m;
  m.add_size();
  m.add_size();
  const int out = m.out(DType::I64);
  auto outer = m.loop(m.i64(0), m.size(0), m.i64(1), {m.i64(1), m.i64(100)});
  auto inner = m.loop(outer.iv, m.size(1), m.i64(2), {outer.carried[0]});
  const auto sum = m.end_for({m.add(inner.carried[0], inner.iv)});
  const auto results = m.end_for({sum[0], outer.carried[0]});
  m.store(out, results[0], m.i64(0));
  m.store(out, results[1], m.i64(1));
  const ssa::Function f = m.finish();
  const Compiled code = build(f);
  for (std::int64_t a : {0, 1, 5}) {
    for (std::int64_t b : {0, 1, 4, 9}) {
      Guarded y(DType::I64, 2);
      code.run({&y}, {a, b});
      std::int64_t x = 1, before = 100;
      for (std::int64_t i = 0; i < a; ++i) {
        const std::int64_t old = x;
        for (std::int64_t j = i; j < b; j += 2) x += j;
        before = old;
      }
      EXPECT_EQ(y.at(0).i, x);
      EXPECT_EQ(y.at(1).i, before);
    }
  }
}

TEST(Control, IfYieldsAndNests) {
  Maker m;
  m.add_size();
  const int out = m.out(DType::F32);
  auto loop = m.loop(m.i64(0), m.i64(8), m.i64(1), {m.real(DType::F32, 1)});
  m.begin_if(Maker::id(Op::If), m.lt(loop.iv, m.size(0)), {Type::scalar(DType::F32)});
  const ValueId twice = m.add(loop.carried[0], loop.carried[0]);
  m.begin_if(Maker::id(Op::If), m.lt(loop.iv, m.i64(2)), {Type::scalar(DType::F32)});
  m.begin_else({twice});
  const auto inner = m.end_if({loop.carried[0]});
  m.begin_else({inner[0]});
  const ValueId index = m.add(loop.iv, m.i64(0));
  m.store(out, loop.carried[0], index);
  const auto result = m.end_if({m.add(loop.carried[0], m.real(DType::F32, 1))});
  m.end_for({result[0]});
  const ssa::Function f = m.finish();
  Guarded y(DType::F32, 8);
  build(f).run({&y}, {4});
  float x = 1;
  for (int i = 0; i < 8; ++i) {
    if (i < 4) {
      if (i < 2) x += x;
      EXPECT_TRUE(y.untouched(i));
    } else {
      EXPECT_EQ(y.at(i).f, x);
      x += 1;
    }
  }
}

TEST(Memory, MaskedLanesAreNotAccessed) {
  for (DType t : dtypes) {
    for (int lanes : {0, 4, 8, 16}) {
      SCOPED_TRACE(std::string(name(t)) + " " + std::to_string(lanes));
      const int n = std::max(lanes, 1);
      Maker m;
      m.add_size();
      const int in = m.in(t), out = m.out(t);
      auto loop = m.loop(m.i64(0), m.size(0), m.i64(n), {});
      ValueId mask;
      if (lanes == 0) {
        mask = m.lt(m.add(loop.iv, m.i64(1)), m.size(0));
      } else {
        mask = m.lt(m.add(m.splat(loop.iv, lanes), m.iota(DType::I64, lanes)),
                    m.splat(m.add(m.size(0), m.i64(-1)), lanes));
      }
      const ValueId x = m.load(in, loop.iv, lanes, mask);
      m.store(out, x, loop.iv, mask);
      m.end_for({});
      const ssa::Function f = m.finish();
      const Compiled code = build(f);
      for (std::int64_t size : {1, 3, 17, 33}) {
        Guarded a(t, size), b(t, size);
        for (int i = 0; i < size; ++i) a.set(i, small(t, i));
        code.run({&a, &b}, {size});
        EXPECT_TRUE(b.intact());
        for (int i = 0; i + 1 < size; ++i) {
          ASSERT_EQ(b.at(i).i, a.at(i).i);
          ASSERT_EQ(b.at(i).f, a.at(i).f);
        }
        EXPECT_TRUE(b.untouched(size - 1));
      }
    }
  }
}

TEST(Memory, MaskedLanesAreZero) {
  for (DType t : dtypes) {
    Maker m;
    const int in = m.in(t), out = m.out(t);
    const ValueId mask = m.lt(m.iota(DType::I64, 8), m.splat(m.i64(3), 8));
    m.store(out, m.load(in, m.i64(0), 8, mask), m.i64(0));
    m.store(out, m.gather(in, m.iota(DType::I64, 8), mask), m.i64(8));
    m.store(out, m.load(in, m.i64(2), 0, m.lt(m.i64(3), m.i64(2))), m.i64(16));
    const ssa::Function f = m.finish();
    Guarded a(t, 3), b(t, 17);
    for (int i = 0; i < 3; ++i) a.set(i, small(t, 7));
    build(f).run({&a, &b});
    for (int i = 0; i < 17; ++i) {
      const Scalar want = i < 16 && i % 8 < 3 ? small(t, 7) : small(t, 0);
      EXPECT_EQ(b.at(i).f, want.f) << name(t);
      EXPECT_EQ(b.at(i).i, want.i) << name(t);
    }
  }
}

TEST(Memory, GatherAndScatterInLaneOrder) {
  for (DType t : dtypes) {
    for (int lanes : {4, 8, 16}) {
      Maker m;
      const int index = m.in(DType::I64), in = m.in(t), out = m.out(t);
      const ValueId at = m.load(index, m.i64(0), lanes);
      const ValueId mask = m.lt(m.iota(DType::I64, lanes), m.splat(m.i64(lanes - 1), lanes));
      m.scatter(out, m.gather(in, at, mask), m.load(index, m.i64(lanes), lanes), mask);
      const ssa::Function f = m.finish();
      Guarded where(DType::I64, 2 * lanes), a(t, 40), b(t, 8);
      std::mt19937_64 rng(lanes);
      for (int i = 0; i < lanes; ++i) {
        where.set(i, {0, static_cast<std::int64_t>(rng() % 40)});
        where.set(lanes + i, {0, static_cast<std::int64_t>(rng() % 8)});
      }
      where.set(lanes - 1, {0, 1 << 30});
      for (int i = 0; i < 40; ++i) a.set(i, small(t, i));
      build(f).run({&where, &a, &b});
      std::vector<int> from(8, -1);
      for (int i = 0; i + 1 < lanes; ++i) from[where.at(lanes + i).i] = static_cast<int>(where.at(i).i);
      for (int i = 0; i < 8; ++i) {
        if (from[i] < 0) EXPECT_TRUE(b.untouched(i));
        else EXPECT_TRUE(b.at(i).i == a.at(from[i]).i && b.at(i).f == a.at(from[i]).f) << name(t);
      }
      EXPECT_TRUE(b.intact());
    }
  }
}

TEST(Memory, OnChipBuffersAreApart) {
  Maker m;
  const int out = m.out(DType::F32);
  const int small_buffer = m.on_chip(DType::Bool, 3);
  const int buffer = m.on_chip(DType::F32, 32);
  EXPECT_EQ(scratch_bytes(m.function()), 64 + 128);
  m.store(buffer, m.splat(m.real(DType::F32, 2), 16), m.i64(0));
  m.store(buffer, m.splat(m.real(DType::F32, 3), 16), m.i64(16));
  m.store(small_buffer, m.lt(m.i64(0), m.i64(1)), m.i64(2));
  m.store(out, m.load(buffer, m.i64(8), 16), m.i64(0));
  const ssa::Function f = m.finish();
  Guarded y(DType::F32, 16);
  build(f).run({&y});
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y.at(i).f, i < 8 ? 2 : 3);
}

TEST(Reduce, EveryKindAndWidth) {
  const std::vector<std::pair<Op, Combine>> kinds = {{Op::ReduceSum, Combine::Sum}, {Op::ReduceProd, Combine::Prod},
                                                     {Op::ReduceMax, Combine::Max}, {Op::ReduceMin, Combine::Min},
                                                     {Op::ReduceAnd, Combine::And}, {Op::ReduceOr, Combine::Or}};
  for (DType t : dtypes) {
    for (auto [op, kind] : kinds) {
      const bool bitwise = kind == Combine::And || kind == Combine::Or;
      if (is_float(t) ? bitwise : is_bool(t) && !bitwise && kind != Combine::Max && kind != Combine::Min) continue;
      for (int lanes : {1, 2, 3, 4, 7, 8, 16}) {
        Maker m;
        const int in = m.in(t), out = m.out(t);
        m.store(out, m.reduce(op, m.load(in, m.i64(0), lanes)), m.i64(0));
        const ssa::Function f = m.finish();
        Guarded x(t, lanes), y(t, 1);
        Scalar want = identity(kind, t);
        for (int i = 0; i < lanes; ++i) {
          x.set(i, small(t, kind == Combine::Prod ? 1 + i % 2 : i * 5 % 13 + 1));
          want = combine(kind, t, want, x.at(i));
        }
        build(f).run({&x, &y});
        EXPECT_EQ(y.at(0).f, want.f) << name(t) << " " << name(kind) << " " << lanes;
        EXPECT_EQ(y.at(0).i, want.i) << name(t) << " " << name(kind) << " " << lanes;
      }
    }
  }
}

TEST(Reduce, NanComesThroughMaxInAnyLane) {
  for (int lane = 0; lane < 16; ++lane) {
    Maker m;
    const int in = m.in(DType::F32), out = m.out(DType::F32);
    m.store(out, m.reduce(Op::ReduceMax, m.load(in, m.i64(0), 16)), m.i64(0));
    m.store(out, m.reduce(Op::ReduceMin, m.load(in, m.i64(0), 16)), m.i64(1));
    const ssa::Function f = m.finish();
    Guarded x(DType::F32, 16), y(DType::F32, 2);
    for (int i = 0; i < 16; ++i) x.set(i, {i == lane ? std::nan("") : i - 8.0, 0});
    build(f).run({&x, &y});
    EXPECT_TRUE(std::isnan(y.at(0).f) && std::isnan(y.at(1).f)) << lane;
  }
}

TEST(Check, StoresItsCode) {
  Maker m;
  const int in = m.in(DType::I32);
  const ValueId x = m.load(in, m.i64(0), 8);
  m.append(Maker::id(Op::Check), {m.lt(x, m.splat(m.append1(Maker::id(Op::Const), {}, Type::scalar(DType::I32), 10), 8))}, {},
           42);
  const ssa::Function f = m.finish();
  const Compiled code = build(f);
  Guarded a(DType::I32, 8);
  for (int i = 0; i < 8; ++i) a.set(i, {0, i});
  EXPECT_EQ(code.run({&a}), 0);
  a.set(5, {0, 10});
  EXPECT_EQ(code.run({&a}), 42);
}

TEST(Refused, DtypesWithoutRegisters) {
  for (DType t : {DType::F8E8M0, DType::I4, DType::C64}) {
    Maker m;
    m.in(t);
    const ssa::Function f = m.finish();
    const Entry entry{&f, "k"};
    auto result = compile_object({&entry, 1}, host_target());
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind(), ErrorKind::Unsupported);
    EXPECT_NE(result.error().message().find(name(t)), std::string::npos);
  }
}

TEST(Refused, OpsThatMathExpands) {
  Maker m;
  const int in = m.in(DType::F32);
  m.op(ScalarOp::Erf, {m.load(in, m.i64(0), 8)}, DType::F32);
  const ssa::Function f = m.finish();
  const Entry entry{&f, "k"};
  auto result = compile_object({&entry, 1}, host_target());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind(), ErrorKind::Internal);
  EXPECT_NE(result.error().message().find("erf"), std::string::npos);
}

#if defined(__x86_64__)
TEST(Refused, TargetsThatWouldNeedLibraryCalls) {
  Maker m;
  const int in = m.in(DType::F32), out = m.out(DType::F32);
  const ValueId x = m.load(in, m.i64(0), 4);
  m.store(out, m.op(ScalarOp::Floor, {x}, DType::F32), m.i64(0));
  const ssa::Function f = m.finish();
  TargetDesc target = host_target();
  target.cpu = "x86-64";
  target.features = "";
  const Entry entry{&f, "k"};
  auto result = compile_object({&entry, 1}, target);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("floorf"), std::string::npos);
}
#endif

TEST(Objects, ManyKernelsInSeveralObjects) {
  std::vector<ssa::Function> functions;
  for (int i = 0; i < 20; ++i) {
    Maker m("same name");
    const int out = m.out(DType::I64);
    m.store(out, m.i64(i * 11), m.i64(0));
    functions.push_back(m.finish());
  }
  std::vector<Entry> entries;
  for (int i = 0; i < 20; ++i) entries.push_back({&functions[i], "kernel" + std::to_string(i)});
  Timing timing;
  Options options;
  options.timing = &timing;
  const std::span<const Entry> all(entries);
  std::vector<Object> objects;
  for (auto part : {all.first(7), all.subspan(7)}) {
    objects.push_back(compile_object(part, host_target(), options).value());
    EXPECT_EQ(compile_object(part, host_target(), options).value(), objects.back());
  }
  const auto bytes = objects;  // as a cache would give them back
  LoadedCode code = LoadedCode::load(bytes, &timing).value();
  for (int i = 0; i < 20; ++i) {
    std::int64_t y = -1, status = 0;
    void* buffers[] = {&y};
    code.lookup(entries[i].symbol).value()(buffers, nullptr, 0, 1, nullptr, &status);
    EXPECT_EQ(y, i * 11);
  }
  EXPECT_FALSE(code.lookup("absent").ok());
  EXPECT_GT(timing.codegen_ms, 0);
  EXPECT_GT(timing.link_ms, 0);
}

TEST(Objects, BrokenBytesAreAnError) {
  const std::vector<Object> objects = {Object(100, 'x')};
  auto code = LoadedCode::load(objects);
  EXPECT_TRUE(!code.ok() || !code->lookup("k").ok());
}

}  // namespace
}  // namespace weft::codegen::test
