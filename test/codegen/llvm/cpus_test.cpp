// Code for CPUs that this one is not: what objects say of themselves, and that they are refused here.
#include <algorithm>

#include "codegen/llvm/harness.h"

namespace weft::codegen::test {
namespace {

ssa::Function sum() {
  Maker m;
  const int in = m.in(DType::F32), out = m.out(DType::F32);
  const ValueId x = m.load(in, m.i64(0), 8);
  m.store(out, m.op(ScalarOp::Fma, {x, x, m.op(ScalarOp::Max, {x, m.splat(m.real(DType::F32, 0), 8)}, DType::F32)}, DType::F32), m.i64(0));
  return m.finish();
}

Object object_for(const Machine& machine) {
  const ssa::Function f = sum();
  const Entry entry{&f, "kernel_name"};
  Options options;
  options.verify = true;
  return compile_object({&entry, 1}, target_for(machine), options).value();
}

TEST(Cpus, ObjectsSayWhatTheyNeed) {
  for (const std::string& name : cpu_names()) {
    if (name == "x86-64") continue;  // which has no instruction for some of this
    const Machine machine = cpu_named(name).value();
    const ObjectInfo info = object_info(object_for(machine)).value();
    EXPECT_EQ(info.machine.name, name);
    EXPECT_EQ(info.machine.arch, machine.arch);
    EXPECT_EQ(info.machine.vector_bits, machine.vector_bits);
    EXPECT_EQ(info.machine.features, machine.features);
    EXPECT_EQ(info.symbols, std::vector<std::string>{"kernel_name"});
  }
}

TEST(Cpus, ObjectsForAnotherCpuAreRefusedByName) {
  for (const std::string& name : cpu_names()) {
    const Machine machine = cpu_named(name).value();
    if (machine.arch == measured_machine().arch) continue;
    const auto loaded = LoadedCode::load(std::vector<Object>{object_for(machine)});
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code(), "wrong-cpu");
    EXPECT_EQ(loaded.error().where(), name);
  }
  const ssa::Function f = sum();
  const Entry entry{&f, "k"};
  TargetDesc target = host_target();
  target.machine.features.push_back("frobnication");
  const auto loaded = LoadedCode::load(std::vector<Object>{compile_object({&entry, 1}, target).value()});
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(std::string(loaded.error().what()).find("frobnication"), std::string::npos);
}

TEST(Cpus, ObjectsWithoutANoteAreRefused) {
  EXPECT_EQ(object_info(Object(100, 'x')).error().code(), "no-object");
  Object object = object_for(host_machine());
  const std::string owner("Weft\0\0\0", 8);
  const auto at = std::search(object.begin(), object.end(), owner.begin(), owner.end());
  ASSERT_NE(at, object.end());
  *at = 'X';
  EXPECT_EQ(object_info(object).error().code(), "no-object");
  for (std::size_t bytes = 0; bytes < object.size(); bytes += 13) {
    (void)object_info(std::span<const char>(object.data(), bytes));  // any error will do
  }
}

std::string assembly_for(const char* cpu) {
  const ssa::Function f = sum();
  const Entry entry{&f, "k"};
  return emit_assembly({&entry, 1}, target_for(cpu_named(cpu).value())).value();
}

TEST(Cpus, VectorsAreAsWideAsTheCpuSays) {
  EXPECT_NE(assembly_for("cortex-a76").find("fmla\tv"), std::string::npos);
  EXPECT_NE(assembly_for("cortex-a76").find("fmax\tv"), std::string::npos);
  EXPECT_NE(assembly_for("neoverse-v1").find("\tz"), std::string::npos);
  EXPECT_NE(assembly_for("rv64gcv").find("vfma"), std::string::npos);
}

}  // namespace
}  // namespace weft::codegen::test
