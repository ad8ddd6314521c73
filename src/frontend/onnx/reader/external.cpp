#include "frontend/onnx/reader/external.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/descriptor.h"
#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {
namespace {

Error refuse(std::string message) { return user_error("external-data", std::move(message)); }

// O_NONBLOCK: opening a pipe must not wait for a writer.
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

std::string join(const std::vector<std::string>& components) {
  std::string path;
  for (const std::string& c : components) path += (path.empty() ? "" : "/") + c;
  return path;
}

int open_with_openat2(int folder, const std::string& path) {
  open_how how{};
  how.flags = kReadFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
}

int open_by_component(int folder, const std::vector<std::string>& components) {
  Descriptor at(-1);
  for (std::size_t i = 0; i + 1 < components.size(); ++i) {
    const int from = at.get() >= 0 ? at.get() : folder;
    const int next = ::openat(from, components[i].c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) return -1;
    at.reset(next);
  }
  return ::openat(at.get() >= 0 ? at.get() : folder, components.back().c_str(), kReadFlags);
}

Result<std::int64_t> parse_number(const std::string& key, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end || value < 0) {
    return refuse(fmt::format("external data has a wrong {}", key))
        .expected("a whole number from 0 to 2^63 - 1")
        .found(fmt::format("'{}'", printable(text)));
  }
  return value;
}

}  // namespace

Result<ExternalRange> parse_external_range(const std::vector<std::pair<std::string, std::string>>& entries) {
  ExternalRange range;
  std::vector<std::string> seen;
  for (const auto& [key, value] : entries) {
    for (const std::string& earlier : seen) {
      if (earlier == key) return refuse(fmt::format("external data gives '{}' twice", key));
    }
    if (key == "location") {
      range.location = value;
    } else if (key == "offset") {
      range.offset = WEFT_TRY(parse_number(key, value));
    } else if (key == "length") {
      range.length = WEFT_TRY(parse_number(key, value));
    } else if (key != "checksum" && key != "basepath") {  // both are hints of the writer's: not used
      return refuse(fmt::format("external data has an unknown key '{}'", printable(key)))
          .expected("location, offset, length, checksum or basepath");
    }
    seen.push_back(key);
  }
  return range;
}

Result<std::vector<std::string>> split_location(const std::string& location) {
  const std::string shown = printable(location);
  if (location.empty()) return refuse("external data has no location");
  if (location.front() == '/') return refuse(fmt::format("external data location '{}' is absolute", shown));
  if (location.find('\\') != std::string::npos || location.find('\0') != std::string::npos) {
    return refuse(fmt::format("external data location '{}' has a backslash or a NUL in it", shown));
  }
  std::vector<std::string> components;
  for (std::size_t begin = 0; begin <= location.size();) {
    const std::size_t end = std::min(location.find('/', begin), location.size());
    const std::string part = location.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      components.push_back(part);
    } else if (components.empty()) {
      return refuse(fmt::format("external data location '{}' is outside the model's folder", shown));
    } else {
      components.pop_back();
    }
  }
  if (components.empty()) return refuse(fmt::format("external data location '{}' is not a file", shown));
  return components;
}

Result<int> open_beneath(int folder, const std::vector<std::string>& components, bool use_openat2) {
  const std::string path = join(components);
  int opened = -1;
  errno = ENOSYS;
  if (use_openat2) opened = open_with_openat2(folder, path);
  // EPERM: a sandbox that does not know the call.
  if (opened < 0 && (errno == ENOSYS || errno == EPERM)) opened = open_by_component(folder, components);
  Descriptor fd(opened);
  if (fd.get() < 0) {
    const bool link = errno == ELOOP || errno == EXDEV || errno == ENOTDIR;
    Error error = refuse(fmt::format("external data file '{}' cannot be opened: {}", printable(path),
                                     std::strerror(errno)));
    return link ? error.suggest("symbolic links are not followed: put the file itself beside the model") : error;
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return refuse(fmt::format("external data location '{}' is not a regular file", printable(path)));
  }
  if (status.st_nlink > 1) {
    return refuse(fmt::format("external data file '{}' has several hard links", printable(path)))
        .suggest("copy it, so that it cannot be a file from elsewhere");
  }
  return fd.release();
}

ExternalData::~ExternalData() {
  if (folder_fd_ >= 0) ::close(folder_fd_);
}

Result<std::shared_ptr<const MappedFile>> ExternalData::file(const std::string& location) {
  const std::vector<std::string> components = WEFT_TRY(split_location(location));
  const std::string path = join(components);
  if (const auto found = files_.find(path); found != files_.end()) return found->second;
  if (folder_fd_ < 0) folder_fd_ = ::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd_ < 0) {
    return refuse(fmt::format("the model's folder '{}' cannot be opened: {}", printable(folder_), std::strerror(errno)));
  }
  auto mapped = WEFT_TRY(MappedFile::from_descriptor(WEFT_TRY(open_beneath(folder_fd_, components)), path));
  files_.emplace(path, mapped);
  return mapped;
}

Result<ExternalBytes> ExternalData::find(const std::vector<std::pair<std::string, std::string>>& entries,
                                         std::size_t size) {
  const ExternalRange range = WEFT_TRY(parse_external_range(entries));
  const std::shared_ptr<const MappedFile> whole = WEFT_TRY(file(range.location));
  if (range.length && static_cast<std::uint64_t>(*range.length) != size) {
    return refuse("external data has a length that does not fit its shape and type")
        .expected(fmt::format("{} bytes", size))
        .found(fmt::format("{}", *range.length));
  }
  const auto offset = static_cast<std::uint64_t>(range.offset);
  if (offset > whole->size() || size > whole->size() - offset) {
    return refuse(fmt::format("external data goes past the end of '{}'", printable(range.location)))
        .expected(fmt::format("{} bytes at offset {}", size, offset))
        .found(fmt::format("a file of {} bytes", whole->size()));
  }
  return ExternalBytes{whole->text().substr(offset, size), whole};
}

}  // namespace weft::onnx
