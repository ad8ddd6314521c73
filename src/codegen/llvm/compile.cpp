// From kernels to LLVM IR, assembly and objects.
#include <algorithm>
#include <chrono>
#include <mutex>

#include <llvm/ADT/SmallVector.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Pass.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>

#include "codegen/llvm/emit/emitter.h"
#include "codegen/llvm/note.h"
#include "codegen/llvm/stand_in.h"
#include "codegen/llvm/quick.h"
#include "codegen/llvm/spirv.h"
#include "codegen/llvm/target.h"

namespace weft::codegen {

namespace {

class Stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// One module with a context and a target machine of its own, so that several may work at once.
struct Unit {
  TargetMachine machine;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;

  Result<void> emit(std::span<const Entry> entries, const TargetDesc& target, const Options& options);
  std::string run_codegen(llvm::CodeGenFileType kind, StandIns* stand_ins = nullptr);

 private:
  void add_passes(llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& stream, llvm::CodeGenFileType kind, StandIns* stand_ins);
};

Isa isa_of(const llvm::TargetMachine& machine, const TargetDesc& target) {
  const llvm::MCSubtargetInfo& subtarget = *machine.getMCSubtargetInfo();
  Isa isa;
  if (machine.getTargetTriple().isAArch64()) {
    isa.fma = isa.f16c = isa.nan_max = true;
    if (subtarget.checkFeatures("+sve")) isa.sve_bits = target.machine.vector_bits;
    isa.vector_divide = isa.sve_bits > 0;
  } else if (machine.getTargetTriple().isRISCV()) {
    isa.fma = subtarget.checkFeatures("+d");
    isa.vector_divide = subtarget.checkFeatures("+v");
    isa.f16c = subtarget.checkFeatures("+zfhmin,+zvfhmin");
  }
  if (machine.getTargetTriple().isNVPTX()) isa.groups = isa.fma = isa.f16c = isa.nan_max = true;
  if (machine.getTargetTriple().isSPIRV()) isa.groups = isa.spirv = isa.fma = isa.f16c = isa.vector_divide = true;
  isa.shuffles = target.machine.has_shuffle;
  if (!machine.getTargetTriple().isX86()) return isa;
  isa.avx512 = subtarget.checkFeatures("+avx512f,+avx512vl,+avx512dq,+avx512bw");
  isa.fma = subtarget.checkFeatures("+fma") || isa.avx512;
  isa.x86 = true;
  isa.avx2 = subtarget.checkFeatures("+avx2") || isa.avx512;
  isa.vnni = isa.avx512 && subtarget.checkFeatures("+avx512vnni");
  isa.amx = subtarget.checkFeatures("+amx-bf16") && subtarget.checkFeatures("+amx-int8");
  isa.bf16_pairs = isa.avx512 && subtarget.checkFeatures("+avx512bf16");
  isa.vnni_vex = subtarget.checkFeatures("+avxvnni");
  isa.f16c = subtarget.checkFeatures("+f16c") || isa.avx512;
  return isa;
}

Result<void> Unit::emit(std::span<const Entry> entries, const TargetDesc& target, const Options& options) {
  machine = WEFT_TRY(make_target_machine(target, options.quick));
  context.setDiscardValueNames(machine->getTargetTriple().isSPIRV());  // which would name blocks by their ids
  module = std::make_unique<llvm::Module>("weft", context);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  const Isa isa = isa_of(*machine, target);
  for (const Entry& entry : entries) {
    WEFT_TRY(check_types(*entry.function));
    if (module->getFunction(entry.symbol)) return internal_error("two kernels are called " + entry.symbol);
    llvm::IRBuilder<> builder(context);
    WEFT_TRY(Emitter(*module, builder, isa, *entry.function).run(entry.symbol));
  }
  if (!isa.groups) add_note(*module, target.machine);
  if (!options.verify) return {};
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::verifyModule(*module, &stream)) return internal_error("llvm refuses the module: " + text);
  return {};
}

// Those of addPassesToEmitFile(), and the one that replaces stand-ins.
void Unit::add_passes(llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& stream, llvm::CodeGenFileType kind,
                      StandIns* stand_ins) {
  if (stand_ins == nullptr) {
    const bool unable = machine->addPassesToEmitFile(passes, stream, nullptr, kind);
    WEFT_CHECK(!unable, "the target emits no such file");
    return;
  }
  auto* info = new llvm::MachineModuleInfoWrapperPass(machine.get());
  llvm::TargetPassConfig* config = machine->createPassConfig(passes);
  config->setDisableVerify(true);
  replace_stand_ins(*config, *stand_ins);
  passes.add(config);
  passes.add(info);
  bool unable = config->addISelPasses();
  config->addMachinePasses();
  config->setInitialized();
  unable = unable || machine->addAsmPrinter(passes, stream, nullptr, kind, info->getMMI().getContext());
  WEFT_CHECK(!unable, "the target emits no such file");
  passes.add(llvm::createFreeMachineFunctionPass());
}

std::string Unit::run_codegen(llvm::CodeGenFileType kind, StandIns* stand_ins) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->getTargetTriple().isSPIRV()) {  // whose vectors have 16 lanes at most
    llvm::ScalarizerPassOptions all;
    all.ScalarizeLoadStore = true;
    passes.add(llvm::createScalarizerPass(all));
  }
  add_passes(passes, stream, kind, stand_ins);
  passes.run(*module);
  return {bytes.begin(), bytes.end()};
}

// A name other than these means that LLVM made a library call out of an instruction that it has no code for.
Result<void> check_undefined(const std::string& bytes) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "weft"));
  if (!object) return internal_error("unreadable object: " + llvm::toString(object.takeError()));
  static constexpr std::string_view allowed[] = {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_", ""};
  for (const auto& symbol : (*object)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) return internal_error("an object with an unreadable symbol");
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined)) continue;
    if (std::find(std::begin(allowed), std::end(allowed), std::string_view(*name)) != std::end(allowed)) continue;
    return unsupported("target", "the target's features leave an instruction without code: it became a call of " +
                                     name->str());
  }
  return {};
}

Result<Object> compile_one(std::span<const Entry> entries, const TargetDesc& target, const Options& options, Timing& timing) {
  std::string bytes;
  for (const bool placing : {true, false}) {
    Stopwatch emit;
    Unit unit;
    WEFT_TRY(unit.emit(entries, target, options));
    StandIns stand_ins;
    const bool quick = unit.machine->getOptLevel() == llvm::CodeGenOptLevel::None;
    if (quick) ease_selection(*unit.module, placing ? &stand_ins : nullptr);
    timing.emit_ms += emit.ms();
    Stopwatch codegen;
    bytes = unit.run_codegen(llvm::CodeGenFileType::ObjectFile, quick && placing ? &stand_ins : nullptr);
    timing.codegen_ms += codegen.ms();
    if (stand_ins.all_replaced()) break;  // else one was selected in another way than is known here
  }
  WEFT_TRY(check_undefined(bytes));
  return Object(bytes.begin(), bytes.end());
}

Result<std::string> emit_text(std::span<const Entry> entries, const TargetDesc& target, bool assembly) {
  Unit unit;
  Options options;
  options.verify = true;
  WEFT_TRY(unit.emit(entries, target, options));
  if (assembly) return unit.run_codegen(llvm::CodeGenFileType::AssemblyFile);
  std::string text;
  llvm::raw_string_ostream stream(text);
  unit.module->print(stream, nullptr);
  return text;
}

}  // namespace

Result<std::string> emit_llvm_ir(std::span<const Entry> entries, const TargetDesc& target) {
  return emit_text(entries, target, false);
}

Result<std::string> emit_assembly(std::span<const Entry> entries, const TargetDesc& target) {
  return emit_text(entries, target, true);
}

Result<std::string> ptx(std::span<const kernel::Function> kernels, const Machine& machine) {
  std::vector<Entry> entries;
  for (const kernel::Function& kernel : kernels) entries.push_back({&kernel, kernel.name});
  return emit_assembly(entries, target_for(machine));
}

namespace {

// Until blocks and other things are told apart (spirv.h): memory is then at other addresses.
Result<std::string> spirv_as(std::span<const kernel::Function> kernels, Machine machine, llvm::CodeGenFileType kind) {
  std::vector<Entry> entries;
  for (const kernel::Function& kernel : kernels) entries.push_back({&kernel, kernel.name});
  machine.arch = "spirv64";  // whatever the device is
  machine.features.clear();
  TargetDesc target = target_for(machine);
  if (machine.has_shuffle) target.triple = "spirv64v1.3-unknown-unknown";  // 1.2 knows no shuffles
  Options options;
  options.verify = true;
  static std::mutex one_at_a_time;  // the table is one for all threads
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  constexpr int kAttempts = 16;
  std::vector<std::unique_ptr<Unit>> kept;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Unit& unit = *kept.emplace_back(std::make_unique<Unit>());
    WEFT_TRY(unit.emit(entries, target, options));
    std::string code = unit.run_codegen(kind);
    if (kind == llvm::CodeGenFileType::ObjectFile ? mend_blocks(code) : ids_are_unique(code)) return code;
  }
  return internal_error("LLVM gives two blocks one id");
}

}  // namespace

Result<std::string> spirv_text(std::span<const kernel::Function> kernels, const Machine& machine) {
  return spirv_as(kernels, machine, llvm::CodeGenFileType::AssemblyFile);
}

Result<std::string> spirv(std::span<const kernel::Function> kernels, const Machine& machine) {
  return spirv_as(kernels, machine, llvm::CodeGenFileType::ObjectFile);
}

Result<Object> compile_object(std::span<const Entry> entries, const TargetDesc& target, const Options& options) {
  Timing timing;
  auto object = WEFT_TRY(compile_one(entries, target, options, timing));
  if (options.timing) {
    options.timing->emit_ms += timing.emit_ms;
    options.timing->codegen_ms += timing.codegen_ms;
  }
  return object;
}

void warm_up(const TargetDesc& target, int threads) {
  kernel::Function nothing;
  nothing.name = "nothing";
  const Entry entry{&nothing, nothing.name};
  std::vector<std::unique_ptr<Unit>> units;  // at once, so that each has a machine of its own
  Options quick;
  quick.quick = true;
  for (int k = 0; k < threads; ++k) {
    Unit& unit = *units.emplace_back(std::make_unique<Unit>());
    if (!unit.emit(std::span(&entry, 1), target, quick).ok()) return;  // who needs it says so
    (void)unit.run_codegen(llvm::CodeGenFileType::ObjectFile);
  }
}

}  // namespace weft::codegen
