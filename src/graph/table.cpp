// The tables behind info(): rows straight from ops.def and attrs.def, their short spellings decoded
// once.
#include <map>

#include "graph/graph.h"

namespace weft::graph {
namespace {

struct Row {
  const char* name;
  Family family;
  const char* family_name;
  std::string_view operands;
  int results;
  std::string_view flags;
  const char* dtypes;
  DTypeRule dtype_rule;
  ShapeRule shape_rule;
  std::string_view attrs;
  const char* doc;
};

constexpr int V = -1;

constexpr Row kRows[] = {
#define OP(id, name, family, operands, results, flags, dtypes, drule, srule, attrs, doc) \
  {name,   Family::family,   #family,          operands, results, flags,                 \
   dtypes, DTypeRule::drule, ShapeRule::srule, attrs,    doc},
#include "graph/ops.def"
#undef OP
};

constexpr AttrInfo kAttrs[] = {
#define ATTR(id, name, type) {name, AttrType::type},
#include "graph/attrs.def"
#undef ATTR
};

constexpr int kOpCount = static_cast<int>(std::size(kRows));

std::vector<AttrUse> parse_attr_uses(std::string_view text) {
  std::vector<AttrUse> uses;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool optional = word.back() == '?';
    if (optional) word.remove_suffix(1);
    const auto attr = parse_attr(word);
    WEFT_CHECK(attr.has_value(),
               "ops.def names an attribute that attrs.def lacks: " + std::string(word));
    uses.push_back({*attr, optional});
  }
  return uses;
}

OpInfo decode(const Row& row) {
  const auto flag = [&](char letter) { return row.flags.find(letter) != std::string_view::npos; };
  OpInfo info;
  info.name = row.name;
  info.family = row.family;
  info.family_name = row.family_name;
  info.min_operands = row.operands[0] - '0';
  info.variadic = row.operands.back() == '+';
  info.results = row.results;
  info.pure = flag('P');
  info.commutative = flag('C');
  info.elementwise = flag('E');
  info.host = flag('H');
  info.regions = flag('R');
  info.dtypes = row.dtypes;
  info.dtype_rule = row.dtype_rule;
  info.shape_rule = row.shape_rule;
  info.attrs = parse_attr_uses(row.attrs);
  info.doc = row.doc;
  return info;
}

const std::vector<OpInfo>& op_table() {
  static const std::vector<OpInfo> table = [] {
    std::vector<OpInfo> t;
    for (const Row& row : kRows) t.push_back(decode(row));
    return t;
  }();
  return table;
}

}  // namespace

int op_count() { return kOpCount; }

const OpInfo& info(Op op) {
  const auto index = static_cast<std::size_t>(op);
  WEFT_CHECK(index < std::size(kRows), "an op outside of the table");
  return op_table()[index];
}

const AttrInfo& info(Attr attr) {
  const auto index = static_cast<std::size_t>(attr);
  WEFT_CHECK(index < std::size(kAttrs), "an attribute outside of the table");
  return kAttrs[index];
}

std::optional<Op> parse_op(std::string_view name) {
  static const std::map<std::string_view, Op> by_name = [] {
    std::map<std::string_view, Op> m;
    for (int i = 0; i < kOpCount; ++i) m.emplace(kRows[i].name, static_cast<Op>(i));
    return m;
  }();
  const auto it = by_name.find(name);
  return it == by_name.end() ? std::nullopt : std::optional<Op>(it->second);
}

std::optional<Attr> parse_attr(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kAttrs); ++i) {
    if (name == kAttrs[i].name) return static_cast<Attr>(i);
  }
  return std::nullopt;
}

}  // namespace weft::graph
