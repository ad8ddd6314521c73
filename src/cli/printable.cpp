#include "cli/printable.h"

#include <algorithm>

namespace weft::cli {

std::string printable(std::string text) {
  constexpr unsigned char kFirst = 0x20, kDelete = 0x7f;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c != '\n' && c != '\t' && (c < kFirst || c == kDelete); }, '?');
  return text;
}

}  // namespace weft::cli
