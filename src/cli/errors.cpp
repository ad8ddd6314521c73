#include "cli/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/printable.h"

namespace weft::cli {
namespace fs = std::filesystem;

namespace {

constexpr const char* kUsageCode = "usage";

Error missing_path(const std::string& path, const std::string& what) {
  fs::path folder = fs::path(path).parent_path();
  std::vector<std::string> beside;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    beside.push_back((folder / entry.path().filename()).string());
  }
  std::sort(beside.begin(), beside.end());
  return usage_error(what).at(path).suggest(did_you_mean(path, beside));
}

}  // namespace

Error usage_error(std::string message) { return user_error(kUsageCode, std::move(message)); }

int exit_code(const Error& error) {
  if (error.code() == kUsageCode) return kUsage;
  return error.kind() == ErrorKind::Internal ? kInternal : kFailure;
}

void report(const Error& error) { fmt::print(stderr, "weft: {}\n", printable(error.what())); }

Result<void> require_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return missing_path(path, "there is no such file");
  if (fs::is_directory(path, ignored)) return usage_error("this is a folder, not a file").at(path);
  return {};
}

Result<void> require_directory(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return missing_path(path, "there is no such folder");
  return {};
}

Result<void> require_one_of(const std::string& what, const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  std::string suggestion = did_you_mean(name, names);
  if (suggestion.empty()) suggestion = fmt::format("there is {}", fmt::join(names, ", "));
  return usage_error("there is no such " + what).at(name).suggest(suggestion);
}

}  // namespace weft::cli
