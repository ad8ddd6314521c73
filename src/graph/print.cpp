#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "graph/graph.h"
#include "graph/text.h"

namespace weft::graph {
namespace {

std::string print_tensor(const Tensor& t) {
  const std::string type = name(t.dtype()) + shape_str(t.shape());
  if (t.size() <= kMaxPrintedElements) return fmt::format("{}({})", type, print_elements(t));
  return fmt::format("{} hash {:#018x}", type, t.content_hash());
}

struct PrintValue {
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return quote(v); }
  std::string operator()(DType v) const { return name(v); }
  std::string operator()(const std::vector<std::int64_t>& v) const { return shape_str(v); }
  std::string operator()(const Shape& v) const { return str(v); }
  std::string operator()(const Tensor& v) const { return print_tensor(v); }
};

std::string print_range(const SymbolRange& r) {
  std::string out = fmt::format("{}..", r.lo);
  if (r.hi != SymbolRange{}.hi) out += std::to_string(r.hi);
  if (r.multiple_of != 1) out += fmt::format(" multiple {}", r.multiple_of);
  return out;
}

bool same_range(const SymbolRange& a, const SymbolRange& b) {
  return a.lo == b.lo && a.hi == b.hi && a.multiple_of == b.multiple_of;
}

class Printer {
 public:
  Printer(const Graph& graph, const DimFacts& outside, std::string indent)
      : graph_(graph),
        outside_(outside),
        indent_(std::move(indent)),
        numbers_(graph.values().size(), -1) {}

  void run(std::string& out) {
    out += fmt::format("{}graph @{}({}) -> ({}){} {{\n", indent_, name_text(graph_.name), inputs(),
                       types(graph_.outputs()), where());
    for (const Node& node : graph_.nodes()) print_node(node, out);
    out += fmt::format("{}  return{}\n{}}}", indent_, operands(graph_.outputs()), indent_);
  }

 private:
  std::string define(ValueId v) {
    numbers_[v] = next_++;
    const std::string& name = graph_.value(v).name;
    if (name.empty()) return fmt::format("%{}", numbers_[v]);
    return fmt::format("%{} {}", numbers_[v], quote(name));
  }

  std::string inputs() {
    std::string out;
    for (ValueId v : graph_.inputs()) {
      out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", define(v), str(graph_.type(v)));
    }
    return out;
  }

  std::string types(const std::vector<ValueId>& values) const {
    std::string out;
    for (ValueId v : values) out += (out.empty() ? "" : ", ") + str(graph_.type(v));
    return out;
  }

  std::string operands(const std::vector<ValueId>& values) const {
    std::string out;
    for (ValueId v : values) out += fmt::format("{} %{}", out.empty() ? "" : ",", numbers_[v]);
    return out;
  }

  // What is known of the symbols beyond what the graph around this one knows.
  std::string where() const {
    std::string out;
    for (const auto& [symbol, range] : graph_.facts.symbols()) {
      DimFacts joined = outside_;
      joined.declare(symbol, {});
      const SymbolRange before = joined.symbols().at(symbol);
      joined.declare(symbol, range);
      if (same_range(before, joined.symbols().at(symbol))) continue;
      out += fmt::format("{} {} in {}", out.empty() ? " where" : ",", Dim::symbol(symbol).str(),
                         print_range(range));
    }
    return out;
  }

  static std::string attrs(const Attrs& attrs) {
    std::string out;
    for (const auto& [key, value] : attrs.all()) {
      out += fmt::format("{}{}={}", out.empty() ? "" : ", ", info(key).name,
                         std::visit(PrintValue{}, value));
    }
    return out.empty() ? "" : " {" + out + "}";
  }

  void print_node(const Node& node, std::string& out) {
    const std::string used = operands(node.operands);
    std::string made;
    for (ValueId v : node.results) made += (made.empty() ? "" : ", ") + define(v);
    out += fmt::format("{}  {}{}{}{}", indent_, made.empty() ? "" : made + " = ",
                       info(node.op).name, used, attrs(node.attrs));
    if (!node.results.empty()) out += " : " + types(node.results);
    if (!node.regions.empty()) {
      out += " regions {\n";
      for (const auto& region : node.regions) {
        Printer(*region, graph_.facts, indent_ + "    ").run(out);
        out += "\n";
      }
      out += indent_ + "  }";
    }
    if (node.origin != nullptr) {
      out += "  # node " + quote(node.origin->node);
      if (!node.origin->op.empty()) out += " op " + quote(node.origin->op);
    }
    out += "\n";
  }

  const Graph& graph_;
  const DimFacts& outside_;
  std::string indent_;
  std::vector<int> numbers_;
  int next_ = 0;
};

}  // namespace

std::string print(const Graph& graph) {
  std::string out;
  Printer(graph, DimFacts(), "").run(out);
  return out + "\n";
}

void collect_constants(const Graph& graph, Sidecar& into) {
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::Constant) {
      const Tensor& data = node.attrs.data(Attr::Data);
      if (data.size() > kMaxPrintedElements) into.emplace(data.content_hash(), data);
    }
    for (const auto& region : node.regions) collect_constants(*region, into);
  }
}

}  // namespace weft::graph
