#include "runtime/custom.h"

#include <map>
#include <mutex>

namespace weft::runtime {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const CustomOp>> ops;
};

Registry& registry() {
  static Registry* const all = new Registry;  // outlives what still runs when the process ends
  return *all;
}

}  // namespace

Result<void> register_custom_op(CustomOp op) {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  const std::string name = op.name;
  if (r.ops.emplace(name, std::make_shared<const CustomOp>(std::move(op))).second) return {};
  return user_error("custom-op-exists", "an operator of this name is registered").at(name);
}

std::shared_ptr<const CustomOp> find_custom_op(const std::string& name) {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  const auto found = r.ops.find(name);
  return found == r.ops.end() ? nullptr : found->second;
}

Result<std::vector<Tensor>> call_custom_op(const std::string& name, const std::vector<CustomOp::Type>& types,
                                           const std::vector<Tensor>& operands, const Bindings& bindings) {
  const auto op = find_custom_op(name);
  if (!op) return unsupported("custom-call", "no kernel is registered as '" + name + "'");
  std::vector<Tensor> results;
  for (const CustomOp::Type& type : types)
    results.push_back(WEFT_TRY(Tensor::empty(type.dtype, WEFT_TRY(evaluate(type.shape, bindings)))));
  WEFT_TRY(op->run(operands, results));
  return results;
}

}  // namespace weft::runtime
