#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#elif defined(__riscv)
#include <sys/auxv.h>
#endif

#include "base/knobs.h"

namespace weft {
namespace {

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string read_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "48K", "1024K", "36M"
std::int64_t parse_size(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || value < 0 || value > (std::int64_t{1} << 40)) return 0;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : value;
}

void read_caches(Machine& m) {
  const std::string root = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int i = 0; i < 8; ++i) {
    const std::string folder = root + std::to_string(i);
    const std::string level = read_word(folder + "/level");
    if (level.empty()) return;
    const std::int64_t bytes = parse_size(read_word(folder + "/size"));
    if (bytes == 0 || read_word(folder + "/type") == "Instruction") continue;
    if (level == "1") m.l1_bytes = bytes;
    if (level == "2") m.l2_bytes = bytes;
    if (level == "3") m.l3_bytes = bytes;
    if (const auto line = parse_size(read_word(folder + "/coherency_line_size"))) m.cache_line = line;
  }
}

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

std::uint64_t enabled_states(bool osxsave) {  // XCR0: which registers the system saves
  if (!osxsave) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

// Linux saves the registers of tiles for processes that have asked.
bool tiles_permitted() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

std::string brand() {
  if (cpuid(0x80000000).eax < 0x80000004) return "x86-64";
  std::string text;
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    const Registers r = cpuid(leaf);
    for (const unsigned word : {r.eax, r.ebx, r.ecx, r.edx}) {
      for (int i = 0; i < 4; ++i) text += static_cast<char>(word >> (8 * i));
    }
  }
  text = text.substr(0, text.find('\0'));
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "x86-64" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// What the registers of a feature need from the operating system.
enum class Needs : std::uint8_t { Nothing, Avx, Avx512, Amx };
struct FeatureBit {
  const char* name;
  int word;  // index into the words below
  int bit;
  Needs needs;
};

constexpr FeatureBit kFeatures[] = {
    {"sse3", 0, 0, Needs::Nothing},       {"ssse3", 0, 9, Needs::Nothing},       {"fma", 0, 12, Needs::Avx},
    {"cx16", 0, 13, Needs::Nothing},      {"sse4.1", 0, 19, Needs::Nothing},     {"sse4.2", 0, 20, Needs::Nothing},
    {"movbe", 0, 22, Needs::Nothing},     {"popcnt", 0, 23, Needs::Nothing},     {"avx", 0, 28, Needs::Avx},
    {"f16c", 0, 29, Needs::Avx},          {"bmi", 1, 3, Needs::Nothing},         {"avx2", 1, 5, Needs::Avx},
    {"bmi2", 1, 8, Needs::Nothing},       {"avx512f", 1, 16, Needs::Avx512},     {"avx512dq", 1, 17, Needs::Avx512},
    {"avx512ifma", 1, 21, Needs::Avx512}, {"avx512cd", 1, 28, Needs::Avx512},    {"avx512bw", 1, 30, Needs::Avx512},
    {"avx512vl", 1, 31, Needs::Avx512},   {"avx512vbmi", 2, 1, Needs::Avx512},   {"avx512vbmi2", 2, 6, Needs::Avx512},
    {"gfni", 2, 8, Needs::Nothing},       {"avx512vnni", 2, 11, Needs::Avx512},  {"avx512bitalg", 2, 12, Needs::Avx512},
    {"avx512vpopcntdq", 2, 14, Needs::Avx512},
    {"amx-bf16", 3, 22, Needs::Amx},      {"avx512fp16", 3, 23, Needs::Avx512},  {"amx-tile", 3, 24, Needs::Amx},
    {"amx-int8", 3, 25, Needs::Amx},      {"avxvnni", 4, 4, Needs::Avx},         {"avx512bf16", 4, 5, Needs::Avx512},
    {"amx-fp16", 4, 21, Needs::Amx},      {"sahf", 5, 0, Needs::Nothing},        {"lzcnt", 5, 5, Needs::Nothing},
};

void read_processor(Machine& m) {
  m.name = brand();
  const Registers basic = cpuid(1), seven = cpuid(7), seven_one = cpuid(7, 1), extended = cpuid(0x80000001);
  const std::array<unsigned, 6> words = {basic.ecx, seven.ebx, seven.ecx, seven.edx, seven_one.eax, extended.ecx};
  const std::uint64_t states = enabled_states((basic.ecx >> 27) & 1);
  const auto saved = [&](std::uint64_t mask) { return (states & mask) == mask; };
  const bool avx = saved(0x6), avx512 = saved(0xe6), amx = saved(0x600e6) && tiles_permitted();
  for (const FeatureBit& f : kFeatures) {
    if (((words[static_cast<std::size_t>(f.word)] >> f.bit) & 1) == 0) continue;
    if ((f.needs == Needs::Avx && !avx) || (f.needs == Needs::Avx512 && !avx512) || (f.needs == Needs::Amx && !amx)) {
      continue;
    }
    m.features.push_back(f.name);
  }
}

#elif defined(__aarch64__)

void read_processor(Machine& m) {
  m.name = m.arch = "aarch64";
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  const auto add = [&](bool present, const char* name) {
    if (present) m.features.push_back(name);
  };
  add(first & HWCAP_FP, "fp-armv8");
  add(first & HWCAP_ASIMD, "neon");
  add(first & HWCAP_ASIMDHP, "fullfp16");
  add(first & HWCAP_ASIMDDP, "dotprod");
  add(first & HWCAP_SVE, "sve");
  add(second & HWCAP2_I8MM, "i8mm");
  add(second & HWCAP2_BF16, "bf16");
  const int bytes = m.has("sve") ? prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK : 0;
  m.vector_bits = std::max(128, 8 * bytes);
}

#elif defined(__riscv)

// The system tells the letters of the base extensions; vectors are of 128 bits at least.
void read_processor(Machine& m) {
  m.name = m.arch = "riscv64";
  const unsigned long letters = getauxval(AT_HWCAP);
  for (const char letter : std::string_view("acdfmv")) {
    if ((letters >> (letter - 'a')) & 1) m.features.push_back(std::string(1, letter));
  }
}

#else

void read_processor(Machine&) {}

#endif

Machine measure() {
  Machine m;
  read_processor(m);
  for (const std::string& name : knob_names(Knob::CpuFeatures)) {  // those that an emulator has
    if (name.starts_with('+') && !m.has(name.substr(1))) m.features.push_back(name.substr(1));
  }
  std::sort(m.features.begin(), m.features.end());
  derive_from_features(m);
  m.cores = allowed_cores();
  read_caches(m);
  return m;
}

}  // namespace

Machine measured_machine() {
  static const Machine machine = measure();
  return machine;
}

Machine host_machine() {
  static const Machine machine = [] {
    Machine m = measured_machine();
    remove_features(m, knob_names(Knob::CpuFeatures));
    return m;
  }();
  return machine;
}

}  // namespace weft
