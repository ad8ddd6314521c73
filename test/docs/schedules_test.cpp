// Holds the schedules of one product on unlike machines, as docs/schedules.md shows them, to what the model chooses.
// UPDATE_EXPECTED=1 writes them anew.
#include <cstdlib>

#include "compile/compile.h"
#include "docs/support.h"

namespace weft::docs::schedules_test {
namespace {

constexpr const char* kProduct = R"(graph @product(%0 "x": f16[1024, 1024], %1 "w": f16[1024, 1024]) -> (f32[1024, 1024]) {
  %2 = cast %0 {dtype=f32} : f32[1024, 1024]
  %3 = cast %1 {dtype=f32} : f32[1024, 1024]
  %4 = dot %2, %3 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[1024, 1024]
  return %4
})";

// A CPU's name, or a target's.
std::string scheduled(const std::string& name) {
  compiler::Options options;
  options.cache = options.tuned = options.code = options.load = false;
  if (const auto cpu = cpu_named(name)) {
    options.machine = *cpu;
    options.machine.cores = 8;
  } else {
    options.target = target::open(name).value();
  }
  std::string text;
  options.dump_stages = "schedule";
  options.dump = [&](const std::string&, const std::string&, const std::string& made) { text += made.substr(0, made.find('\n') + 1); };
  const auto compiled = compiler::compile(graph::parse(kProduct).value(), options);
  EXPECT_TRUE(compiled.ok()) << compiled.error().what();
  return name + ": " + text;
}

TEST(Schedules, OneProductOnFourMachines) {
  const char* file = "docs/schedules.md";
  const std::string begin = "<!-- machines -->\n```text\n", end = "```\n<!-- machines -->", text = read(file);
  const std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  std::string now;
  for (const char* name : {"x86-64-v3", "neoverse-v1", "sim:opencl", "cuda:sm_90a"}) now += scheduled(name);
  const std::size_t start = from + begin.size();
  if (std::getenv("UPDATE_EXPECTED") != nullptr) {
    std::ofstream(kRoot / file) << text.substr(0, start) << now << text.substr(to);
  } else {
    EXPECT_EQ(text.substr(start, to - start), now) << "run weft_test_docs with UPDATE_EXPECTED=1 and look at the difference";
  }
}

}  // namespace
}  // namespace weft::docs::schedules_test
