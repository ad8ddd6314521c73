#include "runtime/cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "base/knobs.h"
#include "base/log.h"
#include "runtime/file_hash.h"

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

// Of entries with a bulk: the head follows this, the bulk starts at a page.
struct MappedHeader {
  char magic[8] = {'W', 'E', 'F', 'T', 'M', 'A', 'P', '1'};
  std::uint64_t head_bytes = 0, head_hash = 0;
  std::uint64_t bulk_at = 0, bulk_bytes = 0;
  char bulk_hash[64] = {};
  std::uint64_t own_hash = 0;  // of what stands before
};
constexpr std::size_t kPage = 4096;

std::uint64_t own_hash(const MappedHeader& header) { return XXH3_64bits(&header, offsetof(MappedHeader, own_hash)); }

// A file that appears under its name when it is whole, or not at all.
class NewFile {
 public:
  explicit NewFile(const std::string& directory) : path_(directory + "/tmp-XXXXXX"), file_(mkstemp(path_.data())) {
    if (file_.get() < 0) log("cache", fmt::format("cannot write to {}", directory));
  }
  ~NewFile() {
    if (file_.get() >= 0 && !kept_) unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  bool write(const void* data, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes && good();) {
      const ssize_t n = ::write(file_.get(), static_cast<const char*>(data) + at, bytes - at);
      if (n < 0 && errno == EINTR) continue;
      good_ = n > 0;
      if (good_) at += static_cast<std::size_t>(n);
    }
    return good();
  }
  bool skip_to(std::uint64_t at) {
    good_ = good() && lseek(file_.get(), static_cast<off_t>(at), SEEK_SET) >= 0;
    return good_;
  }
  bool resize(std::uint64_t bytes) {
    good_ = good() && ftruncate(file_.get(), static_cast<off_t>(bytes)) == 0;
    return good_;
  }
  bool keep_as(const std::string& path) {
    kept_ = good() && std::rename(path_.c_str(), path.c_str()) == 0;
    return kept_;
  }
  bool good() const { return good_ && file_.get() >= 0; }
  int descriptor() const { return file_.get(); }

 private:
  std::string path_;
  Descriptor file_;
  bool good_ = true, kept_ = false;
};

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

CacheKey::CacheKey(Of of) {
  if (of == Of::Machine) return;
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

std::string Cache::path(const CacheKey& key, const char* kind) const { return directory_ + "/" + key.hex() + kind; }

namespace {

void touch(const std::string& path) {  // recently used ones stay longest
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
}

}  // namespace

std::optional<Cache::Blobs> Cache::get(const CacheKey& key) const {
  if (directory_.empty()) return std::nullopt;
  const std::string path = this->path(key, ".o");
  auto file = MappedFile::open(path);
  if (!file.ok()) return std::nullopt;
  auto blobs = unpack((*file)->bytes());
  if (!blobs.ok()) {
    log("cache", fmt::format("damaged entry {}", path));
    return std::nullopt;
  }
  touch(path);
  return std::move(*blobs);
}

void Cache::put(const CacheKey& key, const Blobs& blobs) const {
  if (directory_.empty()) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  const std::vector<char> content = pack(blobs);
  NewFile file(directory_);
  file.write(content.data(), content.size());
  if (file.keep_as(path(key, ".o"))) evict();
}

std::optional<Cache::Mapped> Cache::map(const CacheKey& key) const {
  if (directory_.empty()) return std::nullopt;
  const std::string path = this->path(key, ".map");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  const Descriptor again(dup(descriptor));
  const auto file = MappedFile::from_descriptor(descriptor, path);
  const auto damaged = [&]() -> std::optional<Mapped> {
    log("cache", fmt::format("damaged entry {}", path));
    return std::nullopt;
  };
  if (!file.ok()) return std::nullopt;
  const ByteSpan bytes = (*file)->bytes();
  MappedHeader header;
  if (bytes.size() < sizeof header) return damaged();
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  const bool right = std::memcmp(header.magic, MappedHeader().magic, sizeof header.magic) == 0 &&
                     header.own_hash == own_hash(header) && header.head_bytes <= bytes.size() - sizeof header &&
                     header.bulk_at <= bytes.size() && header.bulk_bytes == bytes.size() - header.bulk_at;
  if (!right) return damaged();
  const ByteSpan head = bytes.subspan(sizeof header, header.head_bytes);
  if (XXH3_64bits(head.data(), head.size()) != header.head_hash) return damaged();
  const auto found = hash_file(again.get(), header.bulk_at, header.bulk_bytes);
  if (!found || *found != header.bulk_hash) return damaged();
  touch(path);
  return Mapped{head, bytes.subspan(header.bulk_at), *file};
}

void Cache::put(const CacheKey& key, ByteSpan head, const std::vector<ByteSpan>& bulk, std::size_t alignment) const {
  const auto padded = [](std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; };
  MappedHeader header;
  header.head_bytes = head.size();
  header.head_hash = XXH3_64bits(head.data(), head.size());
  header.bulk_at = padded(sizeof header + head.size(), kPage);
  for (ByteSpan part : bulk) header.bulk_bytes += padded(part.size(), alignment);
  const std::uint64_t total = header.bulk_at + header.bulk_bytes;
  if (directory_.empty() || total > static_cast<std::uint64_t>(max_bytes_)) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  NewFile file(directory_);
  file.resize(total);
  std::uint64_t at = header.bulk_at;
  for (ByteSpan part : bulk) {
    file.skip_to(at);
    file.write(part.data(), part.size());
    at += padded(part.size(), alignment);
  }
  const auto hash = file.good() ? hash_file(file.descriptor(), header.bulk_at, header.bulk_bytes) : std::nullopt;
  if (!hash || hash->size() >= sizeof header.bulk_hash) return;
  std::copy(hash->begin(), hash->end(), header.bulk_hash);
  header.own_hash = own_hash(header);
  file.skip_to(0);
  file.write(&header, sizeof header);
  file.write(head.data(), head.size());
  if (file.keep_as(path(key, ".map"))) evict();
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
