#include <fmt/format.h>

#include "graph/graph.h"

namespace weft::graph {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Cuts the text before the next `separator` outside of brackets off.
std::string_view take(std::string_view& text, char separator) {
  int depth = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (text[i] == separator && depth == 0) break;
  }
  const std::string_view part = trim(text.substr(0, i));
  text.remove_prefix(std::min(i + 1, text.size()));
  return part;
}

}  // namespace

std::string str(const Type& type) { return name(type.dtype) + str(type.shape); }

Result<Type> parse_type(std::string_view text) {
  text = trim(text);
  const auto bad = [text] {
    return user_error("bad-type", fmt::format("'{}' is no type", text)).expected("e.g. f32[n, 4]");
  };
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return bad();
  const auto dtype = parse_dtype(trim(text.substr(0, open)));
  if (!dtype) return bad();
  Type type{*dtype, {}};
  std::string_view dims = trim(text.substr(open + 1, text.size() - open - 2));
  while (!dims.empty()) {
    type.shape.push_back(WEFT_TRY(Dim::parse(take(dims, ','))));
  }
  return type;
}

Result<std::vector<Type>> parse_types(std::string_view text) {
  std::vector<Type> types;
  text = trim(text);
  while (!text.empty()) types.push_back(WEFT_TRY(parse_type(take(text, ';'))));
  return types;
}

}  // namespace weft::graph
