#include "cli/text_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/kernel.h"
#include "loop/group.h"
#include "tile/tile.h"

namespace weft::cli {
namespace {

Result<std::string> again(const std::string& stage, const std::string& text, const graph::Sidecar& constants) {
  if (stage == "graph") {
    const graph::Graph g = WEFT_TRY(graph::parse(text, constants));
    WEFT_TRY(graph::verify(g));
    return graph::print(g);
  }
  if (stage == "loop") {
    const loop::Group g = WEFT_TRY(loop::parse(text));
    WEFT_TRY(loop::verify(g));
    return loop::print(g);
  }
  const bool is_tile = stage == "tile";
  const ssa::Function f = WEFT_TRY(ssa::parse(text, is_tile ? tile::op_table() : kernel::op_table()));
  WEFT_TRY(is_tile ? tile::verify(f) : kernel::verify(f));
  return ssa::print(f);
}

std::string line_at(const std::string& text, std::size_t at) {
  const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

}  // namespace

void TextCheck::add(const std::string& stage, const std::string& name, std::string text) {
  items_.push_back({stage, name, std::move(text)});
}

Result<std::map<std::string, int>> TextCheck::run(const graph::Sidecar& constants) const {
  std::map<std::string, int> counts;
  for (const std::string& stage : kParsedStages) counts[stage] = 0;
  for (const Item& item : items_) {
    const Result<std::string> text = again(item.stage, item.text, constants);
    const std::string where = fmt::format("{} {}", item.stage, item.name);
    if (!text.ok()) return internal_error("text does not parse back: " + text.error().message()).at(where);
    if (*text != item.text) {
      const auto [a, b] = std::mismatch(item.text.begin(), item.text.end(), text->begin(), text->end());
      return internal_error("text does not parse back to itself")
          .at(where)
          .expected(line_at(item.text, static_cast<std::size_t>(a - item.text.begin())))
          .found(line_at(*text, static_cast<std::size_t>(b - text->begin())));
    }
    ++counts[item.stage];
  }
  return counts;
}

}  // namespace weft::cli
