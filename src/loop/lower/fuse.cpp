#include "loop/lower/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/likely.h"
#include "base/log.h"
#include "loop/lower/narrow.h"

namespace weft::loop {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// Reading through an expression is worth at most this many scalar operations (a transcendental counts as ten)...
constexpr int kMaxRecompute = 6;
// ...and one kernel's body is kept below this many, whatever it saves.
constexpr int kMaxBody = 400;
constexpr int kMaxUnitNodes = 64;
constexpr std::size_t kMaxInlineConcat = 4;
constexpr double kManyScores = 64;  // for which what they have in common is not computed anew each time
constexpr int kDecoding = 24;  // nodes that make a product's weights of what they are kept as
constexpr int kMaxPieces = 32;  // places that one element may come from, where nothing but concatenations are read through

double likely_elements(const Shape& shape) {
  double n = 1;
  for (const Dim& d : shape) n *= likely_size(d);
  return n;
}

bool is_shape_preserving(const Graph& g, const Node& node) {
  if (info(node.op).elementwise) return true;
  return is_look_up(g, node) && g.type(node.operands[0]).rank() == 1 && g.constant(node.operands[0]);
}

class Planner {
 public:
  Planner(const Graph& g, const AttentionChooser& attention) : g_(g), attention_(attention) {
    plan_.unit_of.assign(g.nodes().size(), -1);
    plan_.stored.assign(g.values().size(), false);
    users_.resize(g.values().size());
    for (NodeId n = 0; n < static_cast<NodeId>(g.nodes().size()); ++n) {
      for (ValueId v : g.node(n).operands) {
        if (users_[v].empty() || users_[v].back() != n) users_[v].push_back(n);
      }
    }
    rounded_.assign(g.values().size(), false);
    for (const Node& node : g.nodes()) {
      if (node.op != GOp::Dot && node.op != GOp::Conv) continue;
      for (ValueId v : node.operands) {
        if (const ValueId base = moved(v); rounds(base)) rounded_[base] = true;
      }
    }
    is_output_.assign(g.values().size(), false);
    for (ValueId v : g.outputs()) is_output_[v] = true;
  }

  FusionPlan run() {
    if (attention_) claim_attention();
    find_sums();
    for (NodeId n = 0; n < static_cast<NodeId>(g_.nodes().size()); ++n) {
      Part part = part_of(g_, g_.node(n));
      if (plan_.unit_of[n] >= 0) continue;
      if (part == Part::Contraction) grow(n, UnitKind::Contraction);
      if (part == Part::Reduction) grow(n, UnitKind::Rows);
    }
    store_what_must_be();
    store_into_padding();
    weigh_the_rest();
    return std::move(plan_);
  }

 private:
  // ---- units ----

  bool may_join(const Unit& unit, const Node& node, NodeId id) const {
    if (plan_.unit_of[id] >= 0 || node.results.empty()) return false;
    const Node& seed = g_.node(unit.seed);
    if (node.results.empty() || pointwise_only(g_.type(node.results[0]).dtype)) return false;
    if (unit.kind == UnitKind::Contraction) {
      const Shape& space = g_.type(seed.results[0]).shape;
      if (is_shape_preserving(g_, node)) return g_.type(node.results[0]).shape == space;
      return false;
    }
    const Shape& full = g_.type(seed.operands[0]).shape;
    const Shape& outer = g_.type(seed.results[0]).shape;
    const Shape& shape = g_.type(node.results[0]).shape;
    Part part = part_of(g_, node);
    if (part == Part::Reduction) {
      return g_.type(node.operands[0]).shape == full && node.attrs.ints(Attr::Axes) == seed.attrs.ints(Attr::Axes);
    }
    if (is_shape_preserving(g_, node)) return shape == full || shape == outer || is_kept(shape, seed);
    if (node.op == GOp::Reshape) {
      const Shape& from = g_.type(node.operands[0]).shape;
      return (from == outer && is_kept(shape, seed)) || (shape == outer && is_kept(from, seed));
    }
    if (node.op == GOp::Broadcast) return row_broadcast(node, seed, full);
    return false;
  }

  // The reduced axes kept with size 1.
  bool is_kept(const Shape& shape, const Node& seed) const {
    const Shape& full = g_.type(seed.operands[0]).shape;
    if (shape.size() != full.size()) return false;
    const auto& axes = seed.attrs.ints(Attr::Axes);
    for (std::size_t d = 0; d < full.size(); ++d) {
      bool reduced = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end();
      if (reduced ? !shape[d].is(1) : !(shape[d] == full[d])) return false;
    }
    return true;
  }

  // A row value spread back over its own row: axis d of the kept form goes to axis d.
  bool row_broadcast(const Node& node, const Node& seed, const Shape& full) const {
    if (!(g_.type(node.results[0]).shape == full)) return false;
    const auto& map = node.attrs.ints(Attr::Axes);
    const Shape& from = g_.type(node.operands[0]).shape;
    const auto& axes = seed.attrs.ints(Attr::Axes);
    if (is_kept(from, seed)) {
      for (std::size_t d = 0; d < map.size(); ++d) {
        if (map[d] != static_cast<std::int64_t>(d)) return false;
      }
      return true;
    }
    if (!(from == g_.type(seed.results[0]).shape)) return false;
    std::size_t k = 0;
    for (std::size_t d = 0; d < full.size(); ++d) {
      if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end()) continue;
      if (k >= map.size() || map[k] != static_cast<std::int64_t>(d)) return false;
      ++k;
    }
    return k == map.size();
  }

  // Would computing `id` together with the unit close a cycle through something outside? Walks back from the operands
  // that are not members; whole units move as one.
  bool closes_cycle(const std::set<NodeId>& members, NodeId id) const {
    NodeId first = *members.begin();
    std::vector<NodeId> work;
    std::set<NodeId> seen;
    auto push_operands = [&](NodeId n) {
      for (ValueId v : g_.node(n).operands) {
        NodeId d = g_.value(v).def;
        if (d >= 0 && seen.insert(d).second) work.push_back(d);
      }
    };
    for (ValueId v : g_.node(id).operands) {
      NodeId d = g_.value(v).def;
      if (d >= 0 && !members.count(d) && seen.insert(d).second) work.push_back(d);
    }
    while (!work.empty()) {
      NodeId n = work.back();
      work.pop_back();
      if (members.count(n)) return true;
      int unit = plan_.unit_of[n];
      if (unit >= 0) {
        if (plan_.units[unit].nodes.back() < first) continue;
        for (NodeId m : plan_.units[unit].nodes) {
          seen.insert(m);
          push_operands(m);
        }
      } else if (n > first) {
        push_operands(n);
      }
    }
    return false;
  }

  std::vector<ValueId> escaping(const std::set<NodeId>& members) const {
    std::vector<ValueId> result;
    for (NodeId m : members) {
      for (ValueId v : g_.node(m).results) {
        bool out = is_output_[v];
        for (NodeId u : users_[v]) out = out || !members.count(u);
        if (out) result.push_back(v);
      }
    }
    return result;
  }

  // Whether v is another value in fewer bits: what products read, they read stored.
  bool rounds(ValueId v) const {
    const Node* def = g_.def(v);
    if (!def || def->op != GOp::Cast) return false;
    const DType from = g_.type(def->operands[0]).dtype, to = g_.type(v).dtype;
    return is_float(from) && is_float(to) && bits(to) < bits(from);
  }

  // What v is through nodes that move elements.
  ValueId moved(ValueId v) const {
    const Node* def = g_.def(v);
    while (def && (def->op == GOp::Reshape || def->op == GOp::Transpose || def->op == GOp::Broadcast || def->op == GOp::Slice || def->op == GOp::Pad)) {
      def = g_.def(v = def->operands[0]);
    }
    return v;
  }

  // That a unit writes and others need not: what products want rounded is written by whoever makes it.
  double bytes(const std::vector<ValueId>& values) const {
    double total = 0;
    for (ValueId v : values) total += rounded_[v] ? 0 : likely_elements(g_.type(v).shape) * bits(g_.type(v).dtype) / 8;
    return total;
  }

  std::string named(NodeId n) const {
    const Node& node = g_.node(n);
    return fmt::format("node {} '{}'{}", n, info(node.op).name, node.origin ? " of '" + node.origin->node + "'" : "");
  }

  void log_refusal(NodeId n, const std::string& why) const {
    if (log_enabled("fusion")) log("fusion", fmt::format("unit {} without {}: {}", plan_.units.size(), named(n), why));
  }

  void grow(NodeId seed, UnitKind kind) {
    const auto sum = sum_of_.find(seed);
    if (sum != sum_of_.end()) seed = sum->second.dots.front();
    Unit unit{kind, seed, {seed}};
    std::set<NodeId> members{seed};
    ValueId result = g_.node(seed).results[0];
    if (sum != sum_of_.end()) {
      unit.sum = sum->second;
      members.insert(unit.sum.dots.begin(), unit.sum.dots.end());
      members.insert(unit.sum.adds.begin(), unit.sum.adds.end());
      result = unit.sum.total;
    }
    std::set<NodeId> best = members;
    double best_bytes = bytes(escaping(members));
    // Candidates in topological order: users of members.
    std::set<NodeId> candidates(users_[result].begin(), users_[result].end());
    int body = 0;
    while (!candidates.empty() && members.size() < kMaxUnitNodes) {
      NodeId n = *candidates.begin();
      candidates.erase(candidates.begin());
      const Node& node = g_.node(n);
      if (members.count(n)) continue;
      if (!may_join(unit, node, n)) {
        log_refusal(n, plan_.unit_of[n] >= 0 ? "it belongs to another unit" : "it runs over another space");
        continue;
      }
      if (closes_cycle(members, n)) {
        log_refusal(n, "something outside stands between it and the unit");
        continue;
      }
      body += std::max(1, scalar_cost(g_, node));
      if (body > kMaxBody) {
        log_refusal(n, "the kernel would be too large");
        break;
      }
      members.insert(n);
      for (NodeId u : users_[node.results[0]]) candidates.insert(u);
      // A contraction grows while it lets no more bytes out. A row unit's walk over its rows is paid for already, so
      // it takes whatever it can finish with few outputs, those apart that have to be stored anyway.
      std::vector<ValueId> out = escaping(members);
      const auto stored_anyway = std::count_if(out.begin(), out.end(), [&](ValueId v) { return feeds_contraction(v); });
      bool better = kind == UnitKind::Rows ? static_cast<std::ptrdiff_t>(out.size()) <= 2 + stored_anyway : bytes(out) <= best_bytes && out.size() <= 4;
      if (better) {
        best = members;
        best_bytes = bytes(out);
      } else if (log_enabled("fusion")) {
        log_refusal(n, fmt::format("{} values of {} bytes would leave the kernel, now {} bytes do", out.size(), bytes(out), best_bytes));
      }
    }
    unit.nodes.assign(best.begin(), best.end());
    std::stable_partition(unit.nodes.begin(), unit.nodes.end(), [&](NodeId m) { return m == seed; });
    unit.outputs = escaping(best);
    std::sort(unit.nodes.begin() + 1, unit.nodes.end());
    for (NodeId m : unit.nodes) plan_.unit_of[m] = static_cast<int>(plan_.units.size());
    if (log_enabled("fusion")) {
      std::vector<ValueId> inside;  // written and read again if each node were a kernel
      for (NodeId m : unit.nodes) inside.insert(inside.end(), g_.node(m).results.begin(), g_.node(m).results.end());
      log("fusion", fmt::format("unit {} from {}: {} nodes, {} bytes stored, {} bytes saved", plan_.units.size(), named(seed),
                                unit.nodes.size(), best_bytes, 2 * (bytes(inside) - best_bytes)));
    }
    plan_.units.push_back(std::move(unit));
  }

  // Of what attention leaves.
  void find_sums() {
    for (const DotSum& sum : find_dot_sums(g_, users_, is_output_)) {
      const auto taken = [&](NodeId n) { return plan_.unit_of[n] >= 0; };
      if (std::any_of(sum.dots.begin(), sum.dots.end(), taken) || std::any_of(sum.adds.begin(), sum.adds.end(), taken)) continue;
      for (NodeId dot : sum.dots) sum_of_.emplace(dot, sum);
    }
  }

  // Attention is claimed first and whole.
  void claim_attention() {
    for (NodeId n = 0; n < static_cast<NodeId>(g_.nodes().size()); ++n) {
      if (g_.node(n).op != GOp::Dot) continue;
      std::string why;
      auto found = find_attention(g_, n, users_, is_output_, why);
      if (found && std::any_of(found->nodes.begin(), found->nodes.end(), [&](NodeId m) { return plan_.unit_of[m] >= 0; })) {
        found.reset();
        why = "a part of it belongs to another";
      }
      AttentionPlan plan;
      if (found) {
        plan = attention_(attention_shape(g_, *found));
        why = plan.why;
      }
      if (!why.empty() && log_enabled("fusion")) {
        log("fusion", fmt::format("attention at {}: {}{}", named(n), plan.block > 0 ? "one kernel; " : "not claimed: ", why));
      }
      if (plan.block == 0) continue;
      Unit unit{UnitKind::Attention, found->qk, found->nodes, {}, g_.node(n).results, {}, *found, std::move(plan)};
      for (NodeId m : unit.nodes) plan_.unit_of[m] = static_cast<int>(plan_.units.size());
      plan_.units.push_back(std::move(unit));
    }
  }

  // ---- stored values ----

  void store(ValueId v) {
    const Node* def = g_.def(v);
    // A reshape of something stored shares its bytes.
    while (def && def->op == GOp::Reshape && plan_.unit_of[g_.value(v).def] < 0 && !is_output_[v]) {
      v = def->operands[0];
      def = g_.def(v);
    }
    plan_.stored[v] = true;
  }

  void store_what_must_be() {
    for (ValueId v : g_.inputs()) plan_.stored[v] = true;
    for (ValueId v : g_.outputs()) plan_.stored[v] = true;
    for (const Unit& unit : plan_.units) {
      for (ValueId v : unit.outputs) plan_.stored[v] = true;
    }
    for (NodeId n = 0; n < static_cast<NodeId>(g_.nodes().size()); ++n) {
      const Node& node = g_.node(n);
      Part part = part_of(g_, node);
      if (part == Part::Constant || part == Part::Alone || part == Part::Step) {
        for (ValueId v : node.results) plan_.stored[v] = true;
      }
      if (part == Part::Step || info(node.op).family == graph::Family::Sort) {
        for (ValueId v : node.operands) store(v);
      }
      if (node.op == GOp::Concat && node.operands.size() > kMaxInlineConcat) plan_.stored[node.results[0]] = true;
      const int u = plan_.unit_of[n];
      if (u >= 0 && plan_.units[u].kind == UnitKind::Attention) {
        store_attention_operand(plan_.units[u], n);
      } else if (part == Part::Contraction) {
        for (std::size_t k = 0; k < node.operands.size(); ++k) store_contraction_operand(node, k);
      }
    }
  }

  // A contraction whose result is padded by a constant and stored writes into the middle of the padded value: no copy.
  void store_into_padding() {
    for (NodeId n = 0; n < static_cast<NodeId>(g_.nodes().size()); ++n) {
      const Node& node = g_.node(n);
      if (node.op != GOp::Pad || plan_.unit_of[n] >= 0 || !plan_.stored[node.results[0]] || !only_grows(node)) continue;
      ValueId v = node.operands[0];
      NodeId def = g_.value(v).def;
      int u = def >= 0 ? plan_.unit_of[def] : -1;
      if (u < 0 || plan_.units[u].kind != UnitKind::Contraction) continue;
      Unit& unit = plan_.units[u];
      auto output = std::find(unit.outputs.begin(), unit.outputs.end(), v);
      if (output == unit.outputs.end() && std::none_of(unit.pads.begin(), unit.pads.end(), [&](NodeId p) {
            return g_.node(p).operands[0] == v;
          })) {
        continue;
      }
      unit.pads.push_back(n);
      plan_.unit_of[n] = u;
      bool elsewhere = is_output_[v];
      for (NodeId user : users_[v]) elsewhere = elsewhere || plan_.unit_of[user] != u;
      if (elsewhere || output == unit.outputs.end()) continue;
      unit.outputs.erase(output);
      plan_.stored[v] = false;
    }
  }

  bool only_grows(const Node& pad) const {
    if (pad.attrs.str(Attr::Mode) != "constant" || !g_.constant(pad.operands[1])) return false;
    for (Attr side : {Attr::Lo, Attr::Hi}) {
      for (const Dim& d : pad.attrs.dims(side)) {
        if (g_.facts.range(d).lo < 0) return false;
      }
    }
    return true;
  }

  // Attention reads query, keys and values where they lie; their scales are applied to the query on the way.
  void store_attention_operand(const Unit& unit, NodeId n) {
    const Node& node = g_.node(n);
    if (n == unit.attention.qk) {
      for (ValueId v : node.operands) store(renamed(without_scale(g_, v).value));
    }
    if (n == unit.attention.pv) store(renamed(node.operands[1]));
  }

  // Whether a contraction reads the value as it is, or reshaped.
  bool feeds_contraction(ValueId v) const {
    const auto direct = [&](ValueId x) {
      return std::any_of(users_[x].begin(), users_[x].end(), [&](NodeId u) { return part_of(g_, g_.node(u)) == Part::Contraction; });
    };
    return direct(v) || std::any_of(users_[v].begin(), users_[v].end(), [&](NodeId u) {
             return g_.node(u).op == GOp::Reshape && direct(g_.node(u).results[0]);
           });
  }

  // What v is read from through nodes that only rename elements.
  ValueId renamed(ValueId v) const {
    while (const Node* def = g_.def(v)) {
      if (plan_.stored[v] || plan_.unit_of[g_.value(v).def] >= 0) break;
      if (def->op != GOp::Reshape && def->op != GOp::Transpose && def->op != GOp::Broadcast && def->op != GOp::Slice &&
          (def->op != GOp::Cast || rounds(v))) {
        break;
      }
      v = def->operands[0];
    }
    return v;
  }

  // Whether v is made of constants of fewer bytes: weights that are kept in few bits.
  bool decodes(ValueId v) const {
    double read = 0;
    int nodes = 0;
    const auto walk = [&](const auto& self, ValueId x) -> bool {
      const Node* def = g_.def(x);
      if (!def || ++nodes > kDecoding || plan_.unit_of[g_.value(x).def] >= 0) return false;
      if (const Tensor* data = g_.constant(x)) {
        read += static_cast<double>(data->byte_size());
        return true;
      }
      return part_of(g_, *def) == Part::Inline && std::all_of(def->operands.begin(), def->operands.end(), [&](ValueId o) { return self(self, o); });
    };
    return g_.constant(v) == nullptr && walk(walk, v) && read * 2 < bytes({v});
  }

  // A contraction reads an element many times: it may read through nodes that only rename elements, nothing else. A
  // dot's right side is wanted with its free axis contiguous: its lanes run there.
  void store_contraction_operand(const Node& node, std::size_t k) {
    ValueId v = node.operands[k];
    if (decodes(v)) return;
    ValueId base = renamed(v);
    bool constant = g_.constant(base) != nullptr;
    if (node.op == GOp::Dot && k == 1 && !constant && !lanes_contiguous(node, v, base)) {
      store(v);
    } else if (!constant && !plan_.stored[base]) {
      store(base);
    }
  }

  bool lanes_contiguous(const Node& dot, ValueId v, ValueId base) const {
    const auto& contract = dot.attrs.ints(Attr::RhsContract);
    int last = g_.type(v).rank() - 1;
    if (last < 0) return true;
    std::int64_t axis = last;
    if (std::find(contract.begin(), contract.end(), axis) != contract.end()) {
      // Contracted along its last axis: fine only when there is no free axis to run lanes over.
      return g_.type(v).rank() <= static_cast<int>(contract.size() + dot.attrs.ints(Attr::RhsBatch).size());
    }
    // Follow the last axis down to the stored base; only a transpose can move it away from the end.
    for (ValueId at = v; at != base;) {
      const Node* def = g_.def(at);
      if (def->op == GOp::Transpose && def->attrs.ints(Attr::Axes).back() != g_.type(def->operands[0]).rank() - 1) {
        return false;
      }
      if (def->op == GOp::Slice && def->attrs.ints(Attr::Steps).back() != 1) return false;
      at = def->operands[0];
    }
    return true;
  }

  struct Through {
    int cost = 0;         // scalar operations to compute an element again
    double reads = 0;     // bytes of the stored values behind it
    double computed = 0;  // computed elements' worth; for the log
    int large = 0;        // stored values of about its own size behind it
    int pieces = 1;       // of the concatenations behind it: each is an expression of its own
  };

  // In topological order, so that what a value is made of is decided before the value.
  void weigh_the_rest() {
    std::vector<Through> through(g_.values().size());
    for (NodeId n = 0; n < static_cast<NodeId>(g_.nodes().size()); ++n) {
      const Node& node = g_.node(n);
      if (part_of(g_, node) != Part::Inline || plan_.unit_of[n] >= 0) continue;
      ValueId v = node.results[0];
      double own = likely_elements(g_.type(v).shape) * bits(g_.type(v).dtype) / 8;
      Through t;
      t.cost = scalar_cost(g_, node);
      t.pieces = 0;
      for (ValueId x : node.operands) {
        double size = likely_elements(g_.type(x).shape) * bits(g_.type(x).dtype) / 8;
        const int pieces = is_leaf(x) ? 1 : through[x].pieces;
        t.pieces = node.op == GOp::Concat ? t.pieces + pieces : std::max(t.pieces, pieces);
        if (is_leaf(x)) {
          t.reads += std::min(size, own);
          if (size * 2 >= own && size > 4096) ++t.large;
        } else {
          t.cost += through[x].cost;
          t.reads += std::min(through[x].reads, own);
          t.large += through[x].large;
        }
      }
      through[v] = t;
      if (!plan_.stored[v] && should_store(n, v, t, own)) store(v);
    }
  }

  bool is_leaf(ValueId v) const {
    return plan_.stored[v] || g_.value(v).def < 0 || plan_.unit_of[g_.value(v).def] >= 0;
  }

  // How often consumers walk over a value: a Rows unit walks over its row space once per reduction and once to write. What
  // is spread over more axes is not worth storing, but before that it may be.
  int passes(ValueId v) const {
    int count = 0;
    for (NodeId u : users_[v]) {
      int unit = plan_.unit_of[u];
      if (unit < 0 && g_.node(u).op == GOp::Broadcast && !plan_.stored[g_.node(u).results[0]]) {
        count += passes(g_.node(u).results[0]);
        continue;
      }
      bool row_space = unit >= 0 && plan_.units[unit].kind == UnitKind::Rows;
      count += row_space && plan_.units[unit].nodes.size() > 1 ? 2 : 1;
    }
    return count;
  }

  // How many scores of an attention are made with an element of v, which has as many: those of all rows and heads, where it is
  // a mask of keys.
  double scores_of_each(ValueId v, double elements) const {
    double most = 0;
    for (NodeId u : users_[v]) {
      const int unit = plan_.unit_of[u];
      const Node& user = g_.node(u);
      if (unit >= 0 && plan_.units[unit].kind == UnitKind::Attention && user.op != GOp::Dot) {
        most = std::max(most, likely_elements(g_.type(user.results[0]).shape) / elements);
      } else if (unit < 0 && user.op == GOp::Broadcast && !plan_.stored[user.results[0]]) {
        most = std::max(most, scores_of_each(user.results[0], elements));
      }
    }
    return most;
  }

  bool should_store(NodeId n, ValueId v, const Through& t, double own) {
    if (t.cost > kMaxBody / 4 || t.pieces > kMaxPieces) return true;
    if (t.cost > 0 && scores_of_each(v, std::max(1.0, likely_elements(g_.type(v).shape))) >= kManyScores) {
      log("fusion", fmt::format("{}: stored for attention", named(n)));
      return true;
    }
    int uses = passes(v);
    if (uses <= 1) return false;
    // Only renamed: never worth a copy.
    if (t.cost == 0 && t.large <= 1) return false;
    double through_bytes = uses * t.reads;
    double stored_bytes = t.reads + own * (1 + uses);
    bool keep = t.cost > kMaxRecompute || through_bytes > stored_bytes || t.large > 1;
    if (keep && own <= 256) keep = t.cost > 4 * kMaxRecompute;
    if (log_enabled("fusion")) {
      log("fusion", fmt::format("{}: {} (read through: {} bytes, {} ops; stored: {} bytes; {} passes)", named(n), keep ? "stored" : "read through", through_bytes,
                                t.cost * uses, stored_bytes, uses));
    }
    return keep;
  }

  const Graph& g_;
  const AttentionChooser& attention_;
  FusionPlan plan_;
  std::map<NodeId, DotSum> sum_of_;  // by each of its dots
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_output_;
  std::vector<bool> rounded_;  // by value: read by products, in fewer bits than it was made in
};

}  // namespace

FusionPlan plan_fusion(const Graph& graph, const AttentionChooser& attention) {
  return Planner(graph, attention).run();
}

}  // namespace weft::loop
