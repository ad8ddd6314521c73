// The code of matrix microkernels: accumulators stay in registers, addresses fold into the instructions.
#include "codegen/llvm/assembly.h"
#include "codegen/llvm/harness.h"

namespace weft::codegen::test {
namespace {

// C[rows, lanes*cols] = A (unpacked, row stride a size parameter) * B (one packed panel).
ssa::Function microkernel(int rows, int cols, int lanes) {
  kernel::Builder b("k");
  b.add_size();
  b.add_size();
  const int x = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int w = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int y = b.add_buffer({DType::F32, ssa::Space::Memory, true, true, 0});
  const ValueId row = b.mul(b.program_id(), b.constant_i64(rows));
  const ValueId zero = b.splat(b.constant(DType::F32, 0), lanes);
  auto loop = b.begin_for(b.constant_i64(0), b.size(0), b.constant_i64(1), std::vector<ValueId>(rows * cols, zero));
  std::vector<ValueId> panel, next;
  for (int j = 0; j < cols; ++j) {
    panel.push_back(b.load(w, b.add(b.mul(loop.iv, b.constant_i64(cols * lanes)), b.constant_i64(j * lanes)), lanes));
  }
  for (int i = 0; i < rows; ++i) {
    const ValueId at = b.add(b.mul(b.add(row, b.constant_i64(i)), b.size(1)), loop.iv);
    const ValueId a = b.splat(b.load(x, at, 0), lanes);
    for (int j = 0; j < cols; ++j) next.push_back(b.scalar(ScalarOp::Fma, {a, panel[j], loop.carried[i * cols + j]}));
  }
  const auto sums = b.end_for(next);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) {
      const ValueId at = b.mul(b.add(row, b.constant_i64(i)), b.constant_i64(cols * lanes));
      b.store(y, sums[i * cols + j], b.add(at, b.constant_i64(j * lanes)));
    }
  }
  return b.finish();
}

void check(int rows, int cols, int lanes, TargetDesc target) {
  SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(cols * lanes) + " " + target.features);
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64-v3";
  const ssa::Function f = microkernel(rows, cols, lanes);
  const Entry entry{&f, "k"};
  const auto lines = hot_block(emit_assembly({&entry, 1}, target).value());
  int fma = 0, vector_moves = 0, stores = 0;
  for (const std::string& line : lines) {
    fma += line.find("vfmadd231ps") != std::string::npos;
    const bool wide = line.find("%ymm") != std::string::npos || line.find("%zmm") != std::string::npos;
    EXPECT_FALSE(wide && line.find("(%rsp)") != std::string::npos) << line;
    vector_moves += line.find("vmovaps") != std::string::npos;
    stores += line.find("%rsp") != std::string::npos && line.find("movq\t%") != std::string::npos;
  }
  EXPECT_EQ(fma, rows * cols);
  EXPECT_EQ(vector_moves, 0);
  EXPECT_EQ(stores, 0);
  // Loads of the panel, broadcasts, products, reloads of row offsets, loop control.
  EXPECT_LE(static_cast<int>(lines.size()), cols + rows + rows * cols + rows + 8);
}

#if defined(__x86_64__)
TEST(Microkernel, Avx512KeepsAccumulatorsInRegisters) {
  TargetDesc target;
  target.features = "+avx512f,+avx512vl,+avx512bw,+avx512dq,-prefer-256-bit";
  for (auto [rows, cols] : {std::pair{6, 1}, {12, 2}, {13, 2}, {14, 2}, {8, 3}, {6, 4}}) check(rows, cols, 16, target);
}

TEST(Microkernel, Avx2KeepsAccumulatorsInRegisters) {
  for (auto [rows, cols] : {std::pair{6, 2}, {4, 3}}) check(rows, cols, 8, {});
}
#endif

}  // namespace
}  // namespace weft::codegen::test
