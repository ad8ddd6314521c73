// The compile cache on disk: content-addressed, written atomically, bounded in bytes (the oldest entries go first). A bad
// or unreadable entry is a miss, never an error. In WEFT_CACHE_DIR, or $XDG_CACHE_HOME/weft, or ~/.cache/weft.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace weft::runtime {

// Everything that shapes the cached bytes goes in, in order.
class CacheKey {
 public:
  // Of what this build makes, or of facts about the machine, which outlive builds.
  enum class Of { Build, Machine };
  explicit CacheKey(Of of = Of::Build);
  void add(std::string_view part);
  std::string hex() const;  // 128 bits

 private:
  std::string text_;
};

class Cache {
 public:
  using Blobs = std::vector<std::vector<char>>;
  Cache();
  explicit Cache(std::string directory, std::int64_t max_bytes);
  std::optional<Blobs> get(const CacheKey& key) const;
  void put(const CacheKey& key, const Blobs& blobs) const;

  // Entries of a head that is read and a bulk that is mapped, so that processes share its memory: stored plans with their
  // constants. The bulk's hash is checked by reading the file, not the mapping: pages that nobody uses take no memory.
  struct Mapped {
    ByteSpan head, bulk;
    std::shared_ptr<const void> owner;  // of both
  };
  std::optional<Mapped> map(const CacheKey& key) const;
  // Parts of the bulk lie one after the other, each padded to `alignment`.
  void put(const CacheKey& key, ByteSpan head, const std::vector<ByteSpan>& bulk, std::size_t alignment) const;
  const std::string& directory() const { return directory_; }  // empty: there is no place for one

 private:
  std::string path(const CacheKey& key, const char* kind) const;
  void evict() const;
  std::string directory_;
  std::int64_t max_bytes_;
};

}  // namespace weft::runtime
