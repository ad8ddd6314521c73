// Hashes of large files, on all threads and without mapping them: gigabytes cost tenths of a second, and no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::runtime {

// 128 bits as text, of `bytes` bytes of an open file from `offset` on; nothing where they cannot be read.
std::optional<std::string> hash_file(int fd, std::uint64_t offset, std::uint64_t bytes);
// Of a whole regular file, its size included.
std::optional<std::string> hash_file(const std::string& path);

}  // namespace weft::runtime
