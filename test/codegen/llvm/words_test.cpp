// Dot products of words, of bytes and of bf16, at every level of CPU that this one includes, against the interpreter.
#include <bit>
#include <cmath>

#include "base/machine.h"
#include "codegen/llvm/harness.h"

namespace weft::codegen::test {
namespace {

// out = dot4(words(a), words(b), out), with `lanes` words.
ssa::Function one_dot(int lanes) {
  Maker m;
  const int a = m.in(DType::U8), b = m.in(DType::I8), out = m.out(DType::I32);
  const ValueId zero = m.i64(0);
  const auto words = [&](int buffer) {
    const Type type = lanes == 0 ? Type::scalar(DType::I32) : Type::vector(DType::I32, lanes);
    return m.append1(Maker::id(Op::Words), {m.load(buffer, zero, 4 * std::max(lanes, 1))}, type);
  };
  const ValueId x = words(a), y = words(b), sum = m.load(out, zero, lanes);
  const Type type = m.type(sum);
  m.store(out, m.append1(Maker::id(Op::Dot4), {x, y, sum}, type), zero);
  return m.finish();
}

TargetDesc target_of(const char* level) {
  Machine machine = measured_machine();
  EXPECT_TRUE(restrict_to_level(machine, level));
  return target_for(machine);
}

// The levels that this machine has, or the one CPU that is emulated.
std::vector<TargetDesc> targets() {
  if (emulated_cpu()) return {tested_target()};
  std::vector<TargetDesc> known;
  for (const char* level : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "native"}) {
    Machine machine = measured_machine();
    if (restrict_to_level(machine, level)) known.push_back(target_for(machine));
  }
  return known;
}

void fill(Guarded& bytes, std::mt19937& random, bool extremes) {
  for (std::int64_t i = 0; i < bytes.elements(); ++i) {
    const bool sign = is_signed_int(bytes.dtype());
    const std::int64_t ends = random() % 2 == 0 ? (sign ? -128 : 0) : (sign ? 127 : 255);
    bytes.set(i, {0, extremes ? ends : static_cast<std::int64_t>(random() % 256) - (sign ? 128 : 0)});
  }
}

TEST(Dot4, IsExactAtEveryLevel) {
  std::mt19937 random(5);
  for (const int lanes : {0, 2, 3, 4, 8, 16, 32}) {
    const ssa::Function f = one_dot(lanes);
    const auto verified = kernel::verify(f);
    ASSERT_TRUE(verified.ok()) << verified.error().what() << ssa::print(f);
    for (const TargetDesc& target : targets()) {
      SCOPED_TRACE(target.cpu + " " + std::to_string(lanes));
      const Compiled code = build(f, target);
      for (int round = 0; round < 20; ++round) {
        const int n = std::max(lanes, 1);
        Guarded a(DType::U8, 4 * n), b(DType::I8, 4 * n), found(DType::I32, n), expected(DType::I32, n);
        fill(a, random, round % 2 == 0);
        fill(b, random, round % 2 == 0);
        for (int i = 0; i < n; ++i) {
          const Scalar start{0, round < 4 ? (i % 2 == 0 ? INT32_MAX : INT32_MIN) : static_cast<std::int32_t>(random())};
          found.set(i, start);
          expected.set(i, start);
        }
        const std::vector<kernel::BufferView> views = {{a.data(), 4 * n}, {b.data(), 4 * n}, {expected.data(), n}};
        ASSERT_TRUE(kernel::interpret(f, views, {}, 1).ok());
        EXPECT_EQ(code.run({&a, &b, &found}), 0);
        for (int i = 0; i < n; ++i) ASSERT_EQ(found.at(i).i, expected.at(i).i) << "lane " << i;
        EXPECT_TRUE(found.intact());
      }
    }
  }
}

TEST(Dot4, NeverSaturates) {
  const ssa::Function f = one_dot(8);
  const Entry entry{&f, "k"};
  const std::string v3 = emit_assembly({&entry, 1}, target_of("x86-64-v3")).value();
  EXPECT_NE(v3.find("vpmaddwd"), std::string::npos) << v3;
  EXPECT_EQ(v3.find("vpmaddubsw"), std::string::npos) << v3;
  if (measured_machine().has_vnni) {
    const std::string native = emit_assembly({&entry, 1}, target_of("native")).value();
    EXPECT_NE(native.find("vpdpbusd"), std::string::npos) << native;
    EXPECT_EQ(native.find("vpdpbusds"), std::string::npos) << native;
  }
}

// out = dot2(words(a), words(b), out), with `lanes` words.
ssa::Function one_dot_of_pairs(int lanes) {
  Maker m;
  const int a = m.in(DType::BF16), b = m.in(DType::BF16), out = m.out(DType::F32);
  const ValueId zero = m.i64(0);
  const auto words = [&](int buffer) {
    const Type type = lanes == 0 ? Type::scalar(DType::I32) : Type::vector(DType::I32, lanes);
    return m.append1(Maker::id(Op::Words), {m.load(buffer, zero, 2 * std::max(lanes, 1))}, type);
  };
  const ValueId x = words(a), y = words(b), sum = m.load(out, zero, lanes);
  m.store(out, m.append1(Maker::id(Op::Dot2), {x, y, sum}, m.type(sum)), zero);
  return m.finish();
}

// A float of any sign, with an exponent in [low, high].
float float_of(std::mt19937& random, unsigned low, unsigned high) {
  const unsigned exponent = low + random() % (high - low + 1);
  return std::bit_cast<float>(static_cast<std::uint32_t>((random() & 1) << 31 | exponent << 23 | (random() & 0x7fffff)));
}

bool has_unit(const TargetDesc& target) { return !emulated_cpu() && target.machine.has_avx512_bf16; }

// Subnormals only where there is the unit that the interpreter imitates.
TEST(Dot2, IsTheInterpretersAtEveryLevel) {
  std::mt19937 random(7);
  for (const int lanes : {0, 2, 3, 4, 8, 16, 32}) {
    const ssa::Function f = one_dot_of_pairs(lanes);
    const auto verified = kernel::verify(f);
    ASSERT_TRUE(verified.ok()) << verified.error().what() << ssa::print(f);
    for (const TargetDesc& target : targets()) {
      SCOPED_TRACE(target.cpu + " " + std::to_string(lanes));
      const Compiled code = build(f, target);
      const bool by_unit = has_unit(target) && (lanes == 4 || lanes == 8 || lanes == 16);
      for (int round = 0; round < 30; ++round) {
        const int n = std::max(lanes, 1);
        Guarded a(DType::BF16, 2 * n), b(DType::BF16, 2 * n), found(DType::F32, n), expected(DType::F32, n);
        const bool any = round % 3 == 2 && by_unit;
        const unsigned low = any ? 0 : round % 3 == 2 ? 80 : 120, high = any ? 255 : 134;  // 255: infinities and NaN
        for (Guarded* side : {&a, &b}) {
          for (int i = 0; i < 2 * n; ++i) side->set(i, {float_of(random, low, high), 0});
        }
        for (int i = 0; i < n; ++i) {
          const Scalar start{float_of(random, low, high), 0};
          found.set(i, start);
          expected.set(i, start);
        }
        if (round % 5 == 0) a.set(0, {INFINITY, 0});
        if (round % 7 == 0) b.set(1, {NAN, 0});
        const std::vector<kernel::BufferView> views = {{a.data(), 2 * n}, {b.data(), 2 * n}, {expected.data(), n}};
        ASSERT_TRUE(kernel::interpret(f, views, {}, 1).ok());
        EXPECT_EQ(code.run({&a, &b, &found}), 0);
        for (int i = 0; i < n; ++i) {
          const double x = found.at(i).f, y = expected.at(i).f;
          ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << "lane " << i << ": " << x << " and " << y;
        }
        EXPECT_TRUE(found.intact());
      }
    }
  }
}

TEST(Dot2, TakesTheUnit) {
  if (emulated_cpu() || !measured_machine().has_avx512_bf16) GTEST_SKIP() << "no unit for it";
  const ssa::Function f = one_dot_of_pairs(16);
  const Entry entry{&f, "k"};
  const std::string native = emit_assembly({&entry, 1}, target_of("native")).value();
  EXPECT_NE(native.find("vdpbf16ps"), std::string::npos) << native;
}

}  // namespace
}  // namespace weft::codegen::test
