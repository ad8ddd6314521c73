#include "codegen/llvm/target.h"

#include <algorithm>
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

namespace weft::codegen {

namespace {

// The scheduler and loop strength reduction undo the order that the emitter chose: GEMM loops then spill.
constexpr const char* switched_off[][2] = {{"enable-misched", "false"}, {"disable-lsr", "true"}};

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

std::string version() { return "llvm " LLVM_VERSION_STRING " less misched=0 lsr=0 emitter=1"; }

const TargetDesc& host_target() {
  static const TargetDesc target = [] {
    std::vector<std::string> features;
    for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
      features.push_back((feature.second ? "+" : "-") + feature.first().str());
    }
    features.push_back("-prefer-256-bit");  // some CPUs' names bring it; kernels state their width
    std::sort(features.begin(), features.end());
    TargetDesc result{llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(), ""};
    for (const auto& feature : features) result.features += (result.features.empty() ? "" : ",") + feature;
    return result;
  }();
  return target;
}

TargetDesc target_for(const Machine& machine) {
  if (machine.features == measured_machine().features) return host_target();
  TargetDesc result{host_target().triple, "x86-64", "-prefer-256-bit"};
  for (const std::string& feature : machine.features) result.features += ",+" + feature;
  return result;
}

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const TargetDesc& desc) {
  initialize_llvm();
  const llvm::Triple triple(desc.triple);
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return unsupported("target", "this build generates no code for " + desc.triple);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // only fma where the kernel says fma
  options.FunctionSections = false;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, desc.cpu, desc.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                  llvm::CodeGenOptLevel::Less));
  if (!machine) return internal_error("no target machine for " + desc.triple);
  return machine;
}

}  // namespace weft::codegen
