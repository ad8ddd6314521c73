// Relocatable ELF objects into the process: what a linker and LLVM's JIT do, for the few things that objects of kernels
// hold. Needs no LLVM. x86-64 only so far; others are refused, and their callers have LLVM's linker.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "runtime/kernel_abi.h"

namespace weft::runtime {

// Machine code of several objects in memory of its own, until destroyed. The objects' bytes are not needed afterwards.
class LoadedObjects {
 public:
  // Every field that is read is checked: a bad object is an error, never a crash.
  static Result<std::shared_ptr<const LoadedObjects>> load(std::span<const ByteSpan> objects);
  ~LoadedObjects();
  LoadedObjects(const LoadedObjects&) = delete;
  LoadedObjects& operator=(const LoadedObjects&) = delete;

  KernelFn find(std::string_view symbol) const;  // null: there is none

 private:
  LoadedObjects() = default;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::string, std::size_t, std::less<>> symbols_;  // offsets
};

}  // namespace weft::runtime
