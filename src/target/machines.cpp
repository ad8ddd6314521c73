#include "target/machines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "kernel/simt/lower.h"

namespace weft::target {
namespace {

struct Row {
  const char* name;
  const char* arch;
  const char* feature;  // LLVM's name of the version of the assembly language: the lowest that has what the others need
  int cores;            // multiprocessors of a usual device
  bool shuffle;
  bool f8;              // its units multiply floats of 8 bits
  int matrix;           // multiply-adds of f16 a cycle by mma.sync; 0: no units, nor copies to shared memory beside the threads
  int groups;           // the same by wgmma; 0: not there
  int shared_kib;       // of a kernel that asks for no more than the default
  int l2_mib;
  double ghz;
  double gbytes;        // from memory, a second
  double link;          // GB/s to and from the host, a direction
};

constexpr int kWarp = 32, kThreads = 256;
constexpr double kLaunchUs = 3;
constexpr int kGroupLanes = 128;
constexpr int kCopyBytes = 16;
constexpr double kLatency = 600;

constexpr Row kRows[] = {
    {"opencl", "opencl", nullptr, 16, false, false, 0, 0, 32, 1, 1.0, 100, 12},
    {"sm_80", "nvptx64", "ptx70", 108, true, false, 1024, 0, 48, 40, 1.41, 1555, 25},
    {"sm_89", "nvptx64", "ptx84", 128, true, true, 512, 0, 48, 72, 2.5, 1000, 25},
    {"sm_90", "nvptx64", "ptx86", 132, true, true, 1024, 0, 48, 50, 1.8, 3350, 55},
    {"sm_90a", "nvptx64", "ptx86", 132, true, true, 1024, 2048, 48, 50, 1.8, 3350, 55},
    {"sm_100a", "nvptx64", "ptx88", 148, true, true, 1024, 0, 48, 126, 1.9, 8000, 55},
    {"sm_120a", "nvptx64", "ptx88", 170, true, true, 512, 0, 48, 96, 2.4, 1790, 55},
};

// A thread alone is one lane of a warp: of a multiprocessor that has four of them, 4 lanes of 128.
Machine machine_of(const Row& row) {
  Machine m;
  m.name = row.name;
  m.arch = row.arch;
  if (row.f8) m.features = {kernel::kF8Products};
  if (row.feature != nullptr) m.features.push_back(row.feature);
  m.cores = row.cores;
  m.vector_bits = 128;  // of one access of a thread
  m.vector_registers = 32;
  m.l1_bytes = 128 << 10;
  m.l2_bytes = std::int64_t{row.l2_mib} << 20;
  m.has_fma = true;
  m.group_threads = kThreads;
  m.warp_threads = kWarp;
  m.shared_bytes = std::int64_t{row.shared_kib} << 10;
  m.group_lanes = kGroupLanes;
  m.has_shuffle = row.shuffle;
  m.has_matrix = row.matrix > 0;
  m.matrix_rate = row.matrix;
  m.group_matrix_rate = row.groups;
  m.copy_bytes = m.has_matrix ? kCopyBytes : 0;
  m.memory_latency = kLatency;
  m.link_gbytes = row.link;
  m.rates.ghz = row.ghz;
  m.rates.fmas = 1;
  m.rates.l1_gbytes = 128 * row.ghz;
  m.rates.l2_gbytes = 64 * row.ghz;
  m.rates.l3_gbytes = m.rates.l2_gbytes;
  m.rates.memory_gbytes = row.gbytes / row.cores * 4;
  m.rates.all_gbytes = row.gbytes;
  m.rates.dispatch_us = kLaunchUs;
  return m;
}

}  // namespace

Result<Machine> described_machine(std::string_view target, std::string_view which, std::string_view arch) {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    if (!arch.empty() && arch != row.arch) continue;
    if (which == row.name) return machine_of(row);
    names.push_back(fmt::format("{}:{}", target, row.name));
  }
  return user_error("unknown-target", "this target wants the name of a machine")
      .found(which.empty() ? std::string(target) : fmt::format("{}:{}", target, which))
      .suggest(fmt::format("say {}", fmt::join(names, ", ")));
}

}  // namespace weft::target
