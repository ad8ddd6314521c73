#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
namespace {

// Edits (insert, delete, replace, swap of neighbours) from a to b; letter case costs nothing.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) { return std::tolower(static_cast<unsigned char>(x)) ==
                                                std::tolower(static_cast<unsigned char>(y)); };
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 128;  // longer words are no typing mistakes, and the distance is quadratic
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::optional<std::string> found;
  for (const std::string& c : candidates) {
    if (c.size() > kLongest) continue;
    const std::size_t distance = edit_distance(word, c);
    if (distance < best) {
      best = distance;
      found = c;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto found = nearest_name(word, candidates);
  return found ? fmt::format("did you mean '{}'?", *found) : std::string();
}

bool is_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool inner_dot = text[i] == '.' && i + 1 < text.size() && (is_letter(text[i + 1]) || is_digit(text[i + 1]));
    if (!is_letter(text[i]) && !is_digit(text[i]) && !inner_dot) return false;
  }
  return true;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          out += fmt::format("\\x{:02x}", byte);
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string name_text(std::string_view text) {
  const bool number = !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  return number || is_identifier(text) ? std::string(text) : quote(text);
}

std::string float_text(double value) {
  if (std::isnan(value)) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    return bits == 0x7ff8000000000000ull ? "nan" : fmt::format("nan({:#018x})", bits);
  }
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace weft
