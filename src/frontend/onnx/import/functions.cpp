#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "frontend/onnx/import/importer.h"

namespace weft::onnx {
namespace {

// A file may unfold into this many nodes, and this many for each node that it holds.
constexpr std::int64_t kFreeNodes = 50'000, kNodesPerNode = 16;

// What a body becomes when the functions that it calls stand in their callers' place.
struct Extent {
  std::int64_t nodes = 0;
  int height = 0;
};

class Measure {
 public:
  explicit Measure(const Functions& functions) : functions_(functions) {}

  // An error when calls nest deeper than `levels`.
  Result<Extent> of(const std::vector<Node>& nodes, int levels) {
    Extent total;
    for (const Node& node : nodes) {
      add(total, {1, 0});
      if (const Function* callee = functions_.find(node)) add(total, WEFT_TRY(of(*callee, levels - 1)));
      for (const Attribute& a : node.attributes) {
        if (const auto* g = a.as<GraphPtr>()) add(total, WEFT_TRY(of((*g)->nodes, levels)));
        const auto* list = a.as<std::vector<GraphPtr>>();
        for (std::size_t k = 0; list && k < list->size(); ++k) add(total, WEFT_TRY(of((*list)[k]->nodes, levels)));
      }
    }
    return total;
  }

  Result<Extent> of(const Function& f, int levels) {
    const auto known = known_.find(&f);
    if (levels < 0 || (known != known_.end() && known->second.height > levels + 1)) {
      return user_error("too-deep", "functions are nested too deeply").at("function " + f.name);
    }
    if (known != known_.end()) return known->second;
    Extent extent = WEFT_TRY(of(f.nodes, levels));
    ++extent.height;
    return known_[&f] = extent;
  }

 private:
  static void add(Extent& to, const Extent& e) {
    if (__builtin_add_overflow(to.nodes, e.nodes, &to.nodes)) to.nodes = INT64_MAX;
    to.height = std::max(to.height, e.height);
  }

  const Functions& functions_;
  std::unordered_map<const Function*, Extent> known_;
};

std::int64_t nodes_of(const Graph& graph);

std::int64_t nodes_of(const std::vector<Node>& nodes) {
  auto count = static_cast<std::int64_t>(nodes.size());
  for (const Node& node : nodes) {
    for (const Attribute& a : node.attributes) {
      if (const auto* g = a.as<GraphPtr>()) count += nodes_of(**g);
      const auto* list = a.as<std::vector<GraphPtr>>();
      for (std::size_t k = 0; list && k < list->size(); ++k) count += nodes_of(*(*list)[k]);
    }
  }
  return count;
}

std::int64_t nodes_of(const Graph& graph) { return nodes_of(graph.nodes); }

}  // namespace

Functions::Functions(const Model& model) {
  for (const Function& f : model.functions) functions_.emplace(Key{f.domain, f.name, f.overload}, &f);
}

const Function* Functions::find(const Node& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(Key{node.domain, node.op_type, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

Result<void> Functions::check_inlining(const Model& model) const {
  if (functions_.empty()) return {};
  const Extent extent = WEFT_TRY(Measure(*this).of(model.graph->nodes, kMaxDepth));
  std::int64_t written = nodes_of(*model.graph);
  for (const Function& f : model.functions) written += nodes_of(f.nodes);
  const std::int64_t most = kFreeNodes + kNodesPerNode * written;
  if (extent.nodes <= most) return {};
  return unsupported("limit-exceeded", "the model's functions unfold into too many nodes")
      .expected(fmt::format("at most {}", most))
      .found(extent.nodes == INT64_MAX ? "more than can be counted" : std::to_string(extent.nodes));
}

}  // namespace weft::onnx
