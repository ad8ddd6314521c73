#include "runtime/cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <span>
#include <thread>

namespace weft::runtime {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::temp_directory_path() / ("weft-cache-" + std::to_string(getpid()) + "-" + info->name());
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  static CacheKey key(const std::string& text) {
    CacheKey k;
    k.add(text);
    return k;
  }
  fs::path entry(const CacheKey& k) const { return directory_ / (k.hex() + ".o"); }

  fs::path directory_;
};

Cache::Blobs blobs(std::size_t bytes, char fill) { return {std::vector<char>(bytes, fill), {}, {'x', '\0', 'y'}}; }

TEST_F(CacheTest, KeepsWhatWasPut) {
  Cache cache(directory_.string(), 1 << 20);
  EXPECT_FALSE(cache.get(key("a")));
  cache.put(key("a"), blobs(1000, 'a'));
  auto found = cache.get(key("a"));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, blobs(1000, 'a'));
  EXPECT_FALSE(cache.get(key("b")));
  Cache other(directory_.string(), 1 << 20);
  EXPECT_TRUE(other.get(key("a")));
}

TEST_F(CacheTest, PartsOfAKeyDoNotRunTogether) {
  CacheKey a, b, c;
  a.add("ab");
  a.add("c");
  b.add("a");
  b.add("bc");
  c.add("abc");
  EXPECT_NE(a.hex(), b.hex());
  EXPECT_NE(a.hex(), c.hex());
  EXPECT_EQ(a.hex().size(), 32u);
}

TEST_F(CacheTest, EveryDamageIsAMiss) {
  Cache cache(directory_.string(), 1 << 20);
  cache.put(key("a"), blobs(40, 'a'));
  std::ifstream in(entry(key("a")), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(whole.size(), 40u);
  auto with = [&](const std::string& bytes) {
    std::ofstream(entry(key("a")), std::ios::binary) << bytes;
    return cache.get(key("a"));
  };
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(with(whole.substr(0, n))) << "cut to " << n;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 0x40);
    EXPECT_FALSE(with(changed)) << "byte " << n;
  }
  EXPECT_FALSE(with(whole + "more"));
  EXPECT_TRUE(with(whole));
  with("");
  cache.put(key("a"), blobs(40, 'b'));  // a bad entry is replaced
  EXPECT_EQ(*cache.get(key("a")), blobs(40, 'b'));
}

TEST_F(CacheTest, StaysWithinItsBound) {
  Cache cache(directory_.string(), 10000);
  for (int k = 0; k < 20; ++k) {
    cache.put(key(std::to_string(k)), blobs(1500, 'a'));
    fs::last_write_time(entry(key(std::to_string(k))), fs::file_time_type::clock::now() - std::chrono::seconds(100 - k));
  }
  std::uintmax_t total = 0;
  for (const auto& file : fs::directory_iterator(directory_)) total += file.file_size();
  EXPECT_LE(total, 10000u);
  EXPECT_TRUE(cache.get(key("19")));
  EXPECT_FALSE(cache.get(key("0")));
}

TEST_F(CacheTest, WhatIsUsedStaysLongest) {
  Cache cache(directory_.string(), 5000);
  auto age = [&](const char* name, int seconds) {
    fs::last_write_time(entry(key(name)), fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  };
  cache.put(key("old"), blobs(1500, 'a'));
  age("old", 100);
  cache.put(key("newer"), blobs(1500, 'a'));
  age("newer", 50);
  EXPECT_TRUE(cache.get(key("old")));
  cache.put(key("third"), blobs(1500, 'a'));
  cache.put(key("fourth"), blobs(1500, 'a'));
  EXPECT_TRUE(cache.get(key("old")));
  EXPECT_FALSE(cache.get(key("newer")));
}

TEST_F(CacheTest, WritersAtTheSameTime) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 6; ++t) {
    writers.emplace_back([&, t] {
      Cache cache(directory_.string(), 1 << 20);
      for (int k = 0; k < 30; ++k) {
        CacheKey name = key(std::to_string(k % 5));
        cache.put(name, blobs(2000, static_cast<char>('a' + k % 5)));
        auto found = cache.get(name);
        wrong += !found || *found != blobs(2000, static_cast<char>('a' + k % 5));
      }
      (void)t;
    });
  }
  for (auto& w : writers) w.join();
  EXPECT_EQ(wrong.load(), 0);
  for (const auto& file : fs::directory_iterator(directory_)) EXPECT_EQ(file.path().extension(), ".o") << file.path();
}

TEST_F(CacheTest, NoPlaceToWriteIsAMiss) {
  Cache nowhere("", 1 << 20);
  nowhere.put(key("a"), blobs(10, 'a'));
  EXPECT_FALSE(nowhere.get(key("a")));
  Cache file("/dev/null/x", 1 << 20);
  file.put(key("a"), blobs(10, 'a'));
  EXPECT_FALSE(file.get(key("a")));
}

// ---- entries that are mapped ----

ByteSpan span(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string text(ByteSpan bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class MappedEntry : public CacheTest {
 protected:
  void put(const Cache& cache) const { cache.put(key("m"), span(head_), {span(first_), span(second_)}, 64); }
  fs::path file() const { return directory_ / (key("m").hex() + ".map"); }
  const std::string head_ = "a head", first_ = std::string(100, 'f'), second_ = std::string(3 << 20, 's');
};

TEST_F(MappedEntry, KeepsWhatWasPut) {
  const Cache cache(directory_.string(), 1 << 30);
  EXPECT_FALSE(cache.map(key("m")));
  put(cache);
  const auto found = cache.map(key("m"));
  ASSERT_TRUE(found);
  EXPECT_EQ(text(found->head), head_);
  ASSERT_EQ(found->bulk.size(), 128 + second_.size());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->bulk.data()) % 4096, 0u);
  EXPECT_EQ(text(found->bulk.subspan(0, 100)), first_);
  EXPECT_EQ(text(found->bulk.subspan(128)), second_);
  EXPECT_FALSE(cache.get(key("m")));
}

TEST_F(MappedEntry, StaysMappedWhenItsFileGoes) {
  const Cache cache(directory_.string(), 1 << 30);
  put(cache);
  const auto found = cache.map(key("m"));
  ASSERT_TRUE(found);
  fs::remove_all(directory_);
  EXPECT_EQ(text(found->bulk.subspan(128)), second_);
}

TEST_F(MappedEntry, DamagedOrCutOffIsAMiss) {
  const Cache cache(directory_.string(), 1 << 30);
  put(cache);
  const auto whole = fs::file_size(file());
  std::string bytes(whole, 0);
  std::ifstream(file(), std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(whole));
  const std::size_t head_end = 8 + 4 * 8 + 64 + 8 + head_.size();
  std::vector<std::size_t> places{4096, 4096 + 99, 4096 + 128, whole / 2, whole - 1};
  for (std::size_t at = 0; at < head_end; ++at) places.push_back(at);
  for (std::size_t at : places) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(file(), std::ios::binary) << damaged;
    EXPECT_FALSE(cache.map(key("m"))) << at;
  }
  for (std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{100}, head_end - 1, std::size_t{4096}, bytes.size() - 1}) {
    std::ofstream(file(), std::ios::binary) << bytes.substr(0, size);
    EXPECT_FALSE(cache.map(key("m"))) << size;
  }
  std::ofstream(file(), std::ios::binary) << bytes << 'x';
  EXPECT_FALSE(cache.map(key("m")));
  put(cache);
  EXPECT_TRUE(cache.map(key("m")));
}

TEST_F(MappedEntry, LargerThanTheCacheIsNotKept) {
  const Cache cache(directory_.string(), 1 << 20);
  put(cache);
  EXPECT_FALSE(cache.map(key("m")));
}

TEST_F(MappedEntry, WritersAndReadersTogether) {
  const Cache cache(directory_.string(), 1 << 30);
  std::atomic<int> wrong{0}, found{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 10; ++k) {
        if (t % 2 == 0) put(cache);
        const auto entry = cache.map(key("m"));
        if (!entry) continue;
        ++found;
        if (text(entry->head) != head_ || text(entry->bulk.subspan(128)) != second_) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(found, 0);
  for (const auto& entry : fs::directory_iterator(directory_)) EXPECT_EQ(entry.path(), file());
}

}  // namespace
}  // namespace weft::runtime
