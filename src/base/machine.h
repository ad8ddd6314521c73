// What a machine can do, as schedules and cost models see it: plain data, so that any machine can be described by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weft {

// What modelled times are worked out from: of one core, at its widest vectors. The defaults are a core of 2020 or so at
// 2.5 GHz; `weft doctor --measure` finds those of a machine.
struct Rates {
  double ghz = 2.5;           // sustained clock
  double fmas = 2;            // multiply-adds of vectors a cycle
  double dot2s = 0;           // dots of bf16 in pairs, of vectors, a cycle; 0: what machines with such a unit do
  double l1_gbytes = 250;     // GB/s that loads read from each level
  double l2_gbytes = 100;
  double l3_gbytes = 30;
  double memory_gbytes = 12;
  double all_gbytes = 0;      // that all cores together read from memory; 0: twice what one does
  double dispatch_us = 2;     // to hand a part to other threads and wait for them
  friend bool operator==(const Rates&, const Rates&) = default;
};

// Of the tiles that matrix units of CPUs multiply (x86's AMX).
constexpr int kTileRows = 16, kTileRowBytes = 64, kTileRegisters = 8;

struct Machine {
  std::string name = "generic";        // the CPU's own name
  std::string arch = "x86-64";         // or "aarch64", "riscv64"
  int vector_bits = 128;               // widest vector registers that code may use; with SVE, exactly what they are
  int vector_registers = 16;           // architectural, of that width
  int cores = 1;                       // that this process may run on
  std::int64_t cache_line = 64;
  std::int64_t l1_bytes = 32 << 10;    // data, per core
  std::int64_t l2_bytes = 256 << 10;   // per core
  std::int64_t l3_bytes = 0;           // shared; 0: none known
  Rates rates;                         // for modelled times
  bool has_fma = false;
  bool has_f16c = false;               // conversions between f16 and f32
  bool has_avx512 = false;             // F, BW, DQ and VL
  bool has_vnni = false;               // AVX-512 or VEX form of vpdpbusd
  bool has_avx512_bf16 = false;
  bool has_avx512_fp16 = false;
  bool has_amx_bf16 = false;
  bool has_amx_int8 = false;
  // Groups of threads that share memory and can wait for each other; none: a program is one thread's.
  int group_threads = 0;               // at most, in a group
  int warp_threads = 1;                // that go in step
  std::int64_t shared_bytes = 0;       // of on-chip memory, per group
  int group_lanes = 0;                 // f32 elements that the groups of a core work on in a cycle
  bool has_shuffle = false;            // threads of a warp read each other's registers
  bool has_matrix = false;             // warps multiply matrices of f16, bf16, bytes and f32 cut to 19 bits
  double matrix_rate = 0;              // multiply-adds of f16 that the units of a core do in a cycle; bytes twice, f32 half
  double group_matrix_rate = 0;        // the same of four warps together, on f16 in shared memory; 0: they do not
  bool cuts_f32 = false;               // ... f32 too: what is asked for (precision), not what can be
  int copy_bytes = 0;                  // widest copy from memory to shared memory that runs beside a thread; 0: none does
  double memory_latency = 0;           // cycles until what a thread asks memory for is there
  // Copies between a device's memory and the host's: GB/s, and microseconds that each takes besides.
  double link_gbytes = 10, copy_us = 10;
  std::vector<std::string> features;   // LLVM's names of what the CPU and system support, sorted: "avx2", "fma" ...

  int f32_lanes() const { return vector_bits / 32; }
  int lanes(int element_bits) const { return element_bits > 0 ? vector_bits / element_bits : 1; }
  bool has_groups() const { return group_threads > 1; }
  // Dots of bf16 in pairs a cycle, of a unit made for them; 0: there is none.
  double dot2s() const;
  bool has(std::string_view feature) const;
};

Machine measured_machine();  // this one, measured once
Machine host_machine();      // the same less what WEFT_CPU_FEATURES takes away; what it claims (+amx-tile) both have

// What follows from a machine's architecture and features: the flags above, and registers and their width (which with SVE
// stays as it is).
void derive_from_features(Machine& machine);

// Takes away the features that begin with one of the names. A name is "-avx512vnni" or "-amx"; what needs a feature that
// is gone goes with it.
void remove_features(Machine& machine, const std::vector<std::string>& names);

// CPUs by name: "x86-64-v3", "cortex-a76" ... (docs/cpus.md), least first within an architecture.
std::vector<std::string> cpu_names(std::string_view arch = "");  // of one architecture, or all
// The machine that a name stands for; caches and cores are defaults. Nothing when there is no such name.
std::optional<Machine> cpu_named(std::string_view name);

// The machine cut down to what a name stands for; "native" leaves it as it is. False when the name is unknown or the
// machine has less.
bool restrict_to_level(Machine& machine, std::string_view level);

// An error that names what code for `needed` does not find on `here`.
Result<void> check_runs_on(const Machine& needed, const Machine& here);

}  // namespace weft
