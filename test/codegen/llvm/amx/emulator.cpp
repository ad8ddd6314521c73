// Intel's AMX on CPUs without it, for tests: a library to preload. Its instructions are invalid there, so each raises
// SIGILL; the handler does what the manual says (Intel SDM, volume 2, "TDPBF16PS" and neighbours), slowly, and goes on
// behind it. The tiles are the thread's. With WEFT_CPU_FEATURES=+amx-tile,+amx-bf16,+amx-int8 Weft generates code for it.
#include <signal.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;

struct State {
  bool configured;
  std::uint16_t row_bytes[kTiles];
  std::uint8_t rows[kTiles];
  unsigned char data[kTiles][kMostRows][kMostBytes];
};
thread_local State state;

// An instruction of the VEX map 0F38 with a memory or register operand.
struct Instruction {
  int opcode, prefix;  // 0: none, 1: 66, 2: F3, 3: F2
  int reg, rm, third;  // numbers of tiles; rm: of a register operand
  bool memory;
  std::uint64_t address, step;  // of the memory operand; its index times its scale
  int length;
};

std::uint64_t general(const ucontext_t& context, int number) {
  constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uint64_t>(context.uc_mcontext.gregs[kOrder[number]]);
}

bool decode(const ucontext_t& context, Instruction& i) {
  const auto rip = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto* code = reinterpret_cast<const unsigned char*>(rip);
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return false;  // map 0F38, W0, 128 bits
  const int x = (code[1] & 0x40) != 0 ? 0 : 8, b = (code[1] & 0x20) != 0 ? 0 : 8;
  i.third = ~(code[2] >> 3) & 7;
  i.prefix = code[2] & 3;
  i.opcode = code[3];
  const int mod = code[4] >> 6, rm = code[4] & 7;
  i.reg = (code[4] >> 3) & 7;
  i.rm = rm;
  i.memory = mod != 3;
  i.length = 5;
  i.step = 0;
  if (!i.memory) return true;
  std::uint64_t base = 0;
  bool far = mod == 2;
  if (rm == 4) {
    const int sib = code[i.length++], index = ((sib >> 3) & 7) + x;
    if (index != 4) i.step = general(context, index) << (sib >> 6);
    if ((sib & 7) == 5 && mod == 0) far = true;
    else base = general(context, (sib & 7) + b);
  } else if (rm == 5 && mod == 0) {  // relative to what follows
    base = rip + static_cast<std::uint64_t>(i.length) + 4;
    far = true;
  } else {
    base = general(context, rm + b);
  }
  std::int32_t offset = 0;
  if (far) std::memcpy(&offset, code + i.length, 4), i.length += 4;
  else if (mod == 1) offset = static_cast<std::int8_t>(code[i.length++]);
  i.address = base + static_cast<std::uint64_t>(static_cast<std::int64_t>(offset));
  return true;
}

bool configure(const unsigned char* from) {
  if (from[0] != 1) return false;
  std::memset(&state, 0, sizeof state);
  for (int t = 0; t < kTiles; ++t) {
    std::memcpy(&state.row_bytes[t], from + 16 + 2 * t, 2);
    state.rows[t] = from[48 + t];
    if (state.row_bytes[t] > kMostBytes || state.rows[t] > kMostRows) return false;
  }
  return state.configured = true;
}

void load(const Instruction& i) {
  std::memset(state.data[i.reg], 0, sizeof state.data[i.reg]);
  for (int r = 0; r < state.rows[i.reg]; ++r) {
    std::memcpy(state.data[i.reg][r], reinterpret_cast<const void*>(i.address + static_cast<std::uint64_t>(r) * i.step),
                state.row_bytes[i.reg]);
  }
}

void store(const Instruction& i) {
  for (int r = 0; r < state.rows[i.reg]; ++r) {
    std::memcpy(reinterpret_cast<void*>(i.address + static_cast<std::uint64_t>(r) * i.step), state.data[i.reg][r],
                state.row_bytes[i.reg]);
  }
}

// Denormal numbers are read, and written, as zeros.
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }

float bf16(const unsigned char* from) {
  std::uint32_t bits = static_cast<std::uint32_t>(from[1]) << 24 | static_cast<std::uint32_t>(from[0]) << 16;
  float x = 0;
  std::memcpy(&x, &bits, 4);
  return flushed(x);
}

// Products of even and of odd steps are added up apart, each rounded once, then both to the sum.
void multiply_floats(const Instruction& i) {
  const int a = i.rm, b = i.third;
  for (int m = 0; m < state.rows[i.reg]; ++m) {
    for (int n = 0; n < state.row_bytes[i.reg] / 4; ++n) {
      float parts[2] = {0, 0};
      for (int k = 0; k < state.row_bytes[a] / 4; ++k) {
        for (int side = 0; side < 2; ++side) {
          parts[side] = flushed(std::fma(bf16(&state.data[a][m][4 * k + 2 * side]), bf16(&state.data[b][k][4 * n + 2 * side]), parts[side]));
        }
      }
      float sum = 0;
      std::memcpy(&sum, &state.data[i.reg][m][4 * n], 4);
      sum = flushed(flushed(sum) + flushed(parts[0] + parts[1]));
      std::memcpy(&state.data[i.reg][m][4 * n], &sum, 4);
    }
  }
}

void multiply_bytes(const Instruction& i, bool a_signed, bool b_signed) {
  const auto number = [](unsigned char x, bool sign) { return sign ? static_cast<int>(static_cast<signed char>(x)) : static_cast<int>(x); };
  const int a = i.rm, b = i.third;
  for (int m = 0; m < state.rows[i.reg]; ++m) {
    for (int n = 0; n < state.row_bytes[i.reg] / 4; ++n) {
      std::uint32_t sum = 0;
      std::memcpy(&sum, &state.data[i.reg][m][4 * n], 4);
      for (int k = 0; k < state.row_bytes[a]; ++k) {
        sum += static_cast<std::uint32_t>(number(state.data[a][m][k], a_signed) * number(state.data[b][k / 4][4 * n + k % 4], b_signed));
      }
      std::memcpy(&state.data[i.reg][m][4 * n], &sum, 4);
    }
  }
}

bool run(const Instruction& i) {
  const auto* configuration = reinterpret_cast<const unsigned char*>(i.address);
  if (i.opcode == 0x49 && i.memory && i.prefix == 0) return configure(configuration);
  if (i.opcode == 0x49 && !i.memory && i.prefix == 0) return std::memset(&state, 0, sizeof state), true;  // tilerelease
  if (!state.configured) return false;
  switch (i.opcode) {
    case 0x49:
      if (i.memory || i.prefix != 3) return false;
      return std::memset(state.data[i.reg], 0, sizeof state.data[i.reg]), true;  // tilezero
    case 0x4b:
      if (!i.memory || i.prefix == 0) return false;
      return i.prefix == 2 ? store(i) : load(i), true;
    case 0x5c:
      if (i.memory || i.prefix != 2) return false;
      return multiply_floats(i), true;
    case 0x5e:  // 66: unsigned by signed, F3: signed by unsigned, F2: both signed
      if (i.memory) return false;
      return multiply_bytes(i, i.prefix >= 2, i.prefix == 1 || i.prefix == 3), true;
    default:
      return false;
  }
}

void on_illegal(int, siginfo_t*, void* context) {
  auto& c = *static_cast<ucontext_t*>(context);
  Instruction i{};
  if (decode(c, i) && run(i)) {
    c.uc_mcontext.gregs[REG_RIP] += i.length;
    return;
  }
  signal(SIGILL, SIG_DFL);  // which it meets again
}

__attribute__((constructor)) void install() {
  struct sigaction action {};
  action.sa_sigaction = on_illegal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGILL, &action, nullptr);
}

}  // namespace
