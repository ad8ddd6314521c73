// Reading bytes that nobody vouches for: a bounds-checked little-endian reader, and files as read-only memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace weft {

using ByteSpan = std::span<const std::byte>;

// Every read checks what is left; a short input is a user error of code "truncated" that says where.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes, std::string what = "input") : bytes_(bytes), what_(std::move(what)) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  bool at_end() const { return remaining() == 0; }

  template <class T>
  Result<T> read() {  // integers and floats
    static_assert(std::is_arithmetic_v<T> && std::endian::native == std::endian::little);
    const ByteSpan raw = WEFT_TRY(bytes(sizeof(T)));
    T value;
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  Result<ByteSpan> bytes(std::uint64_t count);
  Result<std::string_view> text(std::uint64_t count);
  Result<void> skip(std::uint64_t count);
  Result<void> seek(std::uint64_t position);
  Result<void> align(std::size_t to);  // skips up to the next multiple

 private:
  ByteSpan bytes_;
  std::size_t position_ = 0;
  std::string what_;
};

// A whole regular file, mapped read-only. The file must not be truncated while it is mapped.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  // Takes over the descriptor, whatever the outcome; `name` is for messages.
  static Result<std::shared_ptr<const MappedFile>> from_descriptor(int fd, const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Gives back the memory of a part of some mapped file; reading there goes to the file again. Bytes elsewhere are left.
  static void release(const void* data, std::size_t bytes);

  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  ByteSpan bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  explicit MappedFile(ByteSpan bytes);
  ByteSpan bytes_;
};

// Writes a temporary file beside `path` and renames it, so that readers see the old content or the new, never a part.
Result<void> write_file(const std::string& path, ByteSpan content);
Result<void> write_file(const std::string& path, std::string_view content);

}  // namespace weft
