#include "graph/docs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace weft::graph {
namespace {

// UPDATE_EXPECTED=1 writes the file.
TEST(Docs, OpsMatchTheTable) {
  const std::string path = WEFT_SOURCE_DIR "/docs/ops.md";
  if (std::getenv("UPDATE_EXPECTED") != nullptr) std::ofstream(path) << op_table_markdown();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), op_table_markdown()) << "run weft_test_graph with UPDATE_EXPECTED=1";
}

}  // namespace
}  // namespace weft::graph
