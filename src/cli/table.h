// Tables and quantities for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::cli {

// Columns as wide as they must be, two blanks between them; to the right those of numbers alone (cells that begin with a
// digit or sign).
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.size() == 1; }
  std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

void print(const Table& table);  // to stdout

std::string bytes_text(double bytes);   // "1.50 MiB"
std::string count_text(double count);   // "1.50 G"
std::string number_text(double value);  // four significant digits
std::string one_line(std::string text);              // line ends as blanks
std::string csv_field(const std::string& text);      // in quotes
std::string joined(const std::vector<std::string>& words, const char* separator = ", ", std::size_t most = SIZE_MAX);

}  // namespace weft::cli
