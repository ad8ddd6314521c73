// CPUs by name, and what follows from features.
#include <algorithm>
#include <sstream>

#include "base/machine.h"

namespace weft {
namespace {

#define WEFT_V2 "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
#define WEFT_V3 WEFT_V2 " avx avx2 bmi bmi2 f16c fma lzcnt movbe"
#define WEFT_AVX512 "avx512bw avx512cd avx512dq avx512f avx512vl"

struct Row {
  const char* name;
  const char* arch;
  const char* features;  // of which code may use all and no others
  int sve_bits;          // 0: no SVE
  int cores;
  std::int64_t l1_kib, l2_kib, l3_kib;
  double ghz;
};

// The levels of x86-64 are those of its psABI; sizes are of a middling server or board with the CPU.
constexpr Row kCpus[] = {
    {"x86-64", "x86-64", "", 0, 4, 32, 256, 8 << 10, 2.5},
    {"x86-64-v2", "x86-64", WEFT_V2, 0, 4, 32, 256, 8 << 10, 2.5},
    {"x86-64-v3", "x86-64", WEFT_V3, 0, 4, 32, 512, 16 << 10, 2.5},
    {"x86-64-v4", "x86-64", WEFT_V3 " " WEFT_AVX512, 0, 8, 48, 1 << 10, 32 << 10, 2.5},
    {"sapphirerapids", "x86-64",
     WEFT_V3 " " WEFT_AVX512 " amx-bf16 amx-int8 amx-tile avx512bf16 avx512fp16 avx512vnni avxvnni", 0, 32, 48, 2 << 10,
     64 << 10, 2.4},
    {"cortex-a76", "aarch64", "dotprod fp-armv8 fullfp16 neon", 0, 4, 64, 512, 2 << 10, 2.4},
    {"neoverse-v1", "aarch64", "bf16 dotprod fp-armv8 fullfp16 i8mm neon sve", 256, 64, 64, 1 << 10, 32 << 10, 2.6},
    {"rv64gcv", "riscv64", "a c d f m v", 0, 4, 32, 512, 2 << 10, 2.0},
    {"rv64gcv_zvl256b", "riscv64", "a c d f m v zvl256b", 0, 8, 32, 512, 2 << 10, 2.0},
};

const Row* find_row(std::string_view name) {
  const auto* row = std::find_if(std::begin(kCpus), std::end(kCpus), [&](const Row& r) { return name == r.name; });
  return row == std::end(kCpus) ? nullptr : row;
}

std::vector<std::string> sorted_words(const char* text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  std::sort(words.begin(), words.end());
  return words;
}

bool has_all(const Machine& m, const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& f) { return m.has(f); });
}

void derive_x86(Machine& m) {
  m.has_fma = m.has("fma");
  m.has_f16c = m.has("f16c");
  m.has_avx512 = m.has("avx2") && has_all(m, sorted_words(WEFT_AVX512));
  m.has_vnni = (m.has_avx512 && m.has("avx512vnni")) || m.has("avxvnni");
  m.has_avx512_bf16 = m.has_avx512 && m.has("avx512bf16");
  m.has_avx512_fp16 = m.has_avx512 && m.has("avx512fp16");
  m.has_amx_bf16 = m.has("amx-tile") && m.has("amx-bf16");
  m.has_amx_int8 = m.has("amx-tile") && m.has("amx-int8");
  m.vector_bits = m.has_avx512 ? 512 : m.has("avx") ? 256 : 128;
  m.vector_registers = m.has_avx512 ? 32 : 16;
}

// Bits of a RISC-V vector register, at least; without vectors, of a scalar one.
int riscv_vector_bits(const Machine& m) {
  for (const int n : {512, 256, 128}) {
    if (m.has("zvl" + std::to_string(n) + "b")) return n;
  }
  return m.has("v") ? 128 : 64;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : ", ") + w;
  return text;
}

}  // namespace

// Where matrix units do such products, vectors have been seen to do one in four cycles of theirs; elsewhere as many as
// multiply-adds.
double Machine::dot2s() const {
  constexpr double kBesideMatrices = 0.25;
  if (!has_avx512_bf16) return 0;
  return rates.dot2s > 0 ? rates.dot2s : rates.fmas * (has_amx_bf16 ? kBesideMatrices : 1);
}

bool Machine::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

void derive_from_features(Machine& m) {
  if (m.arch == "x86-64") return derive_x86(m);
  m.vector_registers = 32;
  if (m.arch == "aarch64") {
    m.has_fma = m.has_f16c = true;
    if (!m.has("sve")) m.vector_bits = 128;
  } else if (m.arch == "riscv64") {
    m.has_fma = m.has("d");
    m.has_f16c = m.has("zfhmin") && m.has("zvfhmin");
    m.vector_bits = riscv_vector_bits(m);
  }
}

void remove_features(Machine& m, const std::vector<std::string>& names) {
  std::vector<std::string> gone;
  for (const std::string& name : names) {
    if (!name.starts_with('+')) gone.push_back(name.substr(name.starts_with('-') ? 1 : 0));
  }
  // LLVM's features imply each other along these lines.
  const auto remove = [&](const std::string& prefix) { gone.push_back(prefix); };
  for (std::size_t k = 0; k < gone.size(); ++k) {
    if (gone[k] == "avx") remove("avx2"), remove("fma"), remove("f16c");
    if (gone[k] == "avx2") remove("avx512"), remove("avxvnni");
    if (gone[k] == "avx512f") remove("avx512");
  }
  std::erase_if(m.features, [&](const std::string& f) {
    return std::any_of(gone.begin(), gone.end(), [&](const std::string& prefix) { return !prefix.empty() && f.starts_with(prefix); });
  });
  derive_from_features(m);
}

std::vector<std::string> cpu_names(std::string_view arch) {
  std::vector<std::string> names;
  for (const Row& row : kCpus) {
    if (arch.empty() || arch == row.arch) names.push_back(row.name);
  }
  return names;
}

std::optional<Machine> cpu_named(std::string_view name) {
  const Row* row = find_row(name);
  if (row == nullptr) return std::nullopt;
  Machine m;
  m.name = row->name;
  m.arch = row->arch;
  m.features = sorted_words(row->features);
  m.vector_bits = row->sve_bits;
  m.cores = row->cores;
  m.l1_bytes = row->l1_kib << 10;
  m.l2_bytes = row->l2_kib << 10;
  m.l3_bytes = row->l3_kib << 10;
  m.rates.ghz = row->ghz;
  derive_from_features(m);
  return m;
}

bool restrict_to_level(Machine& m, std::string_view level) {
  if (level == "native") return true;
  const std::optional<Machine> wanted = cpu_named(level);
  if (!wanted || !check_runs_on(*wanted, m).ok()) return false;
  m.name = wanted->name;
  m.features = wanted->features;
  derive_from_features(m);
  return true;
}

Result<void> check_runs_on(const Machine& needed, const Machine& here) {
  const auto refused = [&] { return user_error("wrong-cpu", "machine code for another CPU does not run here").at(needed.name); };
  if (needed.arch != here.arch) return refused().expected("a CPU of " + needed.arch).found(here.arch);
  std::vector<std::string> lacking;
  for (const std::string& f : needed.features) {
    if (!here.has(f)) lacking.push_back(f);
  }
  if (!lacking.empty()) return refused().expected("a CPU with " + joined(lacking)).found(here.name);
  if (needed.has("sve") && needed.vector_bits != here.vector_bits) {
    return refused().expected("SVE of " + std::to_string(needed.vector_bits) + " bits").found(std::to_string(here.vector_bits));
  }
  return {};
}

}  // namespace weft
