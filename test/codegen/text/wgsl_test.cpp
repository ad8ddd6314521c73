// WGSL as it reads.
#include <gtest/gtest.h>

#include "codegen/text/text.h"

namespace weft::codegen {
namespace {

std::string printed(std::string_view kernel) {
  const auto f = ssa::parse(kernel, kernel::op_table());
  if (!f.ok()) return f.error().what();
  const auto text = print_wgsl(*f);
  return text.ok() ? *text : text.error().what();
}

TEST(Wgsl, ALoopOverFloats) {
  EXPECT_EQ(printed(R"(kernel @k {
  buffer f32 memory read
  buffer f32 memory written
  sizes 1
  %0 = const(0) : i64
  %1 = const(1) : i64
  %2 = const(2.5) : f32
  %3 = size(0) : i64
  for %0, %3, %1 { %4: i64
    %5 = load(0) %4 : f32
    %6 = sub %5, %2 : f32
    store(1) %6, %4
    yield
  }
}
)"),
            R"(fn weft_opaque_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ weft_parameters[0].z); }
fn weft_size(low: u32, high: u32) -> i64 { return bitcast<i64>(u64(low) | (u64(high) << 32u)); }

@group(0) @binding(0) var<uniform> weft_parameters: array<vec4<u32>, 2>;
@group(0) @binding(1) var<storage, read_write> weft_status: array<i32>;
@group(0) @binding(2) var<storage, read_write> b0: array<f32>;
@group(0) @binding(3) var<storage, read_write> b1: array<f32>;

@compute @workgroup_size(64)
fn weft_k(@builtin(workgroup_id) weft_group: vec3<u32>, @builtin(num_workgroups) weft_groups: vec3<u32>, @builtin(local_invocation_index) weft_thread: u32) {
  let weft_number = weft_group.x + weft_group.y * weft_groups.x;
  let weft_program = weft_number * 64u + weft_thread;
  if (weft_program >= weft_parameters[0].x) { return; }
  let at0 = weft_parameters[1].x / 4u;
  let at1 = weft_parameters[1].y / 4u;
  let n0 = weft_size(weft_parameters[1].z, weft_parameters[1].w);
  let v0 = 0li;
  let v1 = 1li;
  let v2 = 2.5f;
  let v3 = n0;
  for (var v4: i64 = v0; v4 < v3; v4 += v1) {
    let v5 = b0[at0 + u32(v4)];
    let v6 = v5 - weft_opaque_f32(v2);
    b1[at1 + u32(v4)] = v6;
  }
}
)");
}

TEST(Wgsl, BytesLieInWordsThatThreadsShare) {
  const std::string text = printed(R"(kernel @k {
  buffer i8 memory read
  buffer bool memory written
  %0 = program_id : i64
  %1 = load(0) %0 : i8
  %2 = const(3) : i8
  %3 = lt %1, %2 : bool
  store(1) %3, %0
}
)");
  for (const char* line : {"@group(0) @binding(2) var<storage, read_write> b0: array<u32>;\n",
                           "fn b0_load(i: u32) -> i32 { return extractBits(bitcast<i32>(b0[i / 4u]), (i % 4u) * 8u, 8u); }\n",
                           "@group(0) @binding(3) var<storage, read_write> b1: array<atomic<u32>>;\n",
                           "  atomicAnd(&b1[i / 4u], ~(0xffu << ((i % 4u) * 8u)));\n",
                           "  let v3 = v1 < v2;\n  b1_store(at1 + u32(v0), v3);\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is not in\n" << text;
  }
}

TEST(Wgsl, OfFloatsOnlyWhatFollowsTheirValues) {
  const std::string text = printed(R"(kernel @k {
  buffer f32 memory read written
  %0 = const(0) : i64
  %1 = const(0.0) : f32
  %2 = const(inf) : f32
  %3 = load(0) %0 : f32
  %4 = mul %3, %1 : f32
  %5 = add %4, %2 : f32
  %6 = sub %5, %5 : f32
  store(0) %6, %0
}
)");
  for (const char* line : {"weft_f32(0x7f800000u);\n", " * weft_opaque_f32(", "v5 - weft_opaque_f32(v5);\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in\n" << text;
  }
}

TEST(Wgsl, HasNoAtomicSumsOfDoubles) {
  EXPECT_NE(printed(R"(kernel @k {
  buffer f64 memory read written
  %0 = const(0) : i64
  %1 = const(1.0) : f64
  %2 = atomic_add(0) %1, %0 : f64
}
)").find("atomic_add of f64 in this kernel language"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::codegen
