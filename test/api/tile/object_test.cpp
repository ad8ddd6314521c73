// Kernels compiled ahead of time: a C program without Weft calls them.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "weft/tile.h"

namespace weft::tile {
namespace {

using testing::HasSubstr;

TEST(TileObject, ACProgramCallsIt) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "weft_tile_object";
  std::filesystem::create_directories(folder);
  const Kernel scale = kernel("scale", [](In<float> x, Out<float> y, Int n, Int by) {
    const Tile i = program_id() * 16 + lanes(16);
    check(by > 0, "by is positive");
    store(y, i, exp(load(x, i, i < n)) * cast<float>(by), i < n);
  });
  CompileOptions options;
  options.cpu = "x86-64-v2";
  const auto written = scale.write_object((folder / "scale").string(), options);
  ASSERT_TRUE(written.ok()) << written.error().what();
  std::ofstream(folder / "main.c") << R"(#include <stdio.h>
#include "scale.h"
int main(void) {
  float x[20], y[20];
  for (int i = 0; i < 20; ++i) x[i] = 0;
  int64_t good = scale(x, y, 20, 3, 2), bad = scale(x, y, 20, 0, 2);
  printf("%d %d %g\n", (int)good, (int)bad, y[19]);
  return good == 0 && bad == 1 && y[0] == 0 && y[19] == 0 ? 0 : 1;
}
)";
  const std::string build = "cd " + folder.string() + " && cc -Wall -Werror main.c scale.o -o main && ./main";
  EXPECT_EQ(std::system(build.c_str()), 0) << build;
}

TEST(TileObject, Refuses) {
  const auto text = [](const Kernel& k, const std::string& stem, const CompileOptions& options = {}) {
    const auto done = k.write_object(stem, options);
    return done.ok() ? std::string("written") : std::string(done.error().what());
  };
  const auto body = [](In<float> x) { load(x, 0); };
  CompileOptions device;
  device.target = "opencl";
  EXPECT_THAT(text(kernel("a b", body), "/tmp/x"), HasSubstr("error[bad-name] at 'a b'"));
  EXPECT_THAT(text(kernel("k", body), "/no-such-folder/x"), HasSubstr("error[cannot-write] at '/no-such-folder/x.o'"));
  EXPECT_THAT(text(kernel("k", body), "/tmp/x", device), HasSubstr("unsupported[object]"));
  EXPECT_THAT(text(kernel("k", [](In<float> x) { print("x", load(x, 0)); }), "/tmp/x"), HasSubstr("unsupported[print]"));
}

}  // namespace
}  // namespace weft::tile
