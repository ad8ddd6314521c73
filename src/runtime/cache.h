// The compile cache on disk: content-addressed, written atomically, bounded in bytes (the oldest entries go first). A bad
// or unreadable entry is a miss, never an error. In WEFT_CACHE_DIR, or $XDG_CACHE_HOME/weft, or ~/.cache/weft.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

// Everything that shapes the cached bytes goes in, in order.
class CacheKey {
 public:
  CacheKey();
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
  const std::string& directory() const { return directory_; }  // empty: there is no place for one

 private:
  void evict() const;
  std::string directory_;
  std::int64_t max_bytes_;
};

}  // namespace weft::runtime
