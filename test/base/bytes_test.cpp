#include "base/bytes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/support.h"

namespace weft {
namespace {

TEST(ByteReader, ReadsAndStopsAtTheEnd) {
  ByteReader r(span_of(std::string_view("\x01\x02\x03\x04\x05\x06\x07", 7)));
  EXPECT_EQ(r.read<std::uint16_t>().value(), 0x0201);
  EXPECT_EQ(r.read<std::uint8_t>().value(), 3);
  EXPECT_FALSE(r.read<std::uint64_t>().ok());
  EXPECT_EQ(r.position(), 3u);
  EXPECT_TRUE(r.align(4).ok());
  EXPECT_EQ(r.text(2).value(), "\x05\x06");
  EXPECT_FALSE(r.bytes(UINT64_MAX).ok());
  EXPECT_FALSE(r.align(4).ok() && r.align(8).ok() && r.skip(1).ok());
  EXPECT_FALSE(r.seek(8).ok());
  EXPECT_TRUE(r.seek(7).ok());
  EXPECT_TRUE(r.at_end());
  EXPECT_EQ(r.read<std::uint8_t>().error().code(), "truncated");
}

TEST(MappedFile, ReleasedPartsReadAsBefore) {
  const std::string path = testing::TempDir() + "weft_bytes_release";
  std::string content(100000, 'a');
  content[50000] = 'b';
  ASSERT_TRUE(write_file(path, content).ok());
  const auto file = MappedFile::open(path).value();
  EXPECT_EQ(file->text(), content);
  MappedFile::release(file->data() + 3, file->size() - 3);
  EXPECT_EQ(file->text(), content);
  const std::string elsewhere(100000, 'c');
  MappedFile::release(elsewhere.data(), elsewhere.size());
  EXPECT_EQ(elsewhere, std::string(100000, 'c'));
  std::filesystem::remove(path);
}

TEST(MappedFile, FilesAndFailures) {
  const std::string folder = testing::TempDir() + "/weft_mapped_" + std::to_string(getpid());
  const std::string path = folder + "/file";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(write_file(path, std::string_view("hello")).ok());
  ASSERT_TRUE(write_file(path, std::string_view("hello again")).ok());
  const auto file = MappedFile::open(path).value();
  EXPECT_EQ(file->text(), "hello again");
  ASSERT_TRUE(write_file(path, std::string_view()).ok());
  EXPECT_EQ(MappedFile::open(path).value()->size(), 0u);
  EXPECT_EQ(file->text(), "hello again");
  EXPECT_EQ(MappedFile::open(folder + "/none/such").error().code(), "file");
  EXPECT_EQ(MappedFile::open(folder).error().code(), "file");
  EXPECT_EQ(MappedFile::open("/dev/zero").error().code(), "file");
  EXPECT_FALSE(write_file(folder + "/none/such", std::string_view("x")).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft
