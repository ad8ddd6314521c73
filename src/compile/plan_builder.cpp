#include "compile/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/clock.h"
#include "compile/divide.h"
#include "compile/prepare.h"
#include "cost/cost.h"
#include "loop/lower/fuse.h"
#include "runtime/custom.h"
#include "schedule/choices.h"

namespace weft::compiler {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using loop::Step;
using runtime::Plan;
using runtime::Slot;
using runtime::SlotId;
using GOp = graph::Op;

Result<Tensor> ConstantStore::prepared(const Tensor& data, const std::vector<std::int64_t>& shape,
                                       const loop::StorageMap& map) {
  const Tensor::Deferred* elsewhere = data.deferred();
  std::string key = fmt::format("{} {} {} {} {} {}", elsewhere ? static_cast<const void*>(elsewhere->data) : data.data(),
                                name(data.dtype()), shape_str(shape), map.panel_axis, map.panel, map.inner);
  if (elsewhere) key += shape_str(elsewhere->shape) + shape_str(elsewhere->strides);
  for (int axis : map.order) key += fmt::format(" {}", axis);
  if (auto it = done_.find(key); it != done_.end()) return it->second;
  Tensor made = WEFT_TRY(prepare_constant(data, shape, map, jobs_));
  return done_[key] = made;
}

namespace {

class PlanBuilder {
 public:
  PlanBuilder(std::shared_ptr<const Graph> graph, PlanContext& context)
      : graph_(std::move(graph)), g_(*graph_), context_(context), plan_(std::make_shared<Plan>()) {}

  Result<std::shared_ptr<Plan>> run() {
    {
      Clock clock(context_.report.lower_ms);
      const KernelSet& leading = context_.device ? *context_.device : *context_.here;
      partition_ = WEFT_TRY(loop::lower(g_, schedule::lowering_choices(leading.machine())));
    }
    plan_->name = g_.name;
    plan_->facts = g_.facts;
    slots_.assign(g_.values().size(), -1);
    collect_late_symbols();
    for (std::size_t i = 0; i < g_.inputs().size(); ++i) add_input(i);
    for (std::size_t i = 0; i < g_.outputs().size(); ++i) claim_output(i);
    WEFT_TRY(add_groups());
    for (const Step& step : partition_.steps) {
      WEFT_TRY(step.kind == Step::Kind::Kernel ? add_launch(step) : add_node_step(g_.node(step.node), step.node));
    }
    WEFT_TRY(finish_outputs());
    add_requirements();
    context_.plans.push_back(plan_);
    return plan_;
  }

 private:
  // ---- slots ----

  // Sizes that steps bind while they run; a branch or loop binds those of its results that its regions bind.
  void collect_late_symbols() {
    for (const Node& node : g_.nodes()) {
      for (const std::string& symbol : graph::bound_symbols(node)) late_.insert(symbol);
      std::set<std::string> inside;
      for (const auto& region : node.regions) collect_bound(*region, inside);
      for (ValueId v : inside.empty() ? std::vector<ValueId>() : node.results) {
        for (const Dim& d : g_.type(v).shape) {
          for (const std::string& symbol : d.symbols()) {
            if (inside.count(symbol)) late_.insert(symbol);
          }
        }
      }
    }
  }

  static void collect_bound(const Graph& g, std::set<std::string>& into) {
    for (const Node& node : g.nodes()) {
      for (const std::string& symbol : graph::bound_symbols(node)) into.insert(symbol);
      for (const auto& region : node.regions) collect_bound(*region, into);
    }
  }

  bool is_late(const Shape& shape) const {
    for (const Dim& d : shape) {
      for (const std::string& s : d.symbols()) {
        if (late_.count(s)) return true;
      }
    }
    return false;
  }

  SlotId add_slot(Slot slot) {
    plan_->slots.push_back(std::move(slot));
    return static_cast<SlotId>(plan_->slots.size() - 1);
  }

  Slot slot_for(ValueId v, Slot::Kind kind, int index = 0) const {
    Slot slot;
    slot.kind = kind;
    slot.index = index;
    slot.dtype = g_.type(v).dtype;
    slot.shape = g_.type(v).shape;
    slot.name = g_.value(v).name;
    return slot;
  }

  void add_input(std::size_t i) {
    ValueId v = g_.inputs()[i];
    slots_[v] = add_slot(slot_for(v, Slot::Kind::Input, static_cast<int>(i)));
    plan_->inputs.push_back(slots_[v]);
    plan_->input_names.push_back(g_.value(v).name.empty() ? fmt::format("input_{}", i) : g_.value(v).name);
  }

  // An output that a step makes is written straight into the caller's memory; others are copied at the end.
  void claim_output(std::size_t i) {
    ValueId v = g_.outputs()[i];
    SlotId s = add_slot(slot_for(v, Slot::Kind::Output, static_cast<int>(i)));
    plan_->outputs.push_back(s);
    plan_->output_names.push_back(g_.value(v).name.empty() ? fmt::format("output_{}", i) : g_.value(v).name);
    if (slots_[v] < 0 && !g_.constant(v)) slots_[v] = s;
  }

  Result<void> finish_outputs() {
    for (std::size_t i = 0; i < g_.outputs().size(); ++i) {
      SlotId from = slot_of(g_.outputs()[i]), to = plan_->outputs[i];
      if (from != to) plan_->steps.push_back(runtime::CopyStep{from, to});
    }
    return {};
  }

  SlotId constant_slot(const Tensor& data, Slot slot) {
    slot.kind = Slot::Kind::Constant;
    slot.index = static_cast<std::int32_t>(plan_->constants.size());
    plan_->constants.push_back(data);
    return add_slot(std::move(slot));
  }

  SlotId slot_of(ValueId v) {
    if (slots_[v] >= 0) return slots_[v];
    if (const Tensor* data = g_.constant(v)) return slots_[v] = constant_slot(*data, slot_for(v, Slot::Kind::Constant));
    if (ValueId base = partition_.alias[v]; base != v) {
      SlotId b = slot_of(base);
      return slots_[v] = add_slot(slot_for(v, Slot::Kind::Alias, b));
    }
    const Node* def = g_.def(v);
    bool host = def && loop::part_of(g_, *def) == loop::Part::Step && info(def->op).family != graph::Family::Control;
    bool dynamic = host || is_late(g_.type(v).shape) || is_string(g_.type(v).dtype);
    return slots_[v] = add_slot(slot_for(v, dynamic ? Slot::Kind::Dynamic : Slot::Kind::Temp));
  }

  std::vector<SlotId> slots_of(const std::vector<ValueId>& values, std::size_t begin = 0,
                               std::size_t count = SIZE_MAX) {
    std::vector<SlotId> result;
    for (std::size_t k = begin; k < values.size() && k - begin < count; ++k) result.push_back(slot_of(values[k]));
    return result;
  }

  // ---- kernels ----

  Result<void> add_groups() {
    std::vector<const loop::Group*> groups;
    for (const Step& step : partition_.steps) {
      if (step.kind == Step::Kind::Kernel) groups.push_back(&step.group);
    }
    if (context_.device && context_.here) {
      division_ = WEFT_TRY(divide(g_, partition_, groups, *context_.here, *context_.device, context_.options));
      plan_->placement = division_.summary;
    } else {
      division_.on_device.assign(groups.size(), context_.device != nullptr);
    }
    std::vector<const loop::Group*> here, there;
    for (std::size_t k = 0; k < groups.size(); ++k) (division_.on_device[k] ? there : here).push_back(groups[k]);
    if (context_.here) WEFT_TRY(context_.here->add(here, g_.facts));
    if (context_.device) WEFT_TRY(context_.device->add(there, g_.facts));
    return {};
  }

  Result<void> add_launch(const Step& step) {
    const std::size_t group = launches_++;
    runtime::Launch launch;
    launch.on_device = division_.on_device[group];
    const ReadyGroup& ready = (launch.on_device ? context_.device : context_.here)->ready(step.group);
    ++context_.report.loops;
    ++context_.report.kernels;
    launch.checks = step.group.checks;
    for (std::size_t v = 0; v < ready.variants.size(); ++v) {
      const ReadyGroup::Variant& from = ready.variants[v];
      runtime::LaunchVariant variant;
      variant.kernel = from.kernel;
      variant.sizes = from.sizes;
      variant.grid = from.grid;
      if (const auto& guard = ready.schedule.variants[v].guard) {
        variant.guarded = true;
        variant.guard = guard->size;
        variant.lo = guard->lo;
        variant.hi = guard->hi;
      }
      launch.variants.push_back(std::move(variant));
    }
    for (loop::ParamId p : ready.variants[0].buffers) {
      launch.buffers.push_back(WEFT_TRY(buffer_slot(step, p, ready.schedule.variants[0].record)));
    }
    const auto& buffers = ready.variants[0].buffers;
    auto number = [&](loop::ParamId p) {
      return static_cast<std::int32_t>(std::find(buffers.begin(), buffers.end(), p) - buffers.begin());
    };
    for (const InPlacePair& pair : ready.in_place) launch.in_place.push_back({number(pair.output), number(pair.input)});
    launch.info = static_cast<std::int32_t>(plan_->infos.size());
    plan_->infos.push_back(describe(step, ready));
    if (!division_.why.empty()) {
      plan_->infos.back().place = launch.on_device ? "device" : "cpu";
      plan_->infos.back().place_why = division_.why[group];
    }
    plan_->steps.push_back(std::move(launch));
    return {};
  }

  SlotId scratch_slot(int number) {
    auto [it, fresh] = scratch_.try_emplace(number, -1);
    if (!fresh) return it->second;
    const loop::Scratch& scratch = partition_.scratch[number];
    Slot slot;
    slot.kind = is_late(scratch.shape) ? Slot::Kind::Dynamic : Slot::Kind::Temp;
    slot.dtype = scratch.dtype;
    slot.shape = scratch.shape;
    return it->second = add_slot(std::move(slot));
  }

  Result<SlotId> buffer_slot(const Step& step, loop::ParamId p, const schedule::Record& record) {
    ValueId v = step.args[p];
    if (loop::is_scratch(v)) return scratch_slot(loop::scratch_number(v));
    const loop::Param& param = step.group.params[p];
    loop::StorageMap map = record.maps.empty() ? loop::StorageMap{} : record.maps[p];
    const Tensor* data = g_.constant(v);
    if (!data || map == loop::StorageMap{}) return slot_of(v);
    Tensor made = WEFT_TRY(context_.constants.prepared(*data, *static_sizes(param.shape), map));
    Slot slot = slot_for(v, Slot::Kind::Constant);
    slot.shape = {Dim(made.size())};
    return constant_slot(made, std::move(slot));
  }

  runtime::KernelInfo describe(const Step& step, const ReadyGroup& ready) const {
    runtime::KernelInfo info;
    info.name = step.group.name;
    info.origins = step.group.origins;
    info.schedule = ready.schedule.why;
    cost::GroupCost cost = cost::group_cost(step.group);
    info.bytes_compulsory = cost.bytes_compulsory;
    info.bytes_moved = cost.bytes_moved;
    info.flops = cost.flops;
    return info;
  }

  // ---- host ops and control flow ----

  Result<void> add_node_step(const Node& node, NodeId id) {
    switch (node.op) {
      case GOp::If:
        return add_branch(node);
      case GOp::Loop:
        return add_loop(node);
      case GOp::Scan:
        return add_scan(node);
      default:
        return add_host(node, id);
    }
  }

  Result<void> add_host(const Node& node, NodeId id) {
    if (node.op == GOp::CustomCall && !runtime::find_custom_op(node.attrs.str(graph::Attr::Name))) {
      return unsupported("custom-call", "no kernel is registered as '" + node.attrs.str(graph::Attr::Name) + "'")
          .at(node.origin ? node.origin->node : "custom_call");
    }
    runtime::HostCall call;
    call.op = info(node.op).name;
    call.origin = origin_of(node);
    call.call = [graph = graph_, id](const std::vector<Tensor>& operands, Bindings& bindings) {
      return graph::interpret_node(*graph, graph->node(id), operands, bindings);
    };
    call.inputs = slots_of(node.operands);
    call.outputs = slots_of(node.results);
    ++context_.report.host_steps;
    plan_->steps.push_back(std::move(call));
    return {};
  }

  Result<void> add_branch(const Node& node) {
    runtime::BranchStep step;
    step.condition = slot_of(node.operands[0]);
    step.inputs = slots_of(node.operands, 1);
    step.outputs = slots_of(node.results);
    step.then_plan = WEFT_TRY(build_plan(node.regions[0], context_));
    step.else_plan = WEFT_TRY(build_plan(node.regions[1], context_));
    step.origin = origin_of(node);
    plan_->steps.push_back(std::move(step));
    return {};
  }

  Result<void> add_loop(const Node& node) {
    runtime::LoopStep step;
    std::size_t carried = node.attrs.integer(Attr::Carried);
    step.trip_count = slot_of(node.operands[0]);
    step.condition = slot_of(node.operands[1]);
    step.carried = slots_of(node.operands, 2, carried);
    step.captures = slots_of(node.operands, 2 + carried);
    step.carried_out = slots_of(node.results, 0, carried);
    step.stacked_out = slots_of(node.results, carried);
    step.body = WEFT_TRY(build_plan(node.regions[0], context_));
    step.origin = origin_of(node);
    plan_->steps.push_back(std::move(step));
    return {};
  }

  Result<void> add_scan(const Node& node) {
    runtime::ScanStep step;
    std::size_t carried = node.attrs.integer(Attr::Carried), xs = node.attrs.integer(Attr::Xs);
    step.carried = slots_of(node.operands, 0, carried);
    step.xs = slots_of(node.operands, carried, xs);
    step.captures = slots_of(node.operands, carried + xs);
    step.carried_out = slots_of(node.results, 0, carried);
    step.ys = slots_of(node.results, carried);
    step.origin = origin_of(node);
    if (xs == 0) return unsupported("unsupported-op", "a scan over nothing").at(step.origin);
    auto is_sliceable = [&](ValueId v) { return !is_string(g_.type(v).dtype) && bits(g_.type(v).dtype) % 8 == 0; };
    std::vector<ValueId> sliced(node.operands.begin(), node.operands.begin() + static_cast<std::ptrdiff_t>(carried + xs));
    sliced.insert(sliced.end(), node.results.begin(), node.results.end());
    for (ValueId v : sliced) {
      if (is_sliceable(v)) continue;
      return unsupported("unsupported-dtype", "a scan of strings or of elements narrower than a byte").at(step.origin);
    }
    step.length = g_.type(node.operands[carried]).shape[0];
    for (std::size_t x = 1; x < xs; ++x) {
      require_equal(step.length, g_.type(node.operands[carried + x]).shape[0], step.origin);
    }
    step.body = WEFT_TRY(build_plan(node.regions[0], context_));
    plan_->steps.push_back(std::move(step));
    return {};
  }

  // A reshape whose element counts are not provably equal must be right when the sizes are known.
  void add_requirements() {
    for (const Node& node : g_.nodes()) {
      if (node.op != GOp::Reshape) continue;
      require_equal(product(g_.type(node.operands[0]).shape), product(g_.type(node.results[0]).shape), origin_of(node));
    }
  }

  void require_equal(const Dim& a, const Dim& b, const std::string& origin) {
    if (!g_.facts.known_equal(a, b)) plan_->requirements.push_back({a, b, origin});
  }

  static std::string origin_of(const Node& node) { return node.origin ? node.origin->node : info(node.op).name; }

  std::shared_ptr<const Graph> graph_;
  const Graph& g_;
  PlanContext& context_;
  std::shared_ptr<Plan> plan_;
  loop::Partition partition_;
  Division division_;
  std::size_t launches_ = 0;
  std::vector<SlotId> slots_;
  std::map<int, SlotId> scratch_;
  std::set<std::string> late_;
};

}  // namespace

Result<std::shared_ptr<Plan>> build_plan(const std::shared_ptr<const Graph>& graph, PlanContext& context) {
  return PlanBuilder(graph, context).run();
}

}  // namespace weft::compiler
