// Kernels as operators of models.
#include "api/state.h"
#include "api/tile/launch.h"
#include "runtime/custom.h"

namespace weft::tile {

Result<void> register_op(const CustomOp& op, const CompileOptions& options) {
  return at_the_edge([&]() -> Result<void> {
    if (!op.results || !op.launch) {
      return user_error("custom-op", "an operator needs to know its results and how to launch its kernel").at(op.name);
    }
    const CompiledKernel compiled = WEFT_TRY(op.kernel.compile(options));
    runtime::CustomOp registered;
    registered.name = op.domain + "::" + op.name;
    registered.infer = [results = op.results](const std::vector<runtime::CustomOp::Type>& operands) {
      return at_the_edge([&]() -> Result<std::vector<runtime::CustomOp::Type>> {
        std::vector<Port> inputs;
        for (const auto& type : operands) inputs.push_back({"", type.dtype, type.shape});
        std::vector<runtime::CustomOp::Type> types;
        for (const Port& port : results(inputs)) types.push_back({port.dtype, port.shape});
        return types;
      });
    };
    registered.run = [compiled, launch = op.launch](const std::vector<Tensor>& operands, std::vector<Tensor>& results) {
      return at_the_edge([&]() -> Result<void> {
        const CustomOp::Launch how = launch(operands, results);
        Arguments arguments(operands.begin(), operands.end());
        arguments.insert(arguments.end(), results.begin(), results.end());
        arguments.insert(arguments.end(), how.numbers.begin(), how.numbers.end());
        return compiled.run(how.grid, arguments);
      });
    };
    return runtime::register_custom_op(std::move(registered));
  });
}

}  // namespace weft::tile
