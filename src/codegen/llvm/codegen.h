// Kernel IR to machine code with LLVM. The functions of a graph go into a few objects, which the runtime caches and loads.
//
// The emitter writes vector code in its final form, so no IR passes run. Generated code calls nothing but memcpy,
// memset and memmove; everything transcendental was expanded before (kernel::expand_math).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "kernel/kernel.h"
#include "runtime/kernel_abi.h"

namespace weft::codegen {

struct TargetDesc {
  std::string triple;
  std::string cpu;       // for tuning only: what may be used is in `features`
  std::string features;  // "+avx2,-avx512f,..."
  Machine machine = {};  // what objects say that they need; of SVE the code counts on its vector_bits
};

const TargetDesc& host_target();  // the running CPU, by its feature bits
TargetDesc target_for(const Machine& machine);  // with the machine's features alone
std::string version();            // of LLVM and of what else shapes the code; part of cache keys

// A function under the symbol name that the caller chose for it, unique in its object.
struct Entry {
  const kernel::Function* function = nullptr;
  std::string symbol;
};

struct Timing {
  double emit_ms = 0;     // Kernel IR to LLVM IR
  double codegen_ms = 0;  // LLVM IR to an object
  double link_ms = 0;     // handing objects to the linker, which works at the first lookup
};

struct Options {
  bool verify = false;     // run LLVM's verifier
  bool quick = false;      // in half the time, of code that runs several times as long; its results are the same to the bit
  Timing* timing = nullptr;  // added to
};

using Object = std::vector<char>;

Result<std::string> emit_llvm_ir(std::span<const Entry> entries, const TargetDesc& target);
Result<std::string> emit_assembly(std::span<const Entry> entries, const TargetDesc& target);
// For a machine of groups of threads whose assembly is PTX. Each function is an entry under its name: one call a thread,
// a block of `threads` a program. Parameters: a pointer for each Memory buffer, the sizes as u64, a pointer to the 32
// bits that a failed check writes its code to. Buffers start at multiples of 16 bytes where vectors are accessed.
Result<std::string> ptx(std::span<const kernel::Function> kernels, const Machine& machine);
// The same as SPIR-V for OpenCL devices: a module's words, and its listing. Parameters are those of the OpenCL text
// (codegen/text/text.h).
// Where threads shuffle on the machine, a subgroup is asked to be a warp.
Result<std::string> spirv(std::span<const kernel::Function> kernels, const Machine& machine);
Result<std::string> spirv_text(std::span<const kernel::Function> kernels, const Machine& machine);
// May be called from several threads at once.
Result<Object> compile_object(std::span<const Entry> entries, const TargetDesc& target, const Options& options = {});

// Sets LLVM up for as many threads that make code quickly, which else the first code does: while there is nothing to compile yet.
void warm_up(const TargetDesc& target, int threads);

// What an object says of itself, in a note of its own (section .note.weft, as `readelf -n` shows).
struct ObjectInfo {
  Machine machine;                   // name, architecture, features and the width of its vectors
  std::vector<std::string> symbols;  // of its kernels
};
Result<ObjectInfo> object_info(std::span<const char> object);

// Machine code in memory, until destroyed. The objects' bytes are not needed after load(). Those that need a CPU unlike
// this one are refused.
class LoadedCode {
 public:
  static Result<LoadedCode> load(std::span<const Object> objects, Timing* timing = nullptr);
  Result<runtime::KernelFn> lookup(std::string_view symbol) const;

 private:
  Result<void> link(std::span<const Object> objects);  // with LLVM's linker
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Bytes of scratch that one program needs for the function's OnChip buffers.
std::int64_t scratch_bytes(const std::vector<ssa::Buffer>& buffers);
inline std::int64_t scratch_bytes(const kernel::Function& function) { return scratch_bytes(function.buffers); }

}  // namespace weft::codegen
