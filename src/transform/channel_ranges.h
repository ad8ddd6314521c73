// Sums and bounds of integers by channel, and bytes of them: of weights of many megabytes, so in blocks that vectorise.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace weft::transform {

// Elements side by side whose channels are a step apart: 0 (of one channel) or the channels of what lies within.
struct ChannelRun {
  std::int64_t length, step;
};

struct ChannelRanges {
  std::vector<std::int64_t> sums, least, most;
};

// visit(first, channel of the first): each line of the innermost of `runs`, in order.
template <class Visit>
void each_channel_line(const std::vector<ChannelRun>& runs, Visit visit) {
  std::int64_t lines = 1, channel = 0;
  for (std::size_t k = 1; k < runs.size(); ++k) lines *= runs[k].length;
  std::vector<std::int64_t> at(runs.size(), 0);
  for (std::int64_t line = 0; line < lines; ++line) {
    visit(line * runs[0].length, channel);
    for (std::size_t k = 1; k < runs.size(); ++k) {
      channel += runs[k].step;
      if (++at[k] < runs[k].length) break;
      channel -= runs[k].step * runs[k].length;
      at[k] = 0;
    }
  }
}

// Numbers of iterations that are known, over arrays that nothing else is, become vectors.
constexpr std::int64_t kChannelBlock = 64;

// One block of lines that lie below each other.
template <class T>
struct ChannelBlock {
  std::array<std::int32_t, kChannelBlock> sums{};
  std::array<T, kChannelBlock> least, most;

  ChannelBlock() {
    least.fill(std::numeric_limits<T>::max());
    most.fill(std::numeric_limits<T>::min());
  }

  void add(const T* values) {
    std::array<T, kChannelBlock> v;
    std::memcpy(v.data(), values, sizeof(v));
    for (std::int64_t j = 0; j < kChannelBlock; ++j) sums[j] += v[j];
    for (std::int64_t j = 0; j < kChannelBlock; ++j) least[j] = std::min(least[j], v[j]);
    for (std::int64_t j = 0; j < kChannelBlock; ++j) most[j] = std::max(most[j], v[j]);
  }
};

template <class T>
ChannelRanges channel_ranges(const T* values, const std::vector<ChannelRun>& runs, std::int64_t channels) {
  ChannelRanges r;
  r.sums.assign(channels, 0);
  r.least.assign(channels, std::numeric_limits<T>::max());
  r.most.assign(channels, std::numeric_limits<T>::min());
  const auto [length, step] = runs[0];
  const auto merge = [&r](std::int64_t channel, std::int64_t sum, std::int64_t least, std::int64_t most) {
    r.sums[channel] += sum;
    r.least[channel] = std::min(r.least[channel], least);
    r.most[channel] = std::max(r.most[channel], most);
  };
  // Bytes whose sums fit 32 bits; `lines` below each other begin at `first`.
  constexpr std::int64_t kMostLines = std::int64_t{1} << 20;
  std::int64_t blocks = 0;
  if constexpr (sizeof(T) == 1) blocks = step == 0 || runs.size() > 2 ? 0 : length / kChannelBlock;
  const std::int64_t lines = runs.size() == 2 ? runs[1].length : 1;
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t from = 0; from < lines; from += kMostLines) {
      ChannelBlock<T> sums;
      for (std::int64_t line = from; line < std::min(lines, from + kMostLines); ++line) sums.add(values + line * length + block * kChannelBlock);
      for (std::int64_t j = 0; j < kChannelBlock; ++j) merge(block * kChannelBlock + j, sums.sums[j], sums.least[j], sums.most[j]);
    }
  }
  each_channel_line(runs, [&, length = length, step = step](std::int64_t first, std::int64_t channel) {
    if (step != 0) {
      for (std::int64_t k = blocks * kChannelBlock; k < length; ++k) merge(channel + k, values[first + k], values[first + k], values[first + k]);
      return;
    }
    std::int64_t sum = 0;
    T least = std::numeric_limits<T>::max(), most = std::numeric_limits<T>::min();
    for (std::int64_t k = 0; k < length; ++k) {
      const T v = values[first + k];
      sum += v;
      least = std::min(least, v);
      most = std::max(most, v);
    }
    if (length > 0) merge(channel, sum, least, most);
  });
  return r;
}

// to[i] = values[i] - shift[channel of i], in bytes.
template <class T>
void subtract_by_channel(const T* values, const std::vector<std::int64_t>& shift, const std::vector<ChannelRun>& runs, std::int8_t* to) {
  const auto [length, step] = runs[0];
  std::vector<std::uint8_t> low(shift.begin(), shift.end());
  each_channel_line(runs, [&, length = length, step = step](std::int64_t first, std::int64_t channel) {
    std::int64_t k = 0;
    for (; k + kChannelBlock <= length; k += kChannelBlock) {
      std::array<T, kChannelBlock> v;
      std::array<std::uint8_t, kChannelBlock> s, result;
      std::memcpy(v.data(), values + first + k, sizeof(v));
      if (step == 0) s.fill(low[channel]);
      else std::memcpy(s.data(), low.data() + channel + k, sizeof(s));
      for (std::int64_t j = 0; j < kChannelBlock; ++j) result[j] = static_cast<std::uint8_t>(v[j] - s[j]);
      std::memcpy(to + first + k, result.data(), sizeof(result));
    }
    for (; k < length; ++k) to[first + k] = static_cast<std::int8_t>(values[first + k] - low[channel + k * (step != 0)]);
  });
}

}  // namespace weft::transform
