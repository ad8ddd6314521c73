#include "frontend/onnx/import/importer.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/reader/validate.h"
#include "graph/limits.h"

namespace weft::onnx {

namespace {

// Symbols are identifiers: anything else in a dim_param becomes '_'.
std::string identifier(std::string_view text) {
  std::string s;
  for (char c : text) s += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) s.insert(s.begin(), 'd');
  return s;
}

bool has_name(const DimSpec& spec) {
  return std::any_of(spec.param.begin(), spec.param.end(), [](unsigned char c) { return std::isalnum(c); });
}

std::string op_label(const Node& node, std::int64_t opset) {
  std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  return fmt::format("{}.{} (opset {})", domain, node.op_type, opset);
}

}  // namespace

std::string size_name(const DimSpec& spec, const std::string& input, std::size_t axis) {
  return has_name(spec) ? spec.param : fmt::format("{}_{}", input, axis);
}

ValueId Scope::find(std::string_view name) const {
  for (const Scope* s = this; s; s = s->outer) {
    if (auto it = s->values.find(name); it != s->values.end()) return it->second;
  }
  return -1;
}

const Sequence* Scope::find_sequence(std::string_view name) const {
  for (const Scope* s = this; s; s = s->outer) {
    if (auto it = s->sequences.find(name); it != s->sequences.end()) return &it->second;
    if (s->values.count(name)) return nullptr;
  }
  return nullptr;
}

Dim Importer::fresh_symbol(std::string_view hint, SymbolRange range) {
  std::string base = identifier(hint);
  std::string name = base;
  for (int k = 0; !symbol_names_.insert(name).second; ++k) name = fmt::format("{}_{}", base, k);
  target_->graph.facts.declare(name, range);
  return Dim::symbol(name);
}

void Importer::add_gap(const std::string& op, const std::string& reason, const std::string& node) {
  const auto [it, fresh] = gap_of_.emplace(std::pair(op, reason), gaps_.size());
  if (fresh) gaps_.push_back({op, reason, {}});
  gaps_[it->second].nodes.push_back(node);
}

Dim Importer::dimension(const DimSpec& spec, const std::string& input, std::size_t axis) {
  if (spec.value) return *spec.value;
  bool named = has_name(spec);
  std::string key = size_name(spec, input, axis);
  if (auto it = options_.fixed.find(key); it != options_.fixed.end()) return it->second;
  if (auto it = symbols_.find(key); it != symbols_.end() && named) return it->second;
  SymbolRange range;
  if (auto it = options_.ranges.find(key); it != options_.ranges.end()) range = it->second;
  return symbols_[key] = fresh_symbol(key, range);
}

Result<graph::Type> Importer::input_type(const ValueInfo& info) {
  if (info.type.kind != Type::Kind::Tensor || !info.type.elem) {
    return unsupported("unsupported-type", "only tensors can be inputs").at(info.name);
  }
  if (!info.type.shape) return unsupported("unknown-rank", "an input without a declared rank").at(info.name);
  graph::Type type{*info.type.elem, {}};
  for (std::size_t d = 0; d < info.type.shape->size(); ++d) {
    const DimSpec& spec = (*info.type.shape)[d];
    if (spec.value && *spec.value < 0) {
      return user_error("invalid-shape", fmt::format("dimension {} is negative", d)).at(info.name);
    }
    type.shape.push_back(dimension(spec, info.name, d));
  }
  if (!graph::fits_memory(type)) {
    return user_error("size-overflow", "an input would be larger than memory can be").at(info.name).found(str(type));
  }
  return type;
}

Result<void> Importer::declare_inputs(const Graph& graph) {
  std::set<std::string> initialised;
  for (const NamedTensor& t : graph.initializers) initialised.insert(t.name);
  for (const ValueInfo& info : graph.inputs) {
    if (auto known = options_.known.find(info.name); known != options_.known.end()) {
      scope_->values[info.name] = target_->builder.constant(known->second);
      continue;
    }
    if (initialised.count(info.name) && !options_.given.count(info.name)) continue;  // the default is a constant
    auto type = input_type(info);
    if (!type.ok()) {
      if (type.error().kind() != ErrorKind::Unsupported) return type.error();
      add_gap("input", type.error().message(), info.name);
      poisoned_.insert(info.name);
      continue;
    }
    scope_->values[info.name] = target_->graph.add_input(*type, info.name);
  }
  return {};
}

Result<void> Importer::add_initializers(const Graph& graph) {
  for (const NamedTensor& t : graph.initializers) {
    if (scope_->values.count(t.name)) continue;  // an input whose known value takes the place of its default
    ValueId v = target_->builder.constant(t.tensor);
    target_->graph.set_name(v, t.name);
    scope_->values[t.name] = v;
  }
  for (const SparseTensor& s : graph.sparse_initializers) {
    add_gap("sparse initializer", "sparse tensors", s.name);
    poisoned_.insert(s.name);
  }
  return target_->builder.status();
}

Result<Imported> Importer::run() {
  WEFT_TRY(functions_.check_inlining(model_));
  Target target;
  Scope scope;
  target_ = &target;
  scope_ = &scope;
  target.graph.name = identifier(model_.graph->name);
  WEFT_TRY(declare_inputs(*model_.graph));
  WEFT_TRY(add_initializers(*model_.graph));
  WEFT_TRY(import_nodes(model_.graph->nodes, model_.opset_imports));
  Imported result;
  std::vector<ValueId> outputs;
  for (const ValueInfo& info : model_.graph->outputs) {
    ValueId v = scope.find(info.name);
    if (scope.find_sequence(info.name)) add_gap("output", "only tensors can be outputs", info.name);
    if (v < 0) continue;  // poisoned: a gap says why
    outputs.push_back(v);
    result.output_names.push_back(info.name);
  }
  if (!gaps_.empty()) {
    std::string list;
    for (const Gap& gap : gaps_) {
      list += fmt::format("\n  {}: {} ({} node{}: {}{})", gap.op, gap.reason, gap.nodes.size(),
                          gap.nodes.size() == 1 ? "" : "s", gap.nodes.front(), gap.nodes.size() > 1 ? ", ..." : "");
    }
    return unsupported("unsupported-model", "this model needs what is missing here:" + list);
  }
  target.graph.set_outputs(outputs);
  for (const ValueId v : target.graph.inputs()) result.input_names.push_back(target.graph.value(v).name);
  result.graph = std::move(target.graph);
  return result;
}

Result<void> Importer::import_nodes(const std::vector<Node>& nodes, const OpsetImports& opsets) {
  const OpsetImports* before = opsets_;
  opsets_ = &opsets;
  for (const Node& node : nodes) WEFT_TRY(import_node(node, opsets));
  opsets_ = before;
  return {};
}

void Importer::poison(const Node& node) {
  for (const std::string& name : node.outputs) poisoned_.insert(name);
}

// A node that follows from something missing cannot be judged: it is passed over, except for what is plain to see.
bool Importer::poison_if_needed(const Node& node) {
  bool needed = std::any_of(node.inputs.begin(), node.inputs.end(),
                            [&](const std::string& name) { return !name.empty() && !is_defined(name); });
  if (needed) poison(node);
  return needed;
}

Result<void> Importer::import_node(const Node& node, const OpsetImports& opsets) {
  if (const Function* function = functions_.find(node)) {
    if (poison_if_needed(node)) return {};
    return call_function(node, *function);
  }
  auto version = opsets.find(node.domain);
  std::int64_t opset = version == opsets.end() ? 0 : version->second;
  const OpEntry* entry = find_op(node.domain, node.op_type, opset);
  if (!entry) {
    if (const auto custom = runtime::find_custom_op(node.domain + "::" + node.op_type)) return import_custom(node, *custom);
    bool other = knows_op(node.domain, node.op_type);
    add_gap(op_label(node, opset), other ? "this operator at this opset" : "this operator", node.label());
    poison(node);
    return {};
  }
  std::string handled = fmt::format(" {} ", entry->attributes);
  for (const Attribute& a : node.attributes) {
    if (opset < 6 && a.name == "consumed_inputs") continue;  // a hint on memory, of all old operators
    if (handled.find(fmt::format(" {} ", a.name)) == std::string::npos) {
      add_gap(op_label(node, opset), fmt::format("attribute '{}'", a.name), node.label());
      poison(node);
      return {};
    }
  }
  if (poison_if_needed(node)) return {};
  const auto is_sequence = [&](const std::string& name) { return scope_->find_sequence(name) != nullptr; };
  if (!entry->takes_sequences && std::any_of(node.inputs.begin(), node.inputs.end(), is_sequence)) {
    add_gap(op_label(node, opset), "a sequence or optional value as its input", node.label());
    poison(node);
    return {};
  }
  auto done = convert(node, *entry, opset);
  if (!done.ok() && done.error().kind() == ErrorKind::Unsupported) {
    add_gap(op_label(node, opset), done.error().message(), node.label());
    poison(node);
    return {};
  }
  return done;
}

// An operator that the program's user registered a kernel for.
Result<void> Importer::import_custom(const Node& node, const runtime::CustomOp& op) {
  if (poison_if_needed(node)) return {};
  const auto refuse = [&](const std::string& reason) -> Result<void> {
    add_gap(op.name, reason, node.label());
    poison(node);
    return {};
  };
  if (!node.attributes.empty()) return refuse(fmt::format("attribute '{}' of an operator with a kernel of its own", node.attributes[0].name));
  std::vector<ValueId> operands;
  std::vector<runtime::CustomOp::Type> types;
  for (const std::string& name : node.inputs) {
    const ValueId v = name.empty() ? -1 : scope_->find(name);
    if (v < 0) return refuse("an input that is left out, or no tensor");
    operands.push_back(v);
    types.push_back({target_->graph.type(v).dtype, target_->graph.type(v).shape});
  }
  const auto results = WEFT_TRY(op.infer(types));
  if (results.size() != node.outputs.size()) {
    return user_error("custom-op", "the operator has another number of results")
        .at(node.label())
        .expected(std::to_string(results.size()))
        .found(std::to_string(node.outputs.size()));
  }
  std::string listed;
  for (const auto& type : results) listed += (listed.empty() ? "" : "; ") + graph::str(graph::Type{type.dtype, type.shape});
  graph::Attrs attrs;
  attrs.set(graph::Attr::Name, op.name).set(graph::Attr::Types, listed);
  auto origin = std::make_shared<graph::Origin>();
  origin->node = node.label();
  origin->op = node.op_type;
  const graph::NodeId id = WEFT_TRY(target_->graph.add_node(graph::Op::CustomCall, std::move(operands), std::move(attrs), {}, std::move(origin)));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) scope_->values[node.outputs[i]] = target_->graph.node(id).results[i];
  }
  return {};
}

Result<void> Importer::convert(const Node& node, const OpEntry& entry, std::int64_t opset) {
  graph::Builder builder(target_->graph);
  builder.set_folding(true);
  auto origin = std::make_shared<graph::Origin>();
  origin->node = node.label();
  origin->op = node.op_type;
  builder.set_origin(std::move(origin));
  NodeContext context(*this, node, builder, opset);
  int count = context.input_count();
  while (count > 0 && node.inputs[count - 1].empty()) --count;
  for (int i = 0; i < entry.min_inputs; ++i) {
    if (!context.has(i)) return context.bad(fmt::format("input {} is required", i));
  }
  if (entry.max_inputs >= 0 && count > entry.max_inputs) {
    return context.bad("too many inputs").expected(fmt::format("at most {}", entry.max_inputs)).found(std::to_string(count));
  }
  WEFT_TRY(entry.convert(context));
  WEFT_TRY(builder.status());
  for (int i = 0; i < context.output_count(); ++i) {
    if (context.wants(i) && !is_defined(node.outputs[i])) return context.missing(fmt::format("output {}", i));
  }
  return {};
}

Result<void> Importer::call_function(const Node& node, const Function& function) {
  if (++depth_ > kMaxDepth) return user_error("too-deep", "functions are nested too deeply").at(node.label());
  Scope inner;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    if (i >= node.inputs.size() || node.inputs[i].empty()) continue;
    if (const Sequence* sequence = scope_->find_sequence(node.inputs[i])) {
      inner.sequences[function.inputs[i]] = *sequence;
    } else {
      inner.values[function.inputs[i]] = scope_->find(node.inputs[i]);
    }
  }
  // Attribute references take the caller's value, or the function's default; neither: the attribute is left out.
  std::vector<Node> body;
  for (Node n : function.nodes) {
    std::vector<Attribute> resolved;
    for (Attribute& a : n.attributes) {
      if (!a.is_reference()) {
        resolved.push_back(std::move(a));
        continue;
      }
      const Attribute* given = node.find_attribute(a.ref_attr_name);
      if (!given) {
        for (const Attribute& d : function.attribute_defaults) given = d.name == a.ref_attr_name ? &d : given;
      }
      if (!given) continue;
      Attribute copy = *given;
      copy.name = a.name;
      resolved.push_back(std::move(copy));
    }
    n.attributes = std::move(resolved);
    // An input of the function that the caller leaves out is left out inside, too.
    for (std::string& name : n.inputs) {
      bool parameter = std::find(function.inputs.begin(), function.inputs.end(), name) != function.inputs.end();
      if (parameter && inner.find(name) < 0 && !inner.find_sequence(name)) name.clear();
    }
    body.push_back(std::move(n));
  }
  Scope* outer = scope_;
  scope_ = &inner;
  auto done = import_nodes(body, function.opset_imports);
  scope_ = outer;
  --depth_;
  WEFT_TRY(std::move(done));
  for (std::size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const ValueId v = inner.find(function.outputs[i]);
    const Sequence* sequence = inner.find_sequence(function.outputs[i]);
    if (v >= 0) scope_->values[node.outputs[i]] = v;
    if (sequence) scope_->sequences[node.outputs[i]] = *sequence;
  }
  return {};
}

Result<Imported> import_model(const Model& model, const ImportOptions& options) {
  return Importer(model, options).run();
}

Result<std::vector<Gap>> find_gaps(const Model& model, const ImportOptions& options) {
  Importer importer(model, options);
  auto imported = importer.run();
  if (!imported.ok() && importer.gaps().empty()) return imported.error();
  return importer.gaps();
}

}  // namespace weft::onnx
