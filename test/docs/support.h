// What the tests that hold documents to the code share: files of the repository by their path from its root.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace weft::docs {

namespace fs = std::filesystem;

inline const fs::path kRoot = WEFT_SOURCE_DIR;

inline std::string read(const fs::path& file) {
  std::ifstream stream(kRoot / file, std::ios::binary);
  EXPECT_TRUE(stream.good()) << file << " cannot be read";
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Regular files under a folder, by their path from the root, in order. Links are not followed.
inline std::vector<std::string> files_under(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    if (entry.is_regular_file() && !entry.is_symlink()) found.push_back(entry.path().lexically_relative(kRoot).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline bool is_source(const std::string& file) {
  const std::string end = fs::path(file).extension().string();
  return end == ".h" || end == ".cpp" || end == ".def";
}

// The text between two backquotes, everywhere in a document.
inline std::set<std::string> in_backquotes(const std::string& text) {
  std::set<std::string> words;
  for (std::size_t at = 0; (at = text.find('`', at)) != std::string::npos;) {
    const std::size_t end = text.find('`', at + 1);
    if (end == std::string::npos) break;
    words.insert(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return words;
}

}  // namespace weft::docs
