// weft doctor: what Weft found on this machine, and what it decided from it.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>

#include "base/knobs.h"
#include "base/machine.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/table.h"
#include "codegen/llvm/codegen.h"
#include "compile/limits.h"
#include "runtime/cache.h"
#include "runtime/pool.h"
#include "target/target.h"
#include "weft/weft.h"

namespace weft::cli {
namespace fs = std::filesystem;

namespace {

std::string cache_text() {
  const std::string folder = runtime::Cache().directory();
  if (folder.empty()) return "none: there is no folder for one";
  double bytes = 0;
  int entries = 0;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (!entry.is_regular_file(ignored)) continue;
    bytes += static_cast<double>(entry.file_size(ignored));
    ++entries;
  }
  return fmt::format("{}: {} entries, {} of at most {}", folder, entries, bytes_text(bytes),
                     bytes_text(static_cast<double>(knob_integer(Knob::CacheBytes))));
}

std::string caches_of(const Machine& m) {
  std::string text = fmt::format("L1 {}, L2 {}", bytes_text(static_cast<double>(m.l1_bytes)),
                                 bytes_text(static_cast<double>(m.l2_bytes)));
  if (m.l3_bytes > 0) text += fmt::format(", L3 {}", bytes_text(static_cast<double>(m.l3_bytes)));
  return text;
}

std::string devices_text(const target::Info& info) {
  const auto names = info.devices();
  if (!names.ok()) return names.error().message() + "; " + names.error().suggestion();
  std::string text;
  for (std::size_t k = 0; k < names->size(); ++k) text += fmt::format("{}{}:{} {}", k > 0 ? ", " : "", info.name, k, (*names)[k]);
  return text.empty() ? "no device" : text;
}

std::string limits_text(int threads) {
  const auto limits = compiler::known_limits(threads);
  if (!limits) return "not measured; 'weft doctor --measure' takes seconds";
  std::string text = fmt::format("{:.0f} GFLOP/s of f32, {:.1f} GB/s read from memory", limits->gflops, limits->gbytes);
  if (threads == 1) {
    text += fmt::format("; {:.2f} GHz, {:.0f} GB/s from L1, {:.0f} from L2, {:.0f} from L3", limits->ghz, limits->l1_gbytes,
                        limits->l2_gbytes, limits->l3_gbytes);
  } else {
    text += fmt::format("; {:.1f} us to dispatch", limits->dispatch_us);
  }
  return text;
}

Result<int> doctor(bool measure) {
  const Machine m = host_machine();
  const codegen::TargetDesc& target = codegen::host_target();
  fmt::print("weft        {}\n", version());
  fmt::print("LLVM        {}\n", codegen::version());
  fmt::print("CPU         {} ({})\n", m.name, m.arch);
  fmt::print("vectors     {} registers of {} bits\n", m.vector_registers, m.vector_bits);
  fmt::print("caches      {}\n", caches_of(m));
  const runtime::ThreadCount threads = runtime::decide_threads();
  fmt::print("threads     {} ({})\n", threads.threads, threads.why);
  for (int n : std::set<int>{1, threads.threads}) {
    if (measure) WEFT_TRY(compiler::measure_limits(n));
    fmt::print("{:<11} {}\n", fmt::format("{} thread{}", n, n == 1 ? "" : "s"), limits_text(n));
  }
  fmt::print("target      {}, tuned for {}\n", target.triple, target.cpu);
  fmt::print("features    {}\n", joined(m.features, " "));
  fmt::print("cache       {}\n", cache_text());
  for (const target::Info& info : target::all()) {
    if (info.devices) fmt::print("{:<11} {}\n", info.name, devices_text(info));
  }
  Table table({"variable", "value", "what it does"});
  for (int k = 0; k < knob_count(); ++k) {
    const KnobInfo& knob = info(static_cast<Knob>(k));
    const std::string& value = knob_text(static_cast<Knob>(k));
    table.row({knob.variable, value.empty() ? "-" : value, knob.doc});
  }
  fmt::print("\n");
  print(table);
  return kSuccess;
}

}  // namespace

Action add_doctor(CLI::App& app) {
  auto measure = std::make_shared<bool>(false);
  add_flag(app, "--measure", *measure, "measure what the machine can do at most, and remember it");
  return [measure] { return doctor(*measure); };
}

}  // namespace weft::cli
