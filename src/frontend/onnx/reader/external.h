// External data of tensors: byte ranges of files beside the model, mapped. A location is trusted with nothing: it must
// name a regular file below the model's folder without passing a symbolic link, and not be a hard link to elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace weft::onnx {

struct ExternalBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

// What a tensor's external_data says; absent keys are nullopt.
struct ExternalRange {
  std::string location;
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
};
Result<ExternalRange> parse_external_range(const std::vector<std::pair<std::string, std::string>>& entries);

// "a/./b" -> {a, b}; refuses absolute paths, ones that leave the folder, backslashes, NUL bytes and the folder itself.
Result<std::vector<std::string>> split_location(const std::string& location);

// Opens the file below `folder`; the caller closes it. Without openat2 each component is opened with O_NOFOLLOW.
Result<int> open_beneath(int folder, const std::vector<std::string>& components, bool use_openat2 = true);

class ExternalData {
 public:
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  bool is_used() const { return !files_.empty(); }
  // The `size` bytes that the entries name.
  Result<ExternalBytes> find(const std::vector<std::pair<std::string, std::string>>& entries, std::size_t size);

 private:
  Result<std::shared_ptr<const MappedFile>> file(const std::string& location);
  std::string folder_;
  int folder_fd_ = -1;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by normalised location
};

}  // namespace weft::onnx
