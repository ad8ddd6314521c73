#include "frontend/onnx/reader/validate.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {
namespace {

// The names of one graph and, through `outer`, of the graphs around it. A name that a graph defines hides an outer
// one of that name everywhere in the graph, so that no reader can confuse the two.
struct Scope {
  struct Entry {
    const Node* producer = nullptr;  // null: an input or initializer
    bool defined = true;             // false until the walk over the nodes has passed the producer
  };
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, Entry> names;

  bool add(std::string_view name, const Node* producer = nullptr) {
    return names.emplace(name, Entry{producer, producer == nullptr}).second;
  }
};

struct FunctionKey {
  std::string_view domain, name, overload;
  bool operator<(const FunctionKey& o) const {
    return std::tie(domain, name, overload) < std::tie(o.domain, o.name, o.overload);
  }
};

std::string domain_name(std::string_view domain) { return domain.empty() ? "ai.onnx" : printable(domain); }

Result<void> check_opset(std::int64_t version) {
  if (version >= kOpsetMin && version <= kOpsetMax) return {};
  const std::string range = fmt::format("opset {} to {}", kOpsetMin, kOpsetMax);
  if (version <= 0) {
    return user_error("opset-unsupported", fmt::format("opset {} of ai.onnx does not exist", version)).expected(range);
  }
  return unsupported("opset-unsupported", fmt::format("opset {} of ai.onnx is newer than Weft reads", version))
      .expected(range)
      .found(fmt::format("{}", version))
      .suggest("convert the model with onnx.version_converter");
}

Result<void> check_ir_version(std::int64_t version) {
  if (version >= kIrVersionMin && version <= kIrVersionMax) return {};
  const std::string range = fmt::format("{} to {}", kIrVersionMin, kIrVersionMax);
  if (version <= 0) {
    return user_error("ir-version-missing", "the model has no IR version")
        .expected(range)
        .suggest("the file is damaged, or not an ONNX model");
  }
  return unsupported("ir-version-unsupported", fmt::format("IR version {} is {} than Weft reads", version,
                                                           version < kIrVersionMin ? "older" : "newer"))
      .expected(range)
      .found(fmt::format("{}", version));
}

Error duplicate(std::string_view name, const char* what) {
  return user_error("name-defined-twice", fmt::format("{} '{}' is defined twice", what, printable(name)));
}

class Validator {
 public:
  explicit Validator(const Model& model) : model_(model) {}

  Result<void> run() {
    WEFT_TRY(check_ir_version(model_.ir_version));
    WEFT_TRY(imports(model_.opset_imports, "the model"));
    if (!model_.graph) return user_error("graph-missing", "the model has no graph");
    WEFT_TRY(functions());
    for (const ValueInfo& input : model_.graph->inputs) WEFT_TRY(typed_input(input));
    imports_ = &model_.opset_imports;
    return graph(*model_.graph, nullptr);
  }

 private:
  Result<void> imports(const OpsetImports& imports, const std::string& whose) {
    if (imports.empty()) {
      return user_error("opset-import-missing", fmt::format("{} imports no operator set (opset_import)", whose));
    }
    const auto standard = imports.find("");
    if (standard != imports.end()) return check_opset(standard->second);
    return {};
  }

  Result<void> typed_input(const ValueInfo& input) {
    const Type::Kind kind = input.type.kind;
    const bool tensor = kind == Type::Kind::Tensor || kind == Type::Kind::SparseTensor;
    if (kind != Type::Kind::Unset && (!tensor || input.type.elem)) return {};
    for (const NamedTensor& initializer : model_.graph->initializers) {
      if (initializer.name == input.name) return {};
    }
    return user_error("input-without-type", "a graph input has no element type").at(printable(input.name));
  }

  Result<void> functions() {
    for (const Function& f : model_.functions) {
      if (f.name.empty()) return user_error("function-invalid", "a function has no name");
      const bool added = functions_.emplace(FunctionKey{f.domain, f.name, f.overload}, &f).second;
      if (!added) return duplicate(f.name, "function");
    }
    for (const Function& f : model_.functions) {
      Result<void> checked = function(f);
      if (!checked) return within(checked.error(), "function " + printable(f.name));
    }
    return acyclic();
  }

  Result<void> function(const Function& f) {
    WEFT_TRY(imports(f.opset_imports, "the function"));
    imports_ = &f.opset_imports;
    function_ = &f;
    attributes_.clear();
    for (const std::string& name : f.attributes) {
      if (!attributes_.insert(name).second) return duplicate(name, "attribute");
    }
    for (const Attribute& a : f.attribute_defaults) {
      if (!attributes_.insert(a.name).second) return duplicate(a.name, "attribute");
    }
    Scope scope;
    for (const std::string& name : f.inputs) {
      if (!scope.add(name)) return duplicate(name, "input");
    }
    WEFT_TRY(nodes(f.nodes, scope));
    for (const std::string& name : f.outputs) WEFT_TRY(output(name, scope));
    function_ = nullptr;
    return {};
  }

  // Functions may call each other, but not themselves, however indirectly. Depth-first, with a stack of our own:
  // chains may be as long as the list of functions.
  Result<void> acyclic() {
    enum : char { New, Open, Done };
    std::map<const Function*, char> states;
    for (const Function& start : model_.functions) {
      std::vector<const Function*> stack{&start};
      while (!stack.empty()) {
        const Function* f = stack.back();
        char& state = states[f];
        if (state != New) {
          state = Done;
          stack.pop_back();
          continue;
        }
        state = Open;
        for (const Function* callee : calls_[f]) {
          const char next = states[callee];
          if (next == Open) {
            return user_error("function-recursive", "a function calls itself").at("function " + printable(callee->name));
          }
          if (next == New) stack.push_back(callee);
        }
      }
    }
    return {};
  }

  Result<void> graph(const Graph& g, const Scope* outer) {
    Scope scope;
    scope.outer = outer;
    for (const ValueInfo& input : g.inputs) {
      if (input.name.empty()) return user_error("input-invalid", "a graph input has no name");
      if (!scope.add(input.name)) return duplicate(input.name, "input");
    }
    std::unordered_set<std::string_view> initializers;
    const auto initializer = [&](const std::string& name) -> Result<void> {
      if (name.empty()) return user_error("initializer-invalid", "an initializer has no name");
      if (!initializers.insert(name).second) return duplicate(name, "initializer");
      scope.add(name);  // may be an input too: its default
      return {};
    };
    for (const NamedTensor& t : g.initializers) WEFT_TRY(initializer(t.name));
    for (const SparseTensor& t : g.sparse_initializers) WEFT_TRY(initializer(t.name));
    WEFT_TRY(nodes(g.nodes, scope));
    for (const ValueInfo& out : g.outputs) WEFT_TRY(output(out.name, scope));
    return {};
  }

  Result<void> nodes(const std::vector<Node>& nodes, Scope& scope) {
    for (const Node& n : nodes) {
      for (const std::string& name : n.outputs) {
        if (name.empty() || scope.add(name, &n)) continue;
        return duplicate(name, "value").at(printable(n.label()));
      }
    }
    for (const Node& n : nodes) {
      Result<void> checked = node(n, scope);
      if (!checked) return within(checked.error(), printable(n.label()));
      for (const std::string& name : n.outputs) {
        if (!name.empty()) scope.names[name].defined = true;
      }
    }
    return {};
  }

  Result<void> node(const Node& n, const Scope& scope) {
    if (n.op_type.empty()) return user_error("node-invalid", "a node has no operator");
    WEFT_TRY(callee(n));
    for (const std::string& name : n.inputs) WEFT_TRY(use(name, scope));
    std::unordered_set<std::string_view> seen;
    for (const Attribute& a : n.attributes) {
      if (!seen.insert(a.name).second) return duplicate(a.name, "attribute");
      WEFT_TRY(attribute(a, scope));
    }
    return {};
  }

  // The node's domain must be imported; calls of the model's functions are noted.
  Result<void> callee(const Node& n) {
    const auto found = functions_.find(FunctionKey{n.domain, n.op_type, n.overload});
    if (found != functions_.end() && function_ != nullptr) calls_[function_].push_back(found->second);
    if (found != functions_.end() || imports_->count(n.domain) != 0) return {};
    return user_error("domain-not-imported", fmt::format("operator {} is of domain '{}', which is not imported",
                                                         printable(n.op_type), domain_name(n.domain)));
  }

  Result<void> attribute(const Attribute& a, const Scope& scope) {
    if (a.is_reference()) {
      if (function_ == nullptr) {
        return user_error("attribute-invalid", fmt::format("attribute '{}' refers to one of a function's, outside any "
                                                           "function", printable(a.name)));
      }
      if (attributes_.count(a.ref_attr_name) == 0) {
        return user_error("attribute-invalid", fmt::format("attribute '{}' refers to '{}', which the function does not "
                                                           "have", printable(a.name), printable(a.ref_attr_name)));
      }
    }
    if (const GraphPtr* g = a.as<GraphPtr>()) {
      return graph(**g, &scope);
    }
    if (const auto* graphs = a.as<std::vector<GraphPtr>>()) {
      for (const GraphPtr& g : *graphs) WEFT_TRY(graph(*g, &scope));
    }
    return {};
  }

  Result<void> use(const std::string& name, const Scope& scope) {
    if (name.empty()) return {};  // an omitted optional input
    for (const Scope* s = &scope; s != nullptr; s = s->outer) {
      const auto found = s->names.find(name);
      if (found == s->names.end()) continue;
      if (found->second.defined) return {};
      return user_error("graph-not-sorted", fmt::format("the value '{}' is used before it is produced, by {}",
                                                        printable(name), printable(found->second.producer->label())))
          .suggest("nodes must be sorted, without cycles");
    }
    return user_error("value-undefined", fmt::format("the value '{}' is not defined", printable(name)));
  }

  Result<void> output(const std::string& name, const Scope& scope) {
    if (name.empty()) return {};
    if (Result<void> used = use(name, scope); !used) return within(used.error(), "output " + printable(name));
    return {};
  }

  const Model& model_;
  std::map<FunctionKey, const Function*> functions_;
  std::map<const Function*, std::vector<const Function*>> calls_;  // looked up, never iterated
  const OpsetImports* imports_ = nullptr;                          // of the model, or the function being checked
  const Function* function_ = nullptr;                             // being checked
  std::unordered_set<std::string_view> attributes_;                // of that function
};

}  // namespace

Result<void> validate(const Model& model) { return Validator(model).run(); }

}  // namespace weft::onnx
