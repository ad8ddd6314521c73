// Tiles of the matrix unit, against the interpreter: under an emulator where the CPU has none (test/CMakeLists.txt).
#include "codegen/llvm/harness.h"

namespace weft::codegen::test {
namespace {

// out[32, 32] (+)= a[32, n * steps] b, by 2 x 2 tiles; b's words for its first and second 16 columns lie side by side.
ssa::Function product(DType a_type, DType b_type, std::int64_t depth) {
  Maker m;
  const bool bytes = bits(a_type) == 8;
  const DType sum_type = bytes ? DType::I32 : DType::F32;
  const std::int64_t steps = bytes ? 64 : 32, side = steps / 16;
  const int a = m.in(a_type), b = m.in(b_type), out = m.out(sum_type);
  const auto tile = [](DType t) { return kernel::matrix_tile(t); };
  const auto load = [&](int buffer, ValueId index, std::int64_t stride) {
    return m.append1(Maker::id(Op::LoadTile), {index, m.i64(stride)}, tile(m.function().buffers[buffer].dtype), buffer);
  };
  std::vector<ValueId> inits;
  for (int n = 0; n < 4; ++n) {
    const bool zero = n % 2 == 0;  // the others start with what is there
    inits.push_back(zero ? m.append1(Maker::id(Op::ZeroTile), {}, tile(sum_type)) : load(out, m.i64(n / 2 * 512 + 16), 32));
  }
  auto loop = m.loop(m.i64(0), m.i64(depth), m.i64(steps), inits);
  std::vector<ValueId> left, right, sums;
  for (int r = 0; r < 2; ++r) left.push_back(load(a, m.add(loop.iv, m.i64(r * 16 * depth)), depth));
  const ValueId row = m.mul(loop.iv, m.i64(32));
  for (int c = 0; c < 2; ++c) right.push_back(load(b, m.add(row, m.i64(c * 16 * side)), 32 * side));
  for (int n = 0; n < 4; ++n) {
    sums.push_back(m.append1(Maker::id(Op::MultiplyTiles), {left[n / 2], right[n % 2], loop.carried[n]}, tile(sum_type)));
  }
  const std::vector<ValueId> results = m.end_for(sums);
  for (int n = 0; n < 4; ++n) {
    m.append(Maker::id(Op::StoreTile), {results[n], m.i64(n / 2 * 512 + n % 2 * 16), m.i64(32)}, {}, out);
  }
  return m.finish();
}

void compare(DType a_type, DType b_type, bool extremes) {
  std::mt19937 random(7);
  const std::int64_t depth = 192;
  const ssa::Function f = product(a_type, b_type, depth);
  const auto verified = kernel::verify(f);
  ASSERT_TRUE(verified.ok()) << verified.error().what() << ssa::print(f);
  const Compiled code = build(f);
  const DType sum_type = is_float(a_type) ? DType::F32 : DType::I32;
  Guarded a(a_type, 32 * depth), b(b_type, 32 * depth), found(sum_type, 1024), expected(sum_type, 1024);
  for (Guarded* operand : {&a, &b}) {
    for (std::int64_t i = 0; i < operand->elements(); ++i) {
      const bool sign = operand->dtype() != DType::U8;
      const std::int64_t whole = static_cast<std::int64_t>(random() % 256) - (sign ? 128 : 0);
      operand->set(i, extremes ? Scalar{0, random() % 2 == 0 ? (sign ? -128 : 0) : (sign ? 127 : 255)}
                               : Scalar{static_cast<double>(whole) / 16, whole});
    }
  }
  for (std::int64_t i = 0; i < 1024; ++i) {
    const Scalar start = extremes ? Scalar{0, INT32_MAX} : Scalar{static_cast<double>(i), i};
    found.set(i, start), expected.set(i, start);
  }
  const std::vector<kernel::BufferView> views = {{a.data(), a.elements()}, {b.data(), b.elements()}, {expected.data(), 1024}};
  ASSERT_TRUE(kernel::interpret(f, views, {}, 1).ok());
  EXPECT_EQ(code.run({&a, &b, &found}), 0);
  for (std::int64_t i = 0; i < 1024; ++i) {  // small numbers: sums of bf16 are exact, too
    ASSERT_EQ(found.at(i).i, expected.at(i).i) << i;
    ASSERT_EQ(found.at(i).f, expected.at(i).f) << i;
  }
  EXPECT_TRUE(found.intact());
}

class Tiles : public testing::Test {
 protected:
  void SetUp() override {
    const Machine machine = measured_machine();
    if (!machine.has_amx_bf16 || !machine.has_amx_int8) GTEST_SKIP() << "no AMX";
  }
};

TEST_F(Tiles, MultiplyHalves) { compare(DType::BF16, DType::BF16, false); }

TEST_F(Tiles, MultiplyBytes) {
  for (const DType a : {DType::U8, DType::I8}) {
    for (const DType b : {DType::U8, DType::I8}) {
      compare(a, b, false);
      compare(a, b, true);
    }
  }
}

TEST(TilesOfNoUnit, AreRefused) {
  const ssa::Function f = product(DType::BF16, DType::BF16, 64);
  Machine machine = measured_machine();
  remove_features(machine, {"-amx"});
  const Entry entry{&f, "k"};
  const auto object = compile_object({&entry, 1}, target_for(machine));
  ASSERT_FALSE(object.ok());
  EXPECT_EQ(object.error().code(), "matrix-unit");
}

TEST(TilesOfOtherMachines, AreConfiguredAndReleased) {
  const ssa::Function f = product(DType::BF16, DType::BF16, 64);
  const Entry entry{&f, "k"};
  const std::string text = emit_assembly({&entry, 1}, target_for(*cpu_named("sapphirerapids"))).value();
  for (const char* what : {"ldtilecfg", "tilezero", "tileloadd", "tdpbf16ps", "tilestored", "tilerelease"}) {
    EXPECT_NE(text.find(what), std::string::npos) << what << " in\n" << text;
  }
}

}  // namespace
}  // namespace weft::codegen::test
