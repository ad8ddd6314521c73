#include "runtime/file_hash.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "runtime/pool.h"

namespace weft::runtime {

namespace {

constexpr std::uint64_t kPart = 1 << 20;    // bytes with a hash of their own
constexpr std::uint64_t kBuffer = 1 << 18;  // read at a time: stays in the second-level cache

struct Work {
  int fd;
  std::uint64_t offset, bytes;
  std::vector<XXH128_canonical_t> parts;
  std::atomic<bool> failed{false};
};

bool hash_part(Work& work, std::uint64_t k, char* buffer, XXH3_state_t& state) {
  XXH3_128bits_reset(&state);
  const std::uint64_t end = std::min(work.bytes, (k + 1) * kPart);
  for (std::uint64_t at = k * kPart; at < end;) {
    const ssize_t n = pread(work.fd, buffer, std::min(kBuffer, end - at), static_cast<off_t>(work.offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    XXH3_128bits_update(&state, buffer, static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
  XXH128_canonicalFromHash(&work.parts[k], XXH3_128bits_digest(&state));
  return true;
}

void hash_range(void* context, std::int64_t begin, std::int64_t end, int) {
  auto& work = *static_cast<Work*>(context);
  const std::unique_ptr<char[]> buffer(new (std::nothrow) char[kBuffer]);
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  if (!buffer || !state) work.failed = true;
  for (std::int64_t k = begin; k < end && !work.failed; ++k) {
    if (!hash_part(work, static_cast<std::uint64_t>(k), buffer.get(), *state)) work.failed = true;
  }
}

}  // namespace

std::optional<std::string> hash_file(int fd, std::uint64_t offset, std::uint64_t bytes) {
  Work work{fd, offset, bytes, {}, {}};
  work.parts.resize((bytes + kPart - 1) / kPart);
  parallel_for(static_cast<std::int64_t>(work.parts.size()), decide_threads().threads, hash_range, &work);
  if (work.failed) return std::nullopt;
  const XXH128_hash_t all = XXH3_128bits(work.parts.data(), work.parts.size() * sizeof(XXH128_canonical_t));
  return fmt::format("{:016x}{:016x}{:x}", all.high64, all.low64, bytes);
}

std::optional<std::string> hash_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return hash_file(file.get(), 0, static_cast<std::uint64_t>(status.st_size));
}

}  // namespace weft::runtime
