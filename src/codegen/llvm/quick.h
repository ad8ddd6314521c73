// What is done to LLVM IR of which code is to be made quickly.
#pragma once

namespace llvm {
class Module;
}

namespace weft::codegen {

struct StandIns;

// LLVM's quick selection works through a block from its end and leaves all that precedes an instruction that it has no
// code for to the thorough one, which takes many times as long. So what can be said in instructions that it knows is,
// and what precedes the others gets a block of its own. Values stay the same to the bit. `stand_ins`: to be replaced in
// what is selected; null: none are placed.
void ease_selection(llvm::Module& module, StandIns* stand_ins);

}  // namespace weft::codegen
