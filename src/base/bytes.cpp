#include "base/bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>

#include "base/descriptor.h"

namespace weft {
namespace {

Error file_error(const std::string& path, const char* what, int error) {
  return user_error("file", fmt::format("{}: {}", what, std::strerror(error))).at(path);
}

Result<void> write_all(int fd, ByteSpan content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error(path, "cannot write", errno);
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<ByteSpan> ByteReader::bytes(std::uint64_t count) {
  if (count > remaining()) {
    return user_error("truncated", fmt::format("{} ends too early: {} bytes are needed at offset {}, {} are left", what_,
                                               count, position_, remaining()));
  }
  const ByteSpan part = bytes_.subspan(position_, static_cast<std::size_t>(count));
  position_ += static_cast<std::size_t>(count);
  return part;
}

Result<std::string_view> ByteReader::text(std::uint64_t count) {
  const ByteSpan part = WEFT_TRY(bytes(count));
  return std::string_view(reinterpret_cast<const char*>(part.data()), part.size());
}

Result<void> ByteReader::skip(std::uint64_t count) {
  WEFT_TRY(bytes(count));
  return {};
}

Result<void> ByteReader::seek(std::uint64_t position) {
  if (position > bytes_.size()) {
    return user_error("truncated", fmt::format("{} has {} bytes, offset {} is outside", what_, bytes_.size(), position));
  }
  position_ = static_cast<std::size_t>(position);
  return {};
}

Result<void> ByteReader::align(std::size_t to) {
  const std::size_t over = position_ % to;
  return skip(over == 0 ? 0 : to - over);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return file_error(path, "cannot open", errno);
  return from_descriptor(fd, path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::from_descriptor(int fd, const std::string& name) {
  const Descriptor file(fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0) return file_error(name, "cannot read", errno);
  if (!S_ISREG(status.st_mode)) return user_error("file", "not a regular file").at(name);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return file_error(name, "cannot map", errno);
  return std::shared_ptr<const MappedFile>(new MappedFile({static_cast<const std::byte*>(memory), size}));
}

namespace {

// Where files are mapped: address to size. Never destroyed: files may be unmapped when the process ends.
struct Mappings {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> sizes;
};

Mappings& mappings() {
  static auto* all = new Mappings;
  return *all;
}

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

MappedFile::MappedFile(ByteSpan bytes) : bytes_(bytes) {
  if (bytes.empty()) return;
  std::lock_guard<std::mutex> lock(mappings().mutex);
  mappings().sizes[address(bytes.data())] = bytes.size();
}

void MappedFile::release(const void* data, std::size_t bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = (address(data) + page - 1) / page * page, end = (address(data) + bytes) / page * page;
  if (begin >= end) return;
  std::lock_guard<std::mutex> lock(mappings().mutex);
  auto it = mappings().sizes.upper_bound(address(data));
  if (it == mappings().sizes.begin()) return;
  --it;
  if (address(data) + bytes > it->first + it->second) return;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    std::lock_guard<std::mutex> lock(mappings().mutex);
    mappings().sizes.erase(address(bytes_.data()));
  }
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<void> write_file(const std::string& path, ByteSpan content) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = fmt::format("{}.tmp{}.{}", path, ::getpid(), counter++);
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file.get() < 0) return file_error(path, "cannot create", errno);
    const Result<void> written = write_all(file.get(), content, path);
    if (!written.ok()) {
      ::unlink(temporary.c_str());
      return written;
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(temporary.c_str());
  return file_error(path, "cannot replace", error);
}

Result<void> write_file(const std::string& path, std::string_view content) {
  return write_file(path, std::as_bytes(std::span(content.data(), content.size())));
}

}  // namespace weft
