#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "cli/printable.h"

namespace weft::cli {
namespace {

bool is_number(const std::string& cell) {
  for (const char* word : {"-", "inf", "-inf", "nan", "-nan"}) {
    if (cell == word) return true;
  }
  const std::size_t first = !cell.empty() && (cell[0] == '-' || cell[0] == '+') ? 1 : 0;
  return cell.size() > first && std::isdigit(static_cast<unsigned char>(cell[first]));
}

// Code points, so that names in UTF-8 line up.
std::size_t width(const std::string& cell) {
  return std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

std::string scaled(double value, double step, const std::vector<const char*>& units) {
  std::size_t unit = 0;
  while (std::abs(value) >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}{}", value, units[0]) : fmt::format("{:.2f}{}", value, units[unit]);
}

}  // namespace

std::string Table::str() const {
  std::vector<std::size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::vector<bool> numbers(widths.size(), rows_.size() > 1);  // by column; its heading stands as they do
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < rows_[r].size(); ++c) numbers[c] = numbers[c] && (rows_[r][c].empty() || is_number(rows_[r][c]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - width(row[c]), ' ');
      line += (numbers[c] ? blanks + row[c] : row[c] + blanks) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

void print(const Table& table) { fmt::print("{}", printable(table.str())); }

std::string bytes_text(double bytes) { return scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB"}); }
std::string count_text(double count) { return scaled(count, 1000, {"", " k", " M", " G", " T"}); }
std::string number_text(double value) { return fmt::format("{:.4g}", value); }

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string csv_field(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string joined(const std::vector<std::string>& words, const char* separator, std::size_t most) {
  if (words.size() <= most) return fmt::format("{}", fmt::join(words, separator));
  return fmt::format("{}{}... ({} in all)", fmt::join(words.begin(), words.begin() + most, separator), separator, words.size());
}

}  // namespace weft::cli
