#include "codegen/llvm/stand_in.h"

#include <map>
#include <string>

#include <llvm/CodeGen/MachineFunction.h>
#include <llvm/CodeGen/MachineFunctionPass.h>
#include <llvm/CodeGen/MachineInstrBuilder.h>
#include <llvm/CodeGen/MachineRegisterInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetInstrInfo.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Metadata.h>

namespace weft::codegen {

namespace {

using llvm::MachineInstr;

// Vectors of one register.
bool is_whole_vector(const llvm::Type* type) {
  if (!type->isVectorTy() || !(type->getScalarType()->isFloatTy() || type->getScalarType()->isDoubleTy())) return false;
  const unsigned bits = type->getPrimitiveSizeInBits().getFixedValue();
  return bits == 128 || bits == 256 || bits == 512;
}

void mark(llvm::Instruction& inst) {
  inst.setMetadata(llvm::LLVMContext::MD_pcsections, llvm::MDNode::get(inst.getContext(), {}));
}

// What the selection does not fold into the instruction that takes it, which would lose the mark.
void keep_apart(llvm::Value* value) {
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(value)) load->setVolatile(true);
}

// Vector instructions of the target by name: "VADD" "PSZ" "rr".
class Opcodes {
 public:
  explicit Opcodes(const llvm::MCInstrInfo& info) : info_(info) {
    for (unsigned op = 0; op < info.getNumOpcodes(); ++op) {
      const llvm::StringRef name = info.getName(op);
      if (name.starts_with("VFMADD231P") || name.starts_with("VBROADCASTS")) numbers_.emplace(name, op);
    }
  }

  // `from` with what stands between its two ends kept; 0: there is none. VADD-PSZ-rr, VFMADD231-PSZ-r.
  unsigned renamed(unsigned op, llvm::StringRef front, llvm::StringRef back, const char* new_front, const char* new_back) const {
    llvm::StringRef name = info_.getName(op);
    if (!name.consume_front(front) || !name.consume_back(back)) return 0;
    const auto found = numbers_.find(new_front + name.str() + new_back);
    return found == numbers_.end() ? 0 : found->second;
  }

  bool is_of(unsigned op, llvm::StringRef front, llvm::StringRef back, unsigned like, llvm::StringRef like_front) const {
    llvm::StringRef name = info_.getName(op), other = info_.getName(like);
    return name.consume_front(front) && name.consume_back(back) && other.consume_front(like_front) && other.consume_back(back) && name == other;
  }

 private:
  const llvm::MCInstrInfo& info_;
  std::map<std::string, unsigned, std::less<>> numbers_;
};

class Replacer : public llvm::MachineFunctionPass {
 public:
  explicit Replacer(StandIns& stand_ins) : MachineFunctionPass(ID), stand_ins_(stand_ins) {}

  bool runOnMachineFunction(llvm::MachineFunction& function) override {
    if (stand_ins_.placed == 0) return false;
    const llvm::TargetInstrInfo& info = *function.getSubtarget().getInstrInfo();
    static const Opcodes opcodes(info);
    for (llvm::MachineBasicBlock& block : function) {
      for (auto it = block.begin(); it != block.end();) {
        MachineInstr& inst = *it++;
        if (inst.getPCSections() == nullptr) continue;
        inst.setPCSections(function, nullptr);
        if (spread(inst, opcodes, info) || fma(inst, opcodes, info)) ++stand_ins_.replaced;
      }
    }
    return true;
  }

  llvm::StringRef getPassName() const override { return "Weft stand-ins"; }

 private:
  static bool spread(MachineInstr& inst, const Opcodes& opcodes, const llvm::TargetInstrInfo& info) {
    unsigned op = opcodes.renamed(inst.getOpcode(), "VMOVUPS", "rm", "VBROADCASTSS", "rm");
    if (op == 0) op = opcodes.renamed(inst.getOpcode(), "VMOVUPD", "rm", "VBROADCASTSD", "rm");
    if (op == 0) return false;
    inst.setDesc(info.get(op));
    inst.dropMemRefs(*inst.getMF());  // which say that it reads the whole vector
    return true;
  }

  // sum = product + c, product = a b.
  static bool fma(MachineInstr& sum, const Opcodes& opcodes, const llvm::TargetInstrInfo& info) {
    const unsigned op = opcodes.renamed(sum.getOpcode(), "VADD", "rr", "VFMADD231", "r");
    if (op == 0) return false;
    llvm::MachineRegisterInfo& registers = sum.getMF()->getRegInfo();
    MachineInstr* product = registers.getUniqueVRegDef(sum.getOperand(1).getReg());
    if (product == nullptr || !opcodes.is_of(product->getOpcode(), "VMUL", "rr", sum.getOpcode(), "VADD")) return false;
    if (!registers.hasOneUse(product->getOperand(0).getReg())) return false;
    const llvm::Register a = product->getOperand(1).getReg(), b = product->getOperand(2).getReg(), c = sum.getOperand(2).getReg();
    for (const llvm::Register reg : {a, b, c}) registers.clearKillFlags(reg);
    llvm::BuildMI(*sum.getParent(), sum, sum.getDebugLoc(), info.get(op), sum.getOperand(0).getReg()).addReg(c).addReg(a).addReg(b);
    sum.eraseFromParent();
    product->eraseFromParent();
    return true;
  }

  static char ID;
  StandIns& stand_ins_;
};

char Replacer::ID = 0;

}  // namespace

bool is_replaceable_fma(const llvm::IntrinsicInst& call) {
  return call.getIntrinsicID() == llvm::Intrinsic::fma && is_whole_vector(call.getType());
}

void place_fma(llvm::IntrinsicInst& call, StandIns& stand_ins) {
  llvm::IRBuilder<> b(&call);
  auto* product = llvm::cast<llvm::Instruction>(b.CreateFMul(call.getArgOperand(0), call.getArgOperand(1)));
  auto* sum = llvm::cast<llvm::Instruction>(b.CreateFAdd(product, call.getArgOperand(2)));
  for (llvm::Value* operand : call.args()) keep_apart(operand);
  mark(*product);
  mark(*sum);
  call.replaceAllUsesWith(sum);
  call.eraseFromParent();
  ++stand_ins.placed;
}

llvm::LoadInst* replaceable_spread(const llvm::ShuffleVectorInst& shuffle) {
  if (!is_whole_vector(shuffle.getType()) || !shuffle.isZeroEltSplat()) return nullptr;
  const auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(shuffle.getOperand(0));
  if (insert == nullptr) return nullptr;
  const auto* lane = llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
  if (lane == nullptr || !lane->isZero()) return nullptr;
  auto* load = llvm::dyn_cast<llvm::LoadInst>(insert->getOperand(1));
  return load != nullptr && load->isSimple() ? load : nullptr;
}

void place_spread(llvm::ShuffleVectorInst& shuffle, llvm::LoadInst& load, StandIns& stand_ins) {
  llvm::IRBuilder<> b(&load);  // where nothing was written since
  llvm::LoadInst* spread = b.CreateAlignedLoad(shuffle.getType(), load.getPointerOperand(), load.getAlign(), true);
  mark(*spread);
  auto* insert = llvm::cast<llvm::Instruction>(shuffle.getOperand(0));
  shuffle.replaceAllUsesWith(spread);
  shuffle.eraseFromParent();
  if (insert->use_empty()) insert->eraseFromParent();
  if (load.use_empty()) load.eraseFromParent();
  ++stand_ins.placed;
}

void replace_stand_ins(llvm::TargetPassConfig& passes, StandIns& stand_ins) {
  passes.insertPass(&llvm::FinalizeISelID, llvm::IdentifyingPassPtr(new Replacer(stand_ins)));
}

}  // namespace weft::codegen
