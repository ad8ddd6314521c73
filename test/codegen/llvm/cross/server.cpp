#include "codegen/llvm/cross/server.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "codegen/llvm/cross/protocol.h"

extern char** environ;

namespace weft::cross {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kAlign = 64;

std::int64_t rounded(std::int64_t bytes) { return (std::max<std::int64_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign; }

// All kernels' addresses first, then what they consist of.
std::string linker_script(std::span<const std::string> symbols, std::int64_t at) {
  std::ostringstream script;
  script << "SECTIONS {\n  . = " << WEFT_CROSS_BASE + at << ";\n  .all : {\n";
  for (const std::string& symbol : symbols) script << "    QUAD(\"" << symbol << "\")\n";
  script << "    *(.text .text.* .rodata .rodata.* .srodata .srodata.* .data.rel.ro .data.rel.ro.* .got .got.plt)\n"
         << "  }\n  /DISCARD/ : { *(*) }\n}\n";
  return script.str();
}

// Whether code holds a vf[w|n]cvt.rtz.x[u].f that old emulators die of (old-qemu.md).
bool has_fatal_conversion(std::span<const char> code) {
  std::uint32_t before = 0;  // the four bytes before
  for (std::size_t at = 0; at + 4 <= code.size(); at += 2) {
    std::uint32_t word = 0;
    std::memcpy(&word, code.data() + at, 4);
    if (at >= 4) std::memcpy(&before, code.data() + at - 4, 4);
    if ((word & 0xFC00707F) != 0x48001057) continue;  // VFUNARY0
    const std::uint32_t kind = word >> 15 & 31;
    const bool other_width = kind == 14 || kind == 15 || kind == 22 || kind == 23;
    const bool after_vsetvli = (before & 0x707F) == 0x7057;
    if (other_width || ((kind == 6 || kind == 7) && after_vsetvli)) return true;
  }
  return false;
}

bool old_qemu() { return std::getenv("WEFT_CROSS_OLD_QEMU") != nullptr; }

bool receive(int socket, void* to, std::size_t bytes) {
  return recv(socket, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

bool deliver(int socket, const void* from, std::size_t bytes) {
  return bytes == 0 || send(socket, from, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

}  // namespace

std::span<const Emulated> emulated() {
  static const Emulated all[] = {
      {"cortex-a76", "cortex-a76", "aarch64-linux-gnu", "qemu-aarch64 -cpu cortex-a76"},
      {"neoverse-v1", "neoverse-v1", "aarch64-linux-gnu", "qemu-aarch64 -cpu max,sve256=on,sve-default-vector-length=32"},
      {"rv64gcv", "rv64gcv", "riscv64-linux-gnu", "qemu-riscv64 -cpu rv64,v=true,vlen=128,vext_spec=v1.0"},
      {"rv64gcv-vlen512", "rv64gcv", "riscv64-linux-gnu", "qemu-riscv64 -cpu rv64,v=true,vlen=512,vext_spec=v1.0"},
      {"rv64gcv_zvl256b", "rv64gcv_zvl256b", "riscv64-linux-gnu", "qemu-riscv64 -cpu rv64,v=true,vlen=256,vext_spec=v1.0"},
  };
  return all;
}

Result<std::shared_ptr<Server>> Server::start(const Emulated& what) {
  const std::shared_ptr<Server> server(new Server);
  server->machine_ = *cpu_named(what.cpu);
  server->tools_ = what.tools;
  server->code_ = WEFT_CROSS_BYTES;
  std::string folder = (fs::temp_directory_path() / "weft_cross_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return internal_error("no temporary folder");
  server->folder_ = folder;
  server->memory_file_ = memfd_create("weft", MFD_CLOEXEC);
  if (server->memory_file_ < 0 || ftruncate(server->memory_file_, WEFT_CROSS_BYTES) != 0) return internal_error("no shared memory");
  void* memory = mmap(nullptr, WEFT_CROSS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, server->memory_file_, 0);
  if (memory == MAP_FAILED) return internal_error("the shared memory cannot be mapped");
  server->memory_ = static_cast<std::byte*>(memory);
  WEFT_TRY(server->spawn(what));
  return server;
}

Result<void> Server::spawn(const Emulated& what) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return internal_error("no socket");
  socket_ = ends[0];
  std::istringstream stream(what.emulator);
  std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  words.push_back(std::string(WEFT_CROSS_DIR) + "/" + what.tools + "-server");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, memory_file_, 3);
  const int failed = posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) return user_error("no-emulator", "the emulator does not start").at(words[0]);
  return {};
}

Server::~Server() {
  if (socket_ >= 0) close(socket_);  // ends the server
  if (process_ > 0) waitpid(process_, nullptr, 0);
  if (memory_ != nullptr) munmap(memory_, WEFT_CROSS_BYTES);
  if (memory_file_ >= 0) close(memory_file_);
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Result<std::vector<char>> Server::link(const codegen::Object& object, std::span<const std::string> symbols,
                                       std::int64_t at) const {
  std::ofstream(folder_ + "/kernels.o", std::ios::binary).write(object.data(), static_cast<std::streamsize>(object.size()));
  std::ofstream(folder_ + "/script") << linker_script(symbols, at);
  const std::string line = "cd '" + folder_ + "' && " + tools_ + "-ld --no-relax -T script -o linked kernels.o '" WEFT_CROSS_DIR "/" +
                           tools_ + "-memory.o' && " + tools_ + "-objcopy -O binary linked image";
  if (std::system(line.c_str()) != 0) return internal_error("the cross linker fails: " + line);
  std::ifstream image(folder_ + "/image", std::ios::binary);
  return std::vector<char>{std::istreambuf_iterator<char>(image), {}};
}

Result<std::vector<std::int64_t>> Server::load(const codegen::Object& object, std::span<const std::string> symbols) {
  std::lock_guard<std::mutex> lock(mutex_);
  // A linker's image is smaller than the object and the functions beside it.
  constexpr std::int64_t kPage = 4096;
  const auto room = (static_cast<std::int64_t>(object.size()) / kPage + 2) * kPage;
  const std::int64_t at = code_ - room;
  const std::vector<char> image = WEFT_TRY(link(object, symbols, at));
  const std::int64_t data_end = used_.empty() ? 0 : used_.rbegin()->first + used_.rbegin()->second;
  if (at < data_end || static_cast<std::int64_t>(image.size()) > room) return internal_error("no room for code");
  if (old_qemu() && has_fatal_conversion(image)) {
    return unsupported("emulator-fault", "this qemu dies of a conversion that rounds towards zero");
  }
  code_ = at;
  std::memcpy(memory_ + at, image.data(), image.size());
  std::vector<std::int64_t> kernels(symbols.size());
  std::memcpy(kernels.data(), image.data(), kernels.size() * sizeof(std::int64_t));
  for (std::int64_t& kernel : kernels) kernel -= WEFT_CROSS_BASE;
  return kernels;
}

Result<std::int64_t> Server::allocate(std::int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::int64_t wanted = rounded(bytes);
  std::int64_t offset = 0;
  for (const auto& [begin, size] : used_) {  // first fit
    if (begin - offset >= wanted) break;
    offset = begin + size;
  }
  if (offset + wanted > code_) return user_error("out-of-memory", "not enough memory shared with the emulator");
  used_[offset] = wanted;
  return offset;
}

void Server::free(std::int64_t offset) {
  std::lock_guard<std::mutex> lock(mutex_);
  used_.erase(offset);
}

Result<std::int64_t> Server::run(std::int64_t kernel, std::span<const std::int64_t> buffers, std::span<const std::int64_t> sizes,
                                 std::int64_t begin, std::int64_t end, std::int64_t scratch) {
  std::lock_guard<std::mutex> lock(mutex_);
  const WeftRequest request{kernel, begin, end, scratch, static_cast<std::int64_t>(buffers.size()), static_cast<std::int64_t>(sizes.size())};
  std::int64_t status = 0;
  if (buffers.size() > WEFT_CROSS_MOST || sizes.size() > WEFT_CROSS_MOST) return internal_error("too many arguments");
  const bool done = deliver(socket_, &request, sizeof request) && deliver(socket_, buffers.data(), buffers.size_bytes()) &&
                    deliver(socket_, sizes.data(), sizes.size_bytes()) && receive(socket_, &status, sizeof status);
  if (!done) return internal_error("the emulated process ended");
  return status;
}

}  // namespace weft::cross
