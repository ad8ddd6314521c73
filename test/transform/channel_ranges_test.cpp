#include "transform/channel_ranges.h"

#include <gtest/gtest.h>

#include <random>

namespace weft::transform {
namespace {

std::int64_t channel_of(std::int64_t element, const std::vector<ChannelRun>& runs) {
  std::int64_t channel = 0;
  for (const ChannelRun& run : runs) {
    channel += element % run.length * run.step;
    element /= run.length;
  }
  return channel;
}

template <class T>
void expect_as_one_by_one(const std::vector<ChannelRun>& runs) {
  std::int64_t size = 1, channels = 1;
  for (const ChannelRun& run : runs) size *= run.length, channels *= run.step != 0 ? run.length : 1;
  std::mt19937 random(7);
  std::vector<T> values(size);
  for (T& v : values) v = static_cast<T>(random());
  std::vector<std::int64_t> sums(channels, 0), least(channels, std::numeric_limits<T>::max()), most(channels, std::numeric_limits<T>::min());
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t c = channel_of(i, runs), v = values[i];
    sums[c] += v, least[c] = std::min(least[c], v), most[c] = std::max(most[c], v);
  }
  const ChannelRanges found = channel_ranges(values.data(), runs, channels);
  EXPECT_EQ(found.sums, sums);
  EXPECT_EQ(found.least, least);
  EXPECT_EQ(found.most, most);
  std::vector<std::int8_t> bytes(size);
  subtract_by_channel(values.data(), least, runs, bytes.data());
  for (std::int64_t i = 0; i < size; ++i) {
    ASSERT_EQ(bytes[i], static_cast<std::int8_t>(values[i] - least[channel_of(i, runs)])) << i;
  }
}

TEST(ChannelRanges, AreThoseOfElementsOneByOne) {
  for (const std::vector<ChannelRun>& runs : std::vector<std::vector<ChannelRun>>{
           {{200, 1}, {9, 0}}, {{9, 0}, {70, 1}}, {{130, 0}, {3, 1}, {5, 0}}, {{67, 1}, {4, 0}, {3, 67}}, {{1, 0}}, {{64, 1}}, {{5, 0}}}) {
    expect_as_one_by_one<std::int8_t>(runs);
    expect_as_one_by_one<std::uint8_t>(runs);
    expect_as_one_by_one<std::int32_t>(runs);
  }
}

}  // namespace
}  // namespace weft::transform
