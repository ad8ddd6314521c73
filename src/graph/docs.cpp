#include "graph/docs.h"

#include <fmt/format.h>

#include <array>

#include "graph/graph.h"

namespace weft::graph {
namespace {

constexpr std::array<const char*, 7> kAttrTypes = {"int",  "bool",  "string", "dtype",
                                                   "ints", "sizes", "tensor"};
static_assert(kAttrTypes.size() == std::variant_size_v<AttrValue>);

std::string attributes(const OpInfo& op) {
  std::string out;
  for (const AttrUse& use : op.attrs) {
    const AttrInfo& attr = info(use.attr);
    out += fmt::format("{}{}{}: {}", out.empty() ? "" : ", ", attr.name, use.optional ? "?" : "",
                       kAttrTypes[static_cast<std::size_t>(attr.type)]);
  }
  return out;
}

std::string flags(const OpInfo& op) {
  std::string out;
  const auto add = [&](bool set, const char* word) {
    if (set) out += (out.empty() ? "" : ", ") + std::string(word);
  };
  add(op.pure, "pure");
  add(op.commutative, "commutative");
  add(op.host, "host");
  add(op.regions, "regions");
  return out;
}

// "|" would end a cell of the table.
std::string cell(std::string text) {
  for (std::size_t i = 0; (i = text.find('|', i)) != std::string::npos; i += 2)
    text.insert(i, "\\");
  return text;
}

std::string row(const OpInfo& op) {
  return fmt::format("| `{}` | {}{} | {} | {} | {} | {} | {} |\n", op.name, op.min_operands,
                     op.variadic ? "+" : "", op.results < 0 ? "any" : std::to_string(op.results),
                     op.dtypes, cell(attributes(op)), flags(op), cell(op.doc));
}

}  // namespace

std::string op_table_markdown() {
  std::string out = fmt::format(
      "# The {} prims of Graph IR\n\n"
      "Made from `src/graph/ops.def`; the test `Docs.OpsMatchTheTable` holds this file against "
      "it.\n\n"
      "- dtypes of operand 0: `b` bool, `i` signed and `u` unsigned integers, `f` float, `c` "
      "complex, `s` string.\n"
      "- `?` marks an optional attribute. Sizes may be symbolic.\n",
      op_count());
  const char* family = "";
  for (int i = 0; i < op_count(); ++i) {
    const OpInfo& op = info(static_cast<Op>(i));
    if (std::string_view(op.family_name) != family) {
      family = op.family_name;
      out += fmt::format(
          "\n## {}\n\n| op | operands | results | dtypes | attributes | flags | what it gives |\n"
          "|---|---|---|---|---|---|---|\n",
          family);
    }
    out += row(op);
  }
  return out;
}

}  // namespace weft::graph
