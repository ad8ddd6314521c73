#include "ops/composite.h"

namespace weft::ops {

std::vector<ValueId> composite(Builder& b, const std::string& name, const std::vector<ValueId>& operands,
                               const Body& body) {
  auto region = std::make_shared<graph::Graph>();
  region->name = name;
  region->facts = b.graph().facts;
  std::vector<ValueId> inputs;
  for (ValueId v : operands) inputs.push_back(region->add_input(b.type(v)));
  Builder inner(*region);
  inner.set_origin(b.origin());
  std::vector<ValueId> outputs = body(inner, inputs);
  if (auto status = inner.status(); !status.ok()) {
    b.fail(status.error());
    return std::vector<ValueId>(outputs.size(), -1);
  }
  region->set_outputs(outputs);
  return b.nodes(graph::Op::Composite, operands, graph::Attrs().set(graph::Attr::Name, name), {region});
}

ValueId composite1(Builder& b, const std::string& name, const std::vector<ValueId>& operands,
                   const std::function<ValueId(Builder& b, const std::vector<ValueId>& inputs)>& body) {
  auto results = composite(b, name, operands, [&](Builder& inner, const std::vector<ValueId>& inputs) {
    return std::vector<ValueId>{body(inner, inputs)};
  });
  return results.empty() ? -1 : results[0];
}

}  // namespace weft::ops
