// weft-tile [EXAMPLE...] [--target cpu|ref|opencl]: runs the examples of the tile language; all when none is named.
// weft-tile [EXAMPLE...] --print STAGE [--target cuda:sm_90a]: what becomes of them: tile, kernel, llvm, asm, source.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "example.h"

namespace examples {

double worst_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::fabs(double{found[i]} - expected[i]);
    if (!(difference <= worst)) worst = difference;  // NaN too
  }
  return worst;
}

std::string printed_stage;

bool print_only(const Kernel& kernel, const weft::CompileOptions& options) {
  if (!printed_stage.empty()) std::printf("%s\n", kernel.text(printed_stage, options).value().c_str());
  return !printed_stage.empty();
}

bool report(const Case& c, const weft::CompileOptions& options) {
  if (print_only(c.kernel, options)) return true;
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  const std::vector<float> start = c.result;  // a kernel may add to it
  const Traffic traffic = c.kernel.interpret(c.grid, c.arguments).value();

  const auto before = Clock::now();
  const CompiledKernel compiled = c.kernel.compile(options).value();
  const double compile_ms = milliseconds(Clock::now() - before);
  double best_ms = 0;
  for (int run = 0; run < 3; ++run) {
    c.result = start;
    const auto begin = Clock::now();
    compiled.run(c.grid, c.arguments).value();
    const double ms = milliseconds(Clock::now() - begin);
    best_ms = run == 0 ? ms : std::min(best_ms, ms);
  }

  double scale = 0;
  for (const float v : c.expected) scale = std::max(scale, std::fabs(double{v}));
  const double error = worst_difference(c.result, c.expected);
  const bool right = error <= c.tolerance * scale;
  const double moved = static_cast<double>(traffic.loaded + traffic.stored);
  std::printf("%-16s %s: compiled in %.1f ms, run in %.3f ms, moved %.2f MB of at least %.2f (%.2f x), max error %.1e%s\n",
              c.kernel.name().c_str(), options.target.c_str(), compile_ms, best_ms, moved / 1e6,
              static_cast<double>(c.least_bytes) / 1e6, moved / static_cast<double>(c.least_bytes), error, right ? "" : "  WRONG");
  return right;
}

}  // namespace examples

int main(int argc, char** argv) {
  const std::pair<const char*, examples::Example> all[] = {
      {"vector_add", examples::vector_add},           {"softmax", examples::softmax},
      {"layer_norm", examples::layer_norm},           {"matmul", examples::matmul},
      {"int4_matmul", examples::int4_matmul},         {"flash_attention", examples::flash_attention},
      {"paged_attention", examples::paged_attention}, {"running_sum", examples::running_sum},
      {"histogram", examples::histogram},             {"embedding_bag", examples::embedding_bag},
      {"half_matmul", examples::half_matmul}, {"f8_matmul", examples::f8_matmul},         {"half_attention", examples::half_attention},
  };
  weft::CompileOptions options;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--target") == 0 && i + 1 < argc) options.target = argv[++i];
    else if (std::strcmp(argv[i], "--print") == 0 && i + 1 < argc) examples::printed_stage = argv[++i];
    else wanted.push_back(argv[i]);
  }
  for (const std::string& name : wanted) {
    if (std::none_of(std::begin(all), std::end(all), [&](const auto& e) { return name == e.first; })) {
      std::fprintf(stderr, "weft-tile: there is no example '%s'\n", name.c_str());
      return 2;
    }
  }
  bool right = true;
  try {
    for (const auto& [name, run] : all) {
      if (wanted.empty() || std::count(wanted.begin(), wanted.end(), name) > 0) right = run(options) && right;
    }
  } catch (const weft::Error& e) {
    std::fprintf(stderr, "weft-tile: %s\n", e.what());
    return 1;
  }
  return right ? 0 : 1;
}
