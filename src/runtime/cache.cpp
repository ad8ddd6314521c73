#include "runtime/cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "base/knobs.h"
#include "base/log.h"

namespace weft::runtime {

namespace fs = std::filesystem;

namespace {

constexpr char kMagic[8] = {'W', 'E', 'F', 'T', 'O', 'B', 'J', '1'};

std::string default_directory() {
  const std::string& chosen = knob_text(Knob::CacheDir);
  if (chosen == "off") return "";
  if (!chosen.empty()) return chosen;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return std::string(xdg) + "/weft";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/weft";
  return "";
}

template <class T>
void append(std::vector<char>& to, const T& value) {
  const char* p = reinterpret_cast<const char*>(&value);
  to.insert(to.end(), p, p + sizeof value);
}

// magic, hash of the rest, count, sizes, bytes
std::vector<char> pack(const Cache::Blobs& blobs) {
  std::vector<char> body;
  append(body, static_cast<std::uint64_t>(blobs.size()));
  for (const auto& b : blobs) append(body, static_cast<std::uint64_t>(b.size()));
  for (const auto& b : blobs) body.insert(body.end(), b.begin(), b.end());
  std::vector<char> file(kMagic, kMagic + sizeof kMagic);
  append(file, static_cast<std::uint64_t>(XXH3_64bits(body.data(), body.size())));
  file.insert(file.end(), body.begin(), body.end());
  return file;
}

Result<Cache::Blobs> unpack(ByteSpan bytes) {
  ByteReader in(bytes, "cache entry");
  ByteSpan magic = WEFT_TRY(in.bytes(sizeof kMagic));
  auto hash = WEFT_TRY(in.read<std::uint64_t>());
  ByteSpan body = bytes.subspan(in.position());
  if (std::memcmp(magic.data(), kMagic, sizeof kMagic) != 0 || XXH3_64bits(body.data(), body.size()) != hash) {
    return user_error("bad-cache-entry", "a cache entry is damaged");
  }
  auto count = WEFT_TRY(in.read<std::uint64_t>());
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t k = 0; k < count; ++k) sizes.push_back(WEFT_TRY(in.read<std::uint64_t>()));
  Cache::Blobs blobs;
  for (std::uint64_t size : sizes) {
    ByteSpan blob = WEFT_TRY(in.bytes(size));
    const char* p = reinterpret_cast<const char*>(blob.data());
    blobs.emplace_back(p, p + blob.size());
  }
  return blobs;
}

// Tells one build of this code from another: the file that it was loaded from, by size and time.
std::string build_identity() {
  Dl_info where{};
  struct stat file {};
  const bool found = dladdr(reinterpret_cast<void*>(&default_directory), &where) != 0 && where.dli_fname != nullptr &&
                     stat(where.dli_fname, &file) == 0;
  if (!found && stat("/proc/self/exe", &file) != 0) return "";
  return fmt::format("{} {}.{}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

}  // namespace

CacheKey::CacheKey() {
  static const std::string identity = build_identity();
  add(identity);
  add(knobs_cache_key());
}

void CacheKey::add(std::string_view part) {
  text_ += fmt::format("{}:", part.size());
  text_ += part;
}

std::string CacheKey::hex() const {
  XXH128_hash_t h = XXH3_128bits(text_.data(), text_.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

Cache::Cache() : Cache(default_directory(), knob_integer(Knob::CacheBytes)) {}

Cache::Cache(std::string directory, std::int64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {}

std::optional<Cache::Blobs> Cache::get(const CacheKey& key) const {
  if (directory_.empty()) return std::nullopt;
  std::string path = directory_ + "/" + key.hex() + ".o";
  auto file = MappedFile::open(path);
  if (!file.ok()) return std::nullopt;
  auto blobs = unpack((*file)->bytes());
  if (!blobs.ok()) {
    log("cache", fmt::format("damaged entry {}", path));
    return std::nullopt;
  }
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // recently used ones stay longest
  return std::move(*blobs);
}

void Cache::put(const CacheKey& key, const Blobs& blobs) const {
  if (directory_.empty()) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  std::vector<char> file = pack(blobs);
  std::string final_path = directory_ + "/" + key.hex() + ".o";
  std::string temporary = directory_ + "/tmp-XXXXXX";
  int fd = mkstemp(temporary.data());
  if (fd < 0) {
    log("cache", fmt::format("cannot write to {}", directory_));
    return;
  }
  bool written = true;
  for (std::size_t at = 0; at < file.size() && written;) {
    ssize_t n = write(fd, file.data() + at, file.size() - at);
    written = n > 0;
    if (written) at += static_cast<std::size_t>(n);
  }
  written = close(fd) == 0 && written;
  if (!written || std::rename(temporary.c_str(), final_path.c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  evict();
}

void Cache::evict() const {
  struct Entry {
    fs::path path;
    std::int64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Entry> entries;
  std::int64_t total = 0;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(directory_, error)) {
    std::error_code e;
    Entry entry{file.path(), static_cast<std::int64_t>(file.file_size(e)), file.last_write_time(e)};
    if (e) continue;
    total += entry.bytes;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_) return;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

}  // namespace weft::runtime
