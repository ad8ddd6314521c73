#include <gmock/gmock.h>

#include "ssa/key.h"

namespace weft::ssa {
namespace {

enum Op : std::uint16_t { Const, Add, Store, For, If };
constexpr OpInfo kOps[] = {
    {"const", 0, false, 1, 0, Imm::Const, true},  {"add", 2, false, 1, 0, Imm::None, true},
    {"store", 2, true, 0, 0, Imm::Buffer, false}, {"for", 3, true, -1, 1, Imm::None, false},
    {"if", 1, false, -1, 2, Imm::None, false},
};
constexpr OpTable kTable = {"test", kOps};
const Type kI64 = Type::scalar(DType::I64);
const Type kF32 = Type::scalar(DType::F32);

Function sum_loop() {
  FunctionBuilder b(kTable, "sum");
  const int out = b.add_buffer({DType::F32, Space::Memory, false, true, 0});
  b.add_buffer({DType::F32, Space::OnChip, true, true, 64});
  b.add_size();
  const ValueId zero = b.append1(Const, {}, kI64, 0);
  const ValueId one = b.append1(Const, {}, kI64, 1);
  const ValueId init = b.append1(Const, {}, kF32, 0, 0.5);
  const ValueId yes = b.append1(Const, {}, Type::scalar(DType::Bool), 1);
  const auto loop = b.begin_for(For, zero, one, one, {init});
  const ValueId twice = b.append1(Add, {loop.carried[0], loop.carried[0]}, kF32);
  b.begin_if(If, yes, {kF32});
  b.begin_else({twice});
  const ValueId branch = b.end_if({init})[0];
  const ValueId sum = b.end_for({branch})[0];
  b.append(Store, {sum, zero}, {}, out);
  return b.finish();
}

constexpr const char* kText = R"(test @sum {
  buffer f32 memory written
  buffer f32 on_chip read written 64
  sizes 1
  %0 = const(0) : i64
  %1 = const(1) : i64
  %2 = const(0.5) : f32
  %3 = const(1) : bool
  %4 = for %0, %1, %1, %2 : f32 { %5: i64, %6: f32
    %7 = add %6, %6 : f32
    %8 = if %3 : f32 {
      yield %7
    } {
      yield %2
    }
    yield %8
  }
  store(0) %4, %0
}
)";

TEST(Ssa, Prints) { EXPECT_EQ(print(sum_loop()), kText); }

TEST(Ssa, ParsesWhatItPrints) {
  const auto f = parse(kText, kTable);
  ASSERT_TRUE(f.ok()) << f.error().what();
  EXPECT_EQ(print(*f), kText);
}

TEST(Ssa, KeysTellFunctionsApart) {
  Function f = sum_loop(), other = sum_loop();
  other.name = "another";
  EXPECT_EQ(key(f), key(other));
  EXPECT_EQ(key(f), key(parse(kText, kTable).value()));
  other.body.insts[0].fimm = 3;  // means nothing to an integer
  EXPECT_EQ(key(f), key(other));
  other.body.insts[0].imm = 300;
  EXPECT_NE(key(f), key(other));
  other = sum_loop();
  other.body.insts[2].fimm = -0.5;
  EXPECT_NE(key(f), key(other));
  other = sum_loop();
  other.buffers[1].elements = 65;
  EXPECT_NE(key(f), key(other));
  other = sum_loop();
  other.types[other.body.insts[0].results[0]] = Type::scalar(DType::I32);
  EXPECT_NE(key(f), key(other));
}

TEST(Ssa, ParseErrorsSayWhere) {
  const auto message = [](std::string body) {
    const auto f = parse("test @f {\n" + body + "}\n", kTable);
    return f.ok() ? "" : std::string(f.error().what());
  };
  EXPECT_THAT(message("  %0 = cnst(1) : i64\n"), testing::HasSubstr("did you mean 'const'?"));
  EXPECT_THAT(message("  %0 = add %1, %1 : i64\n"), testing::HasSubstr("%1 is not defined"));
  EXPECT_THAT(message("  %0 = const(1) : i65\n"), testing::HasSubstr("there is no dtype 'i65'"));
  EXPECT_THAT(message("  %0 = const(1) : i64\n  %0 = const(1) : i64\n"),
              testing::HasSubstr("defined twice"));
  EXPECT_THAT(message("  %0 = const(1) : i64[0]\n"), testing::HasSubstr("an extent from 1"));
  std::string deep = "  %0 = const(1) : bool\n";
  for (int i = 0; i < 10000; ++i) deep += "if %0 {\n";
  EXPECT_THAT(message(deep), testing::HasSubstr("deeper than"));
}

TEST(Ssa, VerifiesScopes) {
  Function f = sum_loop();
  EXPECT_TRUE(verify_structure(f).ok());
  f.body.insts.back().operands[0] = f.body.insts[4].regions[0].args[1];
  const auto r = verify_structure(f);
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().message(), testing::HasSubstr("is not defined here"));
}

TEST(Ssa, VerifiesYieldTypes) {
  Function f = sum_loop();
  f.body.insts[4].regions[0].yields[0] = f.body.insts[0].results[0];
  const auto r = verify_structure(f);
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().message(), testing::HasSubstr("yields 0: i64 against f32"));
}

TEST(Ssa, VerifiesBufferNumbers) {
  Function f = sum_loop();
  f.body.insts.back().imm = 7;
  EXPECT_THAT(verify_structure(f).error().message(), testing::HasSubstr("there is no buffer 7"));
}

TEST(Ssa, DeadCodeGoesWithItsOperands) {
  FunctionBuilder b(kTable, "dead");
  const int out = b.add_buffer({DType::F32, Space::Memory, false, true, 0});
  const ValueId zero = b.append1(Const, {}, kI64, 0);
  const ValueId one = b.append1(Const, {}, kI64, 1);
  const ValueId x = b.append1(Const, {}, kF32, 0, 1.5);
  const auto loop = b.begin_for(For, zero, one, one, {x});
  b.end_for({b.append1(Add, {loop.carried[0], x}, kF32)});
  b.append(Store, {x, zero}, {}, out);
  Function f = b.finish();
  eliminate_dead(f);
  EXPECT_EQ(print(f), R"(test @dead {
  buffer f32 memory written
  %0 = const(0) : i64
  %1 = const(1.5) : f32
  store(0) %1, %0
}
)");
}

}  // namespace
}  // namespace weft::ssa
