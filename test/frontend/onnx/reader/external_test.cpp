#include "frontend/onnx/reader/external.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "frontend/onnx/reader/build_model.h"
#include "frontend/onnx/reader/reader.h"

namespace weft::onnx {
namespace {

using namespace test;
using testing::HasSubstr;
namespace fs = std::filesystem;

class External : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "weft-external-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    folder_ = root_ / "model";
    fs::create_directories(folder_ / "sub");
    write(folder_ / "w.bin", raw<float>({0, 1, 2, 3, 4, 5}));
    write(folder_ / "sub" / "w.bin", raw<float>({7, 8}));
    write(root_ / "secret.bin", raw<float>({9, 9, 9, 9}));
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  Result<Model> load(const std::vector<std::pair<std::string, std::string>>& entries, std::vector<std::int64_t> dims = {2}) {
    Message t = tensor("wtab", 1, dims).number(14, 1);
    for (const auto& [key, value] : entries) t.message(13, entry(key, value));
    write(folder_ / "model.onnx", model(graph({}, {}, {"wtab"}, {t})).data());
    return read_model_file((folder_ / "model.onnx").string());
  }
  std::string refusal(const std::vector<std::pair<std::string, std::string>>& entries, std::vector<std::int64_t> dims = {2}) {
    auto got = load(entries, dims);
    return got ? "accepted" : got.error().what();
  }

  fs::path root_, folder_;
};

TEST_F(External, Loads) {
  auto got = load({{"location", "w.bin"}, {"offset", "4"}, {"length", "8"}, {"checksum", "x"}, {"basepath", "/etc"}});
  ASSERT_TRUE(got) << got.error().what();
  EXPECT_EQ(got->graph->initializers[0].tensor.f64(1), 2);
  for (const char* location : {"./w.bin", "sub/../w.bin", ".//w.bin"}) {
    EXPECT_TRUE(load({{"location", location}})) << location;
  }
  auto nested = load({{"location", "sub/w.bin"}});
  ASSERT_TRUE(nested) << nested.error().what();
  EXPECT_EQ(nested->graph->initializers[0].tensor.f64(0), 7);
  auto unaligned = load({{"location", "w.bin"}, {"offset", "3"}});
  ASSERT_TRUE(unaligned) << unaligned.error().what();
  auto none = load({{"location", "w.bin"}, {"offset", "24"}}, {0});
  EXPECT_TRUE(none) << none.error().what();
}

TEST_F(External, RefusesOtherPlaces) {
  const std::string absolute = (root_ / "secret.bin").string();
  for (const std::string& location : {absolute, std::string("../secret.bin"), std::string("sub/../../secret.bin"),
                                      std::string("./../secret.bin"), std::string("..\\secret.bin"), std::string(""),
                                      std::string("."), std::string("sub"), std::string("/dev/zero"),
                                      std::string("w.bin/x"), std::string("absent"), std::string("w.bin\0x", 7)}) {
    EXPECT_THAT(refusal({{"location", location}}), HasSubstr("at 'wtab'")) << location;
  }
}

TEST_F(External, RefusesLinksAndSpecialFiles) {
  fs::create_symlink("../secret.bin", folder_ / "out.bin");
  fs::create_symlink("w.bin", folder_ / "in.bin");
  fs::create_directory_symlink("sub", folder_ / "dir");
  fs::create_hard_link(root_ / "secret.bin", folder_ / "hard.bin");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const char* location : {"out.bin", "in.bin", "dir/w.bin", "hard.bin", "pipe"}) {
    EXPECT_THAT(refusal({{"location", location}}), HasSubstr("at 'wtab'")) << location;
  }
  EXPECT_THAT(refusal({{"location", "hard.bin"}}), HasSubstr("hard links"));
}

TEST_F(External, RefusesAlsoWithoutOpenat2) {
  fs::create_symlink("w.bin", folder_ / "in.bin");
  fs::create_directory_symlink("sub", folder_ / "dir");
  const int folder = ::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(folder, 0);
  for (const bool use_openat2 : {true, false}) {
    EXPECT_FALSE(open_beneath(folder, {"in.bin"}, use_openat2));
    EXPECT_FALSE(open_beneath(folder, {"dir", "w.bin"}, use_openat2));
    EXPECT_FALSE(open_beneath(folder, {"sub"}, use_openat2));
    EXPECT_FALSE(open_beneath(folder, {"w.bin", "x"}, use_openat2));
    auto fd = open_beneath(folder, {"sub", "w.bin"}, use_openat2);
    ASSERT_TRUE(fd) << fd.error().what();
    ::close(*fd);
  }
  ::close(folder);
}

TEST_F(External, RefusesWrongRanges) {
  const auto with = [&](const char* key, const char* value) { return refusal({{"location", "w.bin"}, {key, value}}); };
  for (const char* value : {"-1", "", "x", "1x", " 1", "+1", "0x1", "9223372036854775808", "1.0"}) {
    EXPECT_THAT(with("offset", value), HasSubstr("wrong offset")) << value;
    EXPECT_THAT(with("length", value), HasSubstr("wrong length")) << value;
  }
  EXPECT_THAT(with("offset", "17"), HasSubstr("past the end"));
  EXPECT_THAT(with("offset", "9223372036854775807"), HasSubstr("past the end"));
  EXPECT_THAT(with("length", "12"), HasSubstr("does not fit its shape"));
  EXPECT_THAT(with("__class__", "x"), HasSubstr("unknown key"));
  EXPECT_THAT(with("location", "w.bin"), HasSubstr("twice"));
  EXPECT_THAT(refusal({{"offset", "0"}}), HasSubstr("no location"));
  EXPECT_THAT(refusal({{"location", "w.bin"}}, {1 << 20, 1 << 20}), HasSubstr("past the end"));
  EXPECT_THAT(refusal({{"location", "w.bin"}}, {INT64_MAX, 8}), HasSubstr("too many elements"));
}

TEST_F(External, IsRefusedWithoutFolder) {
  const Message t = tensor("wtab", 1, {2}).number(14, 1).message(13, entry("location", "w.bin"));
  const std::string bytes = model(graph({}, {}, {}, {t})).data();
  EXPECT_FALSE(read_model_bytes(bytes_of(bytes)));
  EXPECT_TRUE(read_model_bytes(bytes_of(bytes), folder_.string()));
}

}  // namespace
}  // namespace weft::onnx
