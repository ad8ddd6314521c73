// Kernels on a CPU that is not this one: compiled here, linked with a cross linker into memory that is shared with
// server.c, which an emulator runs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "codegen/llvm/codegen.h"

namespace weft::cross {

// A CPU as code sees it, and the emulator that is one.
struct Emulated {
  const char* name;
  const char* cpu;    // of docs/cpus.md
  const char* tools;  // "aarch64-linux-gnu": its linker, and the folder of the server
  const char* emulator;
};
std::span<const Emulated> emulated();

class Server {
 public:
  static Result<std::shared_ptr<Server>> start(const Emulated& what);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Machine& machine() const { return machine_; }
  // Where kernels are: by symbol, in their order. Code stays until the end. "emulator-fault": code that an emulator with a
  // known fault (old-qemu.md) dies of.
  Result<std::vector<std::int64_t>> load(const codegen::Object& object, std::span<const std::string> symbols);

  Result<std::int64_t> allocate(std::int64_t bytes);  // an offset, of a multiple of 64
  void free(std::int64_t offset);
  std::byte* at(std::int64_t offset) const { return memory_ + offset; }

  // The status word that the kernel leaves.
  Result<std::int64_t> run(std::int64_t kernel, std::span<const std::int64_t> buffers, std::span<const std::int64_t> sizes,
                           std::int64_t begin, std::int64_t end, std::int64_t scratch);

 private:
  Server() = default;
  Result<void> spawn(const Emulated& what);
  Result<std::vector<char>> link(const codegen::Object& object, std::span<const std::string> symbols, std::int64_t at) const;

  std::mutex mutex_;
  std::string tools_, folder_;
  Machine machine_;
  int memory_file_ = -1, socket_ = -1, process_ = -1;
  std::byte* memory_ = nullptr;
  std::map<std::int64_t, std::int64_t> used_;  // bytes by offset
  std::int64_t code_ = 0;                      // lowest byte of code: it grows downwards
};

}  // namespace weft::cross
