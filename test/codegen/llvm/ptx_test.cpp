// Kernels of groups of threads as PTX: what must be in the text. Whether it assembles: test/codegen/ptx/assemble.sh.
#include <gmock/gmock.h>

#include "codegen/llvm/codegen.h"
#include "kernel/kernel.h"
#include "kernel/simt/lower.h"
#include "tile/tile.h"

namespace weft::codegen::ptx_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using tile::ValueId;

constexpr ssa::Buffer kIn = {DType::F32, ssa::Space::Memory, true, false, 0};
constexpr ssa::Buffer kOut = {DType::F32, ssa::Space::Memory, false, true, 0};

Machine gpu(const char* name = "sm_90a", const char* version = "ptx86") {
  Machine m;
  m.name = name;
  m.arch = "nvptx64";
  m.features = {version};
  m.has_fma = m.has_shuffle = true;
  m.group_threads = 128;
  m.warp_threads = 32;
  m.shared_bytes = 48 << 10;
  return m;
}

std::string text_of(const tile::Function& program, const Machine& machine = gpu()) {
  kernel::Function f = kernel::lower_simt(program, machine).value();
  EXPECT_TRUE(kernel::expand_math(f).ok());
  ssa::eliminate_dead(f);
  return ptx(std::span(&f, 1), machine).value();
}

ValueId flat(tile::Builder& b, int rows, int columns) {
  return b.add(b.mul(b.iota(rows, columns, 0), b.constant_i64(columns)), b.iota(rows, columns, 1));
}

tile::Function scaled_rows() {
  tile::Builder b("scaled_rows");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId at = b.add(flat(b, 4, 128), b.mul(b.program_id(), b.constant_i64(512)));
  const ValueId v = b.load(x, at);
  b.store(y, b.scalar(ScalarOp::Div, {v, b.reduce(Combine::Sum, v, 1)}), at);
  return b.finish();
}

TEST(Ptx, SaysWhichMachineItIsFor) {
  EXPECT_THAT(text_of(scaled_rows()), HasSubstr(".target sm_90a"));
  EXPECT_THAT(text_of(scaled_rows()), HasSubstr(".version 8.6"));
  EXPECT_THAT(text_of(scaled_rows(), gpu("sm_80", "ptx70")), HasSubstr(".target sm_80"));
}

TEST(Ptx, EntriesTakeBuffersSizesAndTheStatusWord) {
  tile::Builder b("guarded");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  b.add_size();
  const ValueId at = flat(b, 1, 128), inside = b.lt(at, b.size(0));
  const ValueId v = b.load(x, at, inside);
  b.check(b.lt(v, b.constant(DType::F32, 7)), 3);
  b.store(y, v, at, inside);
  const std::string text = text_of(b.finish());
  EXPECT_THAT(text, HasSubstr(".visible .entry guarded("));
  EXPECT_THAT(text, HasSubstr(".param .u64 guarded_param_2"));
  EXPECT_THAT(text, HasSubstr("guarded_param_3"));
  EXPECT_THAT(text, Not(HasSubstr("guarded_param_4")));
  EXPECT_THAT(text, ContainsRegex("st\\.relaxed[a-z.]*\\.b32|st\\.relaxed[a-z.]*\\.u32"));  // the code of a failed check
}

TEST(Ptx, RowsAreReadInVectorsAndCombinedByShuffles) {
  const std::string text = text_of(scaled_rows());
  EXPECT_THAT(text, HasSubstr(".maxntid 128"));
  EXPECT_THAT(text, HasSubstr("%ctaid.x"));
  EXPECT_THAT(text, HasSubstr("ld.global.v4"));
  EXPECT_THAT(text, HasSubstr("st.global.v4"));
  EXPECT_THAT(text, HasSubstr("shfl.sync.idx"));
  EXPECT_THAT(text, HasSubstr("div.rn"));
  EXPECT_THAT(text, Not(HasSubstr("bar.sync")));  // a row is one warp's
  EXPECT_THAT(text, Not(HasSubstr("extern")));    // no call is left
}

TEST(Ptx, ProductsShareTheirOperands) {
  tile::Builder b("product");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kIn), z = b.add_buffer(kOut);
  const ValueId zero = b.broadcast(b.constant(DType::F32, 0), 32, 32);
  b.store(z, b.dot(b.load(x, flat(b, 32, 16)), b.load(y, flat(b, 16, 32)), zero), flat(b, 32, 32));
  const std::string text = text_of(b.finish());
  EXPECT_THAT(text, ContainsRegex("\\.shared \\.align 16 "));
  EXPECT_THAT(text, ContainsRegex("bar[a-z]*\\.[a-z.]*sync"));
  EXPECT_THAT(text, HasSubstr("ld.shared"));
  EXPECT_THAT(text, HasSubstr("fma.rn.f32"));
}

// y = x a over blocks of the sum, as matrix units have it.
std::string text_of_units(DType t, const char* name, const char* version, double group_rate = 0) {
  tile::Builder b("units");
  const ssa::Buffer in = {t, ssa::Space::Memory, true, false, 0};
  const DType sums = is_float(t) ? DType::F32 : DType::I32;
  const int x = b.add_buffer(in), a = b.add_buffer(in), y = b.add_buffer({sums, ssa::Space::Memory, false, true, 0});
  const ValueId blocks = b.size(b.add_size()), step = b.constant_i64(32);
  const auto loop = b.begin_for(b.constant_i64(0), blocks, step, {b.broadcast(b.constant(sums, 0), 64, 64)});
  const ValueId block = b.mul(loop.iv, b.constant_i64(64));
  const ValueId left = b.load(x, b.add(flat(b, 64, 32), block)), right = b.load(a, b.add(flat(b, 32, 64), block));
  const ValueId sum = b.end_for({b.dot(left, right, loop.carried[0])})[0];
  b.store(y, sum, flat(b, 64, 64));
  Machine m = gpu(name, version);
  m.features.push_back(kernel::kF8Products);
  m.has_matrix = true;
  m.matrix_rate = 1024;
  m.group_matrix_rate = group_rate;
  m.copy_bytes = 16;
  m.memory_latency = 600;
  return text_of(b.finish(), m);
}

TEST(Ptx, MatrixUnitsReadWhatWasCopiedAhead) {
  for (const DType t : {DType::F16, DType::BF16}) {
    const std::string text = text_of_units(t, "sm_80", "ptx70");
    EXPECT_THAT(text, HasSubstr(t == DType::F16 ? "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" : "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
    EXPECT_THAT(text, HasSubstr("ldmatrix.sync.aligned.m8n8.x4.shared.b16"));
    EXPECT_THAT(text, HasSubstr("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"));
    EXPECT_THAT(text, HasSubstr("cp.async.cg.shared.global"));
    EXPECT_THAT(text, HasSubstr("cp.async.commit_group"));
    EXPECT_THAT(text, HasSubstr("cp.async.wait_group \t2"));
    EXPECT_THAT(text, HasSubstr("cp.async.wait_group \t0"));
    EXPECT_THAT(text, Not(HasSubstr("ld.global")));
  }
  const std::string bytes = text_of_units(DType::I8, "sm_80", "ptx70");
  EXPECT_THAT(bytes, HasSubstr("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"));
  EXPECT_THAT(bytes, HasSubstr("ldmatrix.sync.aligned.m8n8.x4.shared.b16"));
  EXPECT_THAT(text_of_units(DType::U8, "sm_80", "ptx70"), HasSubstr("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"));
}

// Of either kind of f8, and of bytes.
TEST(Ptx, UnitsMultiplyFloatsOfEightBits) {
  EXPECT_THAT(text_of_units(DType::F8E4M3FN, "sm_89", "ptx84"), HasSubstr("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"));
  EXPECT_THAT(text_of_units(DType::F8E5M2, "sm_100a", "ptx88"), HasSubstr("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32"));
  EXPECT_THAT(text_of_units(DType::F8E5M2, "sm_90a", "ptx86", 2048), HasSubstr("wgmma.mma_async.sync.aligned.m64n64k32.f32.e5m2.e5m2"));
  EXPECT_THAT(text_of_units(DType::F8E4M3FN, "sm_90a", "ptx86", 2048), ContainsRegex("adds, 1, 1;"));
  const std::string bytes = text_of_units(DType::I8, "sm_90a", "ptx86", 2048);
  EXPECT_THAT(bytes, HasSubstr("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8"));
  EXPECT_THAT(bytes, ContainsRegex("adds;"));
}

// The left operand lies in rows of 64 bytes, the right one, turned, in rows of 128.
TEST(Ptx, FourWarpsMultiplyWhatWasCopiedAhead) {
  for (const DType t : {DType::F16, DType::BF16}) {
    const std::string text = text_of_units(t, "sm_90a", "ptx86", 2048);
    EXPECT_THAT(text, HasSubstr(t == DType::F16 ? "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16" : "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"));
    EXPECT_THAT(text, ContainsRegex("adds, 1, 1, 0, 1;"));
    for (const char* part : {"cp.async.cg.shared.global", "fence.proxy.async.shared::cta", "wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned",
                             "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 0;", ".align 1024 "}) {
      EXPECT_THAT(text, HasSubstr(part));
    }
    EXPECT_THAT(text, HasSubstr("-9223371899415822336"));  // mode 2, a stride of 512 bytes
    EXPECT_THAT(text, HasSubstr("4611686293305294848"));   // mode 1, a stride of 1024 bytes
    EXPECT_THAT(text, Not(HasSubstr("mma.sync")));
    EXPECT_THAT(text, Not(HasSubstr("ldmatrix")));
  }
}

TEST(Ptx, AtomicsAndMasksBranch) {
  tile::Builder b("count");
  const int x = b.add_buffer({DType::I32, ssa::Space::Memory, true, false, 0});
  const int y = b.add_buffer({DType::I32, ssa::Space::Memory, true, true, 0});
  b.add_size();
  const ValueId at = flat(b, 1, 256), inside = b.lt(at, b.size(0));
  const ValueId bin = b.cast(b.load(x, at, inside), DType::I64);
  b.atomic(Combine::Sum, y, b.broadcast(b.constant_i64(1, DType::I32), 1, 256), bin, inside);
  EXPECT_THAT(text_of(b.finish()), ContainsRegex("(red|atom)[a-z.]*\\.global[a-z.]*\\.add"));
}

TEST(Ptx, GroupsAreNoCpus) {
  const kernel::Function f = kernel::lower_simt(scaled_rows(), gpu()).value();
  const Entry entry{&f, "k"};
  const auto object = compile_object(std::span(&entry, 1), host_target());
  ASSERT_FALSE(object.ok());
  EXPECT_EQ(object.error().code(), "groups");
}

}  // namespace
}  // namespace weft::codegen::ptx_test
