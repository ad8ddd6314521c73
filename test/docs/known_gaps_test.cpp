// Holds docs/known-gaps.md and README.md to the registry of operators. UPDATE_EXPECTED=1 takes out what is there by now
// and writes the counts.
#include <cstdlib>
#include <regex>

#include "docs/support.h"
#include "frontend/onnx/import/node_context.h"
#include "graph/graph.h"

namespace weft::docs {
namespace {

bool update() { return std::getenv("UPDATE_EXPECTED") != nullptr; }
void write(const char* file, const std::string& text) { std::ofstream(kRoot / file) << text; }

TEST(KnownGaps, WhatIsMissingIsMissing) {
  const std::string text = read("docs/known-gaps.md");
  std::istringstream lines(text);
  std::string made;
  int missing = 0;
  for (std::string line; std::getline(lines, line); made += line + "\n") {
    if (!line.starts_with("| ai.onnx")) continue;
    const std::string domain = line.substr(2, line.find_first_of(", ", 2) - 2);
    for (const std::string& op : in_backquotes(line)) {
      const bool known = onnx::knows_op(domain == "ai.onnx" ? "" : domain, op);
      if (known && update()) line.replace(line.find("`" + op + "`"), op.size() + 2 + (line.find("` |") != std::string::npos), "");
      EXPECT_TRUE(!known || update()) << op << " is there: run weft_test_docs with UPDATE_EXPECTED=1";
      missing += !known;
    }
  }
  EXPECT_GT(missing, 0);
  if (update()) write("docs/known-gaps.md", made);
}

TEST(KnownGaps, TheReadmeCounts) {
  std::set<std::string> operators;
  for (const onnx::OpTable& table : onnx::op_tables()) {
    for (std::size_t k = 0; k < table.count; ++k) operators.insert(table.entries[k].op);
  }
  const std::string count = std::to_string(operators.size()) + " ONNX operators, on " + std::to_string(graph::op_count()) + " prims";
  const std::string text = read("README.md");
  if (update()) {
    write("README.md", std::regex_replace(text, std::regex("[0-9]+ ONNX operators, on [0-9]+ prims"), count));
  } else {
    EXPECT_TRUE(contains(text, count)) << "there are " << count << ": run weft_test_docs with UPDATE_EXPECTED=1";
  }
}

TEST(KnownGaps, TheReadmeShowsTheExample) {
  EXPECT_TRUE(contains(read("README.md"), "```cpp\n" + read("examples/first.cpp") + "```"));
}

// Links between the documents lead somewhere.
TEST(KnownGaps, LinksLeadSomewhere) {
  const std::regex link("[^\\[]\\]\\(([^):#]+)\\)");  // not the [](...) of C++
  std::vector<std::string> pages{"README.md", "CONTRIBUTING.md"};
  for (const std::string& file : files_under("docs")) pages.push_back(file);
  for (const std::string& page : pages) {
    const std::string text = read(page);
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      EXPECT_TRUE(fs::exists(kRoot / fs::path(page).parent_path() / (*it)[1].str())) << page << " leads to " << (*it)[1];
    }
  }
}

}  // namespace
}  // namespace weft::docs
