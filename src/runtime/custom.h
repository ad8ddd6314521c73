// Operators that users compute with kernels of their own, by name ("domain::Op"). What a graph's custom_call names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/tensor.h"

namespace weft::runtime {

struct CustomOp {
  std::string name;
  struct Type {
    DType dtype = DType::F32;
    Shape shape;
  };
  // Of the results, from those of the operands; sizes may be symbols of the operands' shapes.
  std::function<Result<std::vector<Type>>(const std::vector<Type>& operands)> infer;
  // Fills the results, which are there with their shapes. From many threads at once.
  std::function<Result<void>(const std::vector<Tensor>& operands, std::vector<Tensor>& results)> run;
};

// A name that is taken is an error: programs may be using it.
Result<void> register_custom_op(CustomOp op);
std::shared_ptr<const CustomOp> find_custom_op(const std::string& name);  // null: there is none

// The results of a call, of the given types at the bound sizes. Unsupported where nothing of the name is registered.
Result<std::vector<Tensor>> call_custom_op(const std::string& name, const std::vector<CustomOp::Type>& types,
                                           const std::vector<Tensor>& operands, const Bindings& bindings);

}  // namespace weft::runtime
