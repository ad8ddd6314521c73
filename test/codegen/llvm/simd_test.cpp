// Tile programs all the way to machine code: lowered to vectors, compiled, run against the tile
// interpreter.
#include "codegen/llvm/assembly.h"
#include "codegen/llvm/harness.h"
#include "kernel/simd/lower.h"
#include "tile/tile.h"

namespace weft::codegen::test {
namespace {

Machine avx512() {
  Machine m;
  m.vector_bits = 512;
  m.has_fma = true;
  return m;
}

// y[m, n] = x[m, k] w[k, n] by tiles of rows x 32; k and n are sizes, or known (static_k, static_n
// > 0).
tile::Function matmul(int rows, bool as_dot, std::int64_t static_k, std::int64_t static_n) {
  tile::Builder b("k");
  const int x = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int w = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int y = b.add_buffer({DType::F32, ssa::Space::Memory, true, true, 0});
  for (int i = 0; i < 3; ++i) b.add_size();
  const ValueId m = b.size(0);
  const ValueId n = static_n > 0 ? b.constant_i64(static_n) : b.size(1);
  const ValueId k = static_k > 0 ? b.constant_i64(static_k) : b.size(2);
  const ValueId first = b.mul(b.program_id(), b.constant_i64(rows));
  const ValueId row = b.add(first, b.iota(rows, 1, 0)), one = b.constant_i64(1);
  const ValueId clamped = static_k > 0 ? row : b.min(row, b.sub(m, one));
  const auto js = b.begin_for(b.constant_i64(0), n, b.constant_i64(32), {});
  const ValueId col = b.add(js.iv, b.iota(1, 32, 1));
  const ValueId zero = b.broadcast(b.constant(DType::F32, 0), rows, 32);
  const auto ks = b.begin_for(b.constant_i64(0), k, one, {zero});
  const ValueId a = b.load(x, b.add(b.mul(clamped, k), ks.iv));
  const ValueId c = b.load(w, b.add(b.mul(ks.iv, n), col), b.lt(col, n));
  const ValueId next =
      as_dot ? b.dot(a, c, ks.carried[0]) : b.scalar(ScalarOp::Fma, {a, c, ks.carried[0]});
  const ValueId sum = b.end_for({next})[0];
  b.store(y, sum, b.add(b.mul(row, n), col), b.logical_and(b.lt(row, m), b.lt(col, n)));
  b.end_for({});
  return b.finish();
}

TEST(Simd, MatmulRunsCompiled) {
  const std::int64_t m = 17, n = 45, k = 23;
  const tile::Function f = matmul(14, true, 0, 0);
  std::mt19937 random(1);
  Guarded x(DType::F32, m * k), w(DType::F32, k * n), y(DType::F32, m * n),
      expected(DType::F32, m * n);
  for (Guarded* g : {&x, &w}) {
    for (std::int64_t i = 0; i < g->elements(); ++i)
      g->set(i, {static_cast<double>(random() % 64) - 32, 0});
  }
  const tile::BufferView views[] = {{x.data(), m * k}, {w.data(), k * n}, {expected.data(), m * n}};
  const std::vector<std::int64_t> sizes = {m, n, k};
  tile::interpret(f, views, sizes, 2).value();
  for (const int bits : {128, 256, 512}) {
    Machine machine;
    machine.vector_bits = bits;
    machine.has_fma = true;
    const kernel::Function lowered = kernel::lower_simd(f, machine).value();
    ASSERT_EQ(build(lowered).run({&x, &w, &y}, sizes, 0, 2), 0);
    EXPECT_TRUE(x.intact() && w.intact() && y.intact());
    for (std::int64_t i = 0; i < m * n; ++i)
      ASSERT_EQ(y.at(i).f, expected.at(i).f) << bits << " bits, element " << i;
  }
}

#if defined(__x86_64__)
// The loop over k holds two loads, the products and their broadcasts; no accumulator leaves its
// register.
TEST(Simd, MatmulInnerLoopIsTight) {
  TargetDesc target{"x86_64-unknown-linux-gnu", "x86-64-v3",
                    "+avx512f,+avx512vl,+avx512bw,+avx512dq,-prefer-256-bit"};
  for (const bool as_dot : {false, true}) {
    for (const auto& [k, n] :
         {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 1024}, {768, 1024}}) {
      SCOPED_TRACE(std::to_string(k) + " " + std::to_string(n) + (as_dot ? " dot" : " fma"));
      const kernel::Function f = kernel::lower_simd(matmul(14, as_dot, k, n), avx512()).value();
      const Entry entry{&f, "k"};
      const auto lines = hot_block(emit_assembly({&entry, 1}, target).value());
      int fma = 0, spills = 0, moves = 0;
      std::string text;
      for (const std::string& line : lines) {
        text += line + "\n";
        fma += line.find("vfmadd231ps") != std::string::npos;
        spills +=
            line.find("%zmm") != std::string::npos && line.find("(%rsp)") != std::string::npos;
        moves +=
            line.find("vmovaps") != std::string::npos || line.find("vpcmp") != std::string::npos;
      }
      EXPECT_EQ(fma, 28) << text;
      EXPECT_EQ(spills + moves, 0) << text;
      EXPECT_LE(static_cast<int>(lines.size()), 28 + 2 + 14 + 14 + 8) << text;
    }
  }
}
#endif

}  // namespace
}  // namespace weft::codegen::test
