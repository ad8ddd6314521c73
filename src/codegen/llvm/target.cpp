#include "codegen/llvm/target.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include "kernel/simt/lower.h"

namespace weft::codegen {

namespace {

// The scheduler and loop strength reduction undo the order that the emitter chose: GEMM loops then spill.
constexpr const char* switched_off[][2] = {
    {"enable-misched", "false"},
    {"disable-lsr", "true"},
    // PTX alone: whether a sum that is used again could be poison is searched for in all of the block, for each of them. No index overflows.
    {"enable-poison-reuse-guard", "false"}};

// Setting one up costs time and memory: that waits until code for it is asked for.
struct Architecture {
  const char* name;      // as in Machine::arch
  const char* triple;
  const char* cpu;       // the plain one: what may be used is listed; null: the machine's name is LLVM's
  const char* features;  // besides the machine's
  void (*initialize)();
};

#define WEFT_INITIALIZE(target)           \
  [] {                                    \
    LLVMInitialize##target##TargetInfo(); \
    LLVMInitialize##target##Target();     \
    LLVMInitialize##target##TargetMC();   \
    LLVMInitialize##target##AsmPrinter(); \
  }

// As many as the build links: cmake/WeftDependencies.cmake.
constexpr Architecture kArchitectures[] = {
#ifdef WEFT_LLVM_X86
    {"x86-64", "x86_64-unknown-linux-gnu", "x86-64", "-prefer-256-bit", WEFT_INITIALIZE(X86)},
#endif
#ifdef WEFT_LLVM_AArch64
    {"aarch64", "aarch64-unknown-linux-gnu", "generic", "", WEFT_INITIALIZE(AArch64)},
#endif
#ifdef WEFT_LLVM_RISCV
    {"riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "", WEFT_INITIALIZE(RISCV)},
#endif
#ifdef WEFT_LLVM_NVPTX
    {"nvptx64", "nvptx64-nvidia-cuda", nullptr, "", WEFT_INITIALIZE(NVPTX)},
#endif
#ifdef WEFT_LLVM_SPIRV
    {"spirv64", "spirv64v1.2-unknown-unknown", "", "", WEFT_INITIALIZE(SPIRV)},  // the version that OpenCL 2.2 devices take
#endif
};

const Architecture* architecture(const std::string& name) {
  const auto* found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                   [&](const Architecture& a) { return name == a.name; });
  return found == std::end(kArchitectures) ? nullptr : found;
}

// Of the triple, when it is one of another architecture than this process's.
void initialize_other(const llvm::Triple& triple) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  for (const Architecture& a : kArchitectures) {
    if (llvm::Triple(a.triple).getArch() == triple.getArch()) a.initialize();
  }
}

std::string with_sign(const std::vector<std::string>& features) {
  std::string text;
  for (const std::string& feature : features) {
    if (feature != kernel::kF8Products) text += (text.empty() ? "+" : ",+") + feature;
  }
  return text;
}

}  // namespace

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto& options = llvm::cl::getRegisteredOptions();
    for (const auto& [option, value] : switched_off) {
      auto it = options.find(option);
      if (it != options.end()) it->second->addOccurrence(0, option, value);
    }
  });
}

std::string version() { return "llvm " LLVM_VERSION_STRING " less misched=0 lsr=0 emitter=5"; }

const TargetDesc& host_target() {
  static const TargetDesc target = [] {
    std::vector<std::string> features;
    const Machine machine = measured_machine();  // which may have more, by an emulator
    for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
      const bool there = feature.second || machine.has(feature.first().str());
      features.push_back((there ? "+" : "-") + feature.first().str());
    }
    features.push_back("-prefer-256-bit");  // some CPUs' names bring it; kernels state their width
    std::sort(features.begin(), features.end());
    TargetDesc result{llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(), "", machine};
    for (const auto& feature : features) result.features += (result.features.empty() ? "" : ",") + feature;
    return result;
  }();
  return target;
}

TargetDesc target_for(const Machine& machine) {
  const Machine& host = host_target().machine;
  if (machine.arch == host.arch && machine.features == host.features && machine.vector_bits == host.vector_bits) return host_target();
  const Architecture* arch = architecture(machine.arch);
  if (arch == nullptr) return {machine.arch, "", with_sign(machine.features), machine};
  TargetDesc result{machine.arch == host.arch ? host_target().triple : arch->triple, arch->cpu ? arch->cpu : machine.name,
                    with_sign(machine.features), machine};
  if (*arch->features != 0) result.features += (result.features.empty() ? "" : ",") + std::string(arch->features);
  return result;
}

namespace {

std::mutex idle_mutex;

// Never destroyed: a worker may give one back while the process ends.
std::vector<std::unique_ptr<llvm::TargetMachine>>& idle_machines(const TargetDesc& desc, bool quick) {
  static auto& all = *new std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>>;
  return all[desc.triple + ' ' + desc.cpu + ' ' + desc.features + (quick ? " quick" : "")];
}

Result<std::unique_ptr<llvm::TargetMachine>> new_target_machine(const TargetDesc& desc, const llvm::Triple& triple, bool quick) {
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return unsupported("target", "this build generates no code for " + desc.triple);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // only fma where the kernel says fma
  options.FunctionSections = false;
  const auto level = quick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Less;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, desc.cpu, desc.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                  level));
  if (!machine) return internal_error("no target machine for " + desc.triple);
  return machine;
}

}  // namespace

void GiveBack::operator()(llvm::TargetMachine* machine) const {
  std::unique_ptr<llvm::TargetMachine> own(machine);
  if (idle == nullptr) return;
  const std::lock_guard<std::mutex> lock(idle_mutex);
  idle->push_back(std::move(own));
}

Result<TargetMachine> make_target_machine(const TargetDesc& desc, bool quick) {
  initialize_llvm();
  const llvm::Triple triple(desc.triple);
  if (triple.getArch() != llvm::Triple(host_target().triple).getArch()) initialize_other(triple);
  quick = quick && triple.isX86();  // elsewhere LLVM's quick selection does not know all vectors
  GiveBack back;
  if (triple.isX86() || triple.isAArch64() || triple.isRISCV()) {  // others keep what belongs to one module
    const std::lock_guard<std::mutex> lock(idle_mutex);
    back.idle = &idle_machines(desc, quick);
    if (!back.idle->empty()) {
      TargetMachine machine(back.idle->back().release(), back);
      back.idle->pop_back();
      return machine;
    }
  }
  return TargetMachine(WEFT_TRY(new_target_machine(desc, triple, quick)).release(), back);
}

}  // namespace weft::codegen
