// The names by which a user chooses, each in one table: what parses, suggests, checks and explains reads it.
#pragma once

#include <string>

#include "transform/pipeline.h"

namespace weft::transform {

template <class T>
struct Choice {
  const char* name;
  T value;
};
inline constexpr Choice<Precision> kPrecisions[] = {
    {"highest", Precision::Highest}, {"high", Precision::High}, {"medium", Precision::Medium}};
inline constexpr Choice<Weights> kWeights[] = {{"f32", Weights::F32}, {"bf16", Weights::Bf16}, {"int8", Weights::Int8},
                                               {"int4", Weights::Int4}};

template <class T, std::size_t N>
std::optional<T> chosen(const Choice<T> (&table)[N], std::string_view name) {
  for (const Choice<T>& c : table) {
    if (name == c.name) return c.value;
  }
  return std::nullopt;
}

template <class T, std::size_t N>
std::vector<std::string> names(const Choice<T> (&table)[N]) {
  std::vector<std::string> all;
  for (const Choice<T>& c : table) all.emplace_back(c.name);
  return all;
}

// "f32, bf16, int8 or int4", or all with `last` between the last two.
template <class T, std::size_t N>
std::string listed(const Choice<T> (&table)[N], const char* last = " or ") {
  std::string text;
  for (std::size_t k = 0; k < N; ++k) text += (k == 0 ? "" : k + 1 == N ? last : ", ") + std::string(table[k].name);
  return text;
}

}  // namespace weft::transform
