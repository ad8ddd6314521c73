#include "compile/dump.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/knobs.h"
#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGraph = R"(graph @t(%0 "x": f32[8], %1 "y": f32[8]) -> (f32[8]) {
    %2 = add %0, %1 : f32[8]
    %3 = sub %2, %2 : f32[8]
    %4 = add %2, %1 : f32[8]
    return %4
  })";

// Sets a knob for a scope.
struct Set {
  Knob knob;
  std::string before;
  Set(Knob k, const std::string& value) : knob(k), before(knob_text(k)) { EXPECT_TRUE(set_knob(k, value)); }
  ~Set() { set_knob(knob, before); }
};

std::string content(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Dump, ANumberedFileForEveryStage) {
  const fs::path folder = fs::path(::testing::TempDir()) / "weft_dump_test";
  fs::remove_all(folder);
  {
    Set dump(Knob::Dump, folder.string());
    ASSERT_TRUE(compile(parsed(kGraph)).ok());
  }
  std::string names;
  std::set<std::string> files;
  for (const auto& file : fs::directory_iterator(folder)) files.insert(file.path().filename().string());
  for (const std::string& file : files) names += file.substr(0, file.find('-', 3)) + " ";
  EXPECT_EQ(names, "00-graph 01-loop 02-schedule 03-tile 04-kernel 05-llvm 06-asm 08-plan ");
  EXPECT_NE(content(folder / "00-graph-t.txt").find("graph @t"), std::string::npos);
  fs::remove_all(folder);
}

TEST(Dump, AFolderThatCannotBeWrittenStopsNothing) {
  Set dump(Knob::Dump, "/proc/no/such/folder");
  EXPECT_TRUE(compile(parsed(kGraph)).ok());
}

int prims(const Options& options) {
  auto compiled = compile(parsed(kGraph), options);
  return compiled.ok() ? compiled->report.prims : -1;
}

TEST(Knobs, PassesAreSwitchedOffAndCounted) {
  EXPECT_EQ(prims(Options()), 2);
  {
    Set limit(Knob::PassLimit, "0");
    EXPECT_EQ(prims(Options()), 3);
  }
  EXPECT_EQ(prims(Options()), 2);
}

}  // namespace
}  // namespace weft::compiler::testing
