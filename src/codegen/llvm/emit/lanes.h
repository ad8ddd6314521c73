// Lanes of vectors that were put together lane by lane, which wide sums of matrix units are.
#pragma once

#include <cstdint>

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace weft::codegen {

// What was put there, if that can be seen; else an instruction that takes it out. LLVM would look through the chain again for
// each lane, in time that grows with the square of their number in every pass.
llvm::Value* lane_of(llvm::IRBuilderBase& b, llvm::Value* vector, std::uint64_t lane);

}  // namespace weft::codegen
