// Objects into the process: by the runtime's own loader, and with ORC where that knows the architecture or an object not.
// The only file that sees LLJIT's headers, which take seconds to compile.
#include <atomic>
#include <chrono>
#include <cstring>

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include "base/log.h"
#include "codegen/llvm/note.h"
#include "codegen/llvm/target.h"
#include "runtime/object.h"

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
  std::shared_ptr<const runtime::LoadedObjects> objects;  // null: in `library`
  orc::LLJIT* jit = nullptr;
  orc::JITDylib* library = nullptr;
  ~Impl() {
    if (library) llvm::consumeError(jit->getExecutionSession().removeJITDylib(*library));
  }
};

Result<void> LoadedCode::link(std::span<const Object> objects) {
  static std::atomic<std::uint64_t> count = 0;
  impl_->jit = WEFT_TRY(linker());
  orc::LLJIT& jit = *impl_->jit;
  auto library = jit.createJITDylib("weft" + std::to_string(count++));
  if (!library) return load_error("library", library.takeError());
  impl_->library = &*library;
  if (auto error = define_library(jit, *library)) return load_error("memory functions", std::move(error));
  for (const Object& object : objects) {
    auto copy = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "weft");
    if (auto error = jit.addObjectFile(*library, std::move(copy))) return load_error("object", std::move(error));
  }
  return {};
}

Result<LoadedCode> LoadedCode::load(std::span<const Object> objects, Timing* timing) {
  const auto start = std::chrono::steady_clock::now();
  for (const Object& object : objects) WEFT_TRY(check_runs_on(WEFT_TRY(read_note(object)), measured_machine()));
  LoadedCode code;
  code.impl_ = std::make_shared<Impl>();
  std::vector<ByteSpan> bytes;
  for (const Object& object : objects) bytes.push_back(std::as_bytes(std::span(object.data(), object.size())));
  auto loaded = runtime::LoadedObjects::load(bytes);
  if (loaded.ok()) {
    code.impl_->objects = std::move(*loaded);
  } else {
    log("cache", loaded.error().message());
    WEFT_TRY(code.link(objects));
  }
  if (timing) {
    timing->link_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  return code;
}

Result<runtime::KernelFn> LoadedCode::lookup(std::string_view symbol) const {
  if (impl_->objects) {
    const runtime::KernelFn found = impl_->objects->find(symbol);
    if (found == nullptr) return internal_error("there is no machine code of " + std::string(symbol));
    return found;
  }
  auto address = impl_->jit->lookup(*impl_->library, llvm::StringRef(symbol.data(), symbol.size()));
  if (!address) return load_error(std::string(symbol), address.takeError());
  return address->toPtr<runtime::KernelFn>();
}

}  // namespace weft::codegen
