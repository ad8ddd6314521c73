// Holds docs/errors.md to the codes of errors in the sources, in both directions.
#include <map>
#include <regex>

#include "docs/support.h"

namespace weft::docs {
namespace {

// Codes by the file that makes them: the first literal of a call that makes an error, and two that are made in one place.
std::map<std::string, std::string> codes() {
  const std::regex call("\\b(?:user_error|unsupported|infer_error|error|Error)\\s*\\(\\s*"
                        "(?:in,\\s*|ErrorKind::\\w+,\\s*)?\"([a-z0-9]+(?:-[a-z0-9]+)*)\"\\s*[,)]");
  std::map<std::string, std::string> found{{"usage", "src/cli/errors.cpp"}, {"internal", "src/base/error.cpp"}};
  for (const std::string& file : files_under("src")) {
    if (!is_source(file)) continue;
    const std::string text = read(file);
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) found[(*it)[1]] = file;
  }
  return found;
}

// What stands in backquotes in the first column of the tables.
std::set<std::string> documented() {
  std::set<std::string> found;
  std::istringstream lines(read("docs/errors.md"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    for (const std::string& word : in_backquotes(line.substr(0, line.find('|', 1)))) found.insert(word);
  }
  return found;
}

TEST(Errors, EveryCodeIsDocumented) {
  const std::set<std::string> known = documented();
  for (const auto& [code, file] : codes()) EXPECT_TRUE(known.count(code)) << "docs/errors.md lacks '" << code << "' of " << file;
}

TEST(Errors, EveryDocumentedCodeIsMade) {
  const std::map<std::string, std::string> made = codes();
  EXPECT_GT(made.size(), 80u);
  for (const std::string& code : documented()) EXPECT_TRUE(made.count(code)) << "nothing in src makes '" << code << "'";
}

}  // namespace
}  // namespace weft::docs
