// Holds the stages to their order: the list of weft_library() lines in CMakeLists.txt is the DAG, and a source includes
// only its own stage and those below it.
#include <map>

#include "docs/support.h"

namespace weft::docs {
namespace {

// A stage by its folder under src/, with all the folders below it.
using Layers = std::map<std::string, std::set<std::string>>;

std::string folder_of(std::string library) {
  for (const char* area : {"codegen_", "frontend_"}) {
    if (library.starts_with(area)) library[std::string(area).size() - 1] = '/';
  }
  return library;
}

// "weft_library(NAME [DIR folder] [EXCLUDE file...] DEPS name...)": each stands after what it names.
Layers layers() {
  Layers all;
  std::istringstream lines(read("CMakeLists.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("weft_library(")) continue;
    std::istringstream words(line.substr(13, line.find(')') - 13));
    std::string stage, word, part;
    words >> stage;
    std::set<std::string> below;
    while (words >> word) {
      if (word == "DIR" || word == "EXCLUDE" || word == "DEPS") {
        part = word;
      } else if (part == "DIR") {
        stage = word;
      } else if (part == "DEPS" && !contains(word, "::") && !word.starts_with("weft_") && !word.starts_with("$")) {
        below.insert(folder_of(word));
      }
    }
    all[stage] = below;
  }
  for (std::size_t round = 0; round < all.size(); ++round) {  // what is below those below
    for (auto& [stage, below] : all) {
      for (const std::string& next : std::set<std::string>(below)) below.insert(all[next].begin(), all[next].end());
    }
  }
  return all;
}

// The stage that a path under src/ belongs to: the longest one that begins it.
std::string stage_of(const Layers& all, const std::string& path) {
  std::string best;
  for (const auto& [stage, below] : all) {
    if (path.starts_with(stage + "/") && stage.size() > best.size()) best = stage;
  }
  return best;
}

std::vector<std::string> includes_of(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#include ")) continue;
    const std::size_t begin = line.find_first_of("\"<"), end = line.find_last_of("\">");
    if (begin != std::string::npos && end > begin) found.push_back(line.substr(begin + 1, end - begin - 1));
  }
  return found;
}

TEST(Layering, ThereAreNoCircles) {
  for (const auto& [stage, below] : layers()) EXPECT_FALSE(below.count(stage)) << stage << " depends on itself";
}

TEST(Layering, EveryFolderIsAStage) {
  const Layers all = layers();
  for (const std::string& file : files_under("src")) {
    EXPECT_NE(stage_of(all, file.substr(4)), "") << file << " is of no library in CMakeLists.txt";
  }
}

TEST(Layering, StagesIncludeOnlyWhatIsBelow) {
  const Layers all = layers();
  for (const std::string& file : files_under("src")) {
    if (!is_source(file)) continue;
    const std::string stage = stage_of(all, file.substr(4));
    for (const std::string& included : includes_of(read(file))) {
      const std::string other = stage_of(all, included);
      if (other.empty() || other == stage) continue;
      EXPECT_TRUE(all.at(stage).count(other)) << file << " includes " << included << ", and " << other << " is not below " << stage;
    }
  }
}

TEST(Layering, ThePublicHeaderNeedsTheGroundFloorOnly) {
  for (const std::string& file : files_under("include")) {
    for (const std::string& included : includes_of(read(file))) {
      EXPECT_TRUE(!contains(included, "/") || included.starts_with("base/") || included.starts_with("weft/"))
          << file << " includes " << included;
    }
  }
}

TEST(Layering, LlvmStaysBehindItsEmitter) {
  for (const std::string& file : files_under("src")) {
    if (!is_source(file) || file.starts_with("src/codegen/llvm/")) continue;
    for (const std::string& included : includes_of(read(file))) {
      EXPECT_FALSE(included.starts_with("llvm/") || included.starts_with("llvm-c/")) << file << " includes " << included;
    }
  }
}

TEST(Layering, HeadersStayLight) {
  for (const std::string& file : files_under("src")) {
    if (!file.ends_with(".h") || file.starts_with("src/codegen/llvm/") || file.starts_with("src/cli/")) continue;
    for (const std::string& included : includes_of(read(file))) {
      for (const char* heavy : {"fmt/", "nlohmann/", "CLI/", "protozero/", "gtest/"}) {
        EXPECT_FALSE(included.starts_with(heavy)) << file << " includes " << included;
      }
    }
  }
}

// A clone is complete by itself.
TEST(Layering, NothingRefersToOutsideOfTheTree) {
  const std::string outside = std::string("../") + "shared";
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("build") || (name.starts_with(".") && name != ".ci")) continue;
    std::vector<std::string> files{name};
    if (entry.is_directory()) files = files_under(name);
    for (const std::string& file : files) {
      EXPECT_FALSE(contains(read(file), outside)) << file << " names " << outside;
    }
  }
}

// docs/architecture.md has a row "| `src/STAGE` | ..." for each stage, in the order of CMakeLists.txt.
TEST(Layering, TheFolderTableIsComplete) {
  const std::string text = read("docs/architecture.md");
  const Layers all = layers();
  for (const auto& [stage, below] : all) {
    if (!fs::exists(kRoot / "src" / stage)) continue;
    EXPECT_TRUE(contains(text, "\n| `src/" + stage + "` |")) << "docs/architecture.md has no row for src/" << stage;
  }
  for (const std::string& word : in_backquotes(text)) {
    const bool path = word.starts_with("src/") || word.starts_with("test/") || word.starts_with("docs/") || word.starts_with("include/");
    if (!path || contains(word, "*")) continue;
    EXPECT_TRUE(fs::exists(kRoot / word)) << "docs/architecture.md names " << word;
  }
}

}  // namespace
}  // namespace weft::docs
