// Objects into the process, with ORC. The only file that sees LLJIT's headers, which take seconds to compile.
#include <atomic>
#include <chrono>
#include <cstring>

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include "codegen/llvm/target.h"

namespace weft::codegen {

namespace {

namespace orc = llvm::orc;

Error load_error(const std::string& what, llvm::Error error) {
  return internal_error("cannot load machine code: " + what + ": " + llvm::toString(std::move(error)));
}

// One linker for the process. Never destroyed: code may be in use when static destructors run.
Result<orc::LLJIT*> linker() {
  static const Result<orc::LLJIT*> instance = []() -> Result<orc::LLJIT*> {
    initialize_llvm();
    auto made = orc::LLJITBuilder()
                    .setLinkProcessSymbolsByDefault(false)
                    .setPlatformSetUp(orc::setUpInactivePlatform)
                    .create();
    if (!made) return load_error("set-up", made.takeError());
    return made->release();
  }();
  return instance;
}

llvm::Error define_library(orc::LLJIT& jit, orc::JITDylib& library) {
  orc::SymbolMap symbols;
  auto add = [&](const char* name, auto* function) {
    symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
  };
  add("memcpy", static_cast<void* (*)(void*, const void*, std::size_t)>(std::memcpy));
  add("memset", static_cast<void* (*)(void*, int, std::size_t)>(std::memset));
  add("memmove", static_cast<void* (*)(void*, const void*, std::size_t)>(std::memmove));
  return library.define(orc::absoluteSymbols(std::move(symbols)));
}

}  // namespace

struct LoadedCode::Impl {
  orc::LLJIT* jit = nullptr;
  orc::JITDylib* library = nullptr;
  ~Impl() {
    if (library) llvm::consumeError(jit->getExecutionSession().removeJITDylib(*library));
  }
};

Result<LoadedCode> LoadedCode::load(std::span<const Object> objects, Timing* timing) {
  const auto start = std::chrono::steady_clock::now();
  static std::atomic<std::uint64_t> count = 0;
  LoadedCode code;
  code.impl_ = std::make_shared<Impl>();
  code.impl_->jit = WEFT_TRY(linker());
  orc::LLJIT& jit = *code.impl_->jit;
  auto library = jit.createJITDylib("weft" + std::to_string(count++));
  if (!library) return load_error("library", library.takeError());
  code.impl_->library = &*library;
  if (auto error = define_library(jit, *library)) return load_error("memory functions", std::move(error));
  for (const Object& object : objects) {
    auto copy = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "weft");
    if (auto error = jit.addObjectFile(*library, std::move(copy))) return load_error("object", std::move(error));
  }
  if (timing) {
    timing->link_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  return code;
}

Result<runtime::KernelFn> LoadedCode::lookup(std::string_view symbol) const {
  auto address = impl_->jit->lookup(*impl_->library, llvm::StringRef(symbol.data(), symbol.size()));
  if (!address) return load_error(std::string(symbol), address.takeError());
  return address->toPtr<runtime::KernelFn>();
}

}  // namespace weft::codegen
