// Branches and loops of a plan: their bodies are plans that run inside the same run's options and bindings.
#include <cstring>

#include "runtime/run.h"

namespace weft::runtime {

Result<void> Run::run_body(const Executable& body, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  RunOptions options = options_;
  options.step_seconds = nullptr;
  return Run(body, inputs, outputs, options, bindings()).execute();
}

// Symbols in the slot's shape that nothing has bound yet take the sizes of its value.
void Run::bind_sizes(SlotId slot, const Tensor& value) {
  const Shape& shape = plan_.slots[slot].shape;
  for (std::size_t d = 0; d < shape.size() && d < value.shape().size(); ++d) {
    auto symbol = shape[d].as_symbol();
    if (!symbol || bindings().count(*symbol)) continue;
    if (!has_late_) {
      late_ = layout_->bindings;
      has_late_ = true;
    }
    late_[*symbol] = value.shape()[d];
  }
}

Result<void> Run::branch(const BranchStep& step, std::size_t k) {
  Tensor condition = WEFT_TRY(tensor(step.condition));
  const auto& bodies = executable_.state_->bodies[k];
  const Executable& body = *bodies[condition.i64(0) != 0 ? 0 : 1];
  std::vector<Tensor> inputs, outputs;
  for (SlotId s : step.inputs) inputs.push_back(WEFT_TRY(tensor(s)));
  for (SlotId s : step.outputs) outputs.push_back(WEFT_TRY(target(s)));
  WEFT_TRY(run_body(body, inputs, outputs));
  for (std::size_t o = 0; o < outputs.size(); ++o) bind_sizes(step.outputs[o], outputs[o]);
  for (std::size_t o = 0; o < outputs.size(); ++o) WEFT_TRY(put(step.outputs[o], outputs[o]));
  return {};
}

namespace {

// Joins slices along a new leading axis.
Result<Tensor> stack(const std::vector<Tensor>& slices, DType dtype, const std::vector<std::int64_t>& slice_shape) {
  std::vector<std::int64_t> shape = slice_shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(slices.size()));
  Tensor result = WEFT_TRY(Tensor::empty(dtype, shape));
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (const Tensor& t : slices) {
    if (t.shape() != slice_shape) {
      return unsupported("loop-shape-changes", "a scan output of a loop changes its shape between iterations")
          .expected(shape_str(slice_shape))
          .found(shape_str(t.shape()));
    }
    std::memcpy(to, t.data(), t.byte_size());
    to += t.byte_size();
  }
  return result;
}

}  // namespace

Result<void> Run::loop(const LoopStep& step, std::size_t k) {
  const Executable& body = *executable_.state_->bodies[k][0];
  std::int64_t trips = step.trip_count >= 0 ? WEFT_TRY(tensor(step.trip_count)).i64(0) : INT64_MAX;
  bool go = step.condition < 0 || WEFT_TRY(tensor(step.condition)).i64(0) != 0;
  std::vector<Tensor> carried, captures;
  for (SlotId s : step.carried) carried.push_back(WEFT_TRY(tensor(s)));
  for (SlotId s : step.captures) captures.push_back(WEFT_TRY(tensor(s)));
  std::vector<std::vector<Tensor>> stacked(step.stacked_out.size());
  Tensor condition = WEFT_TRY(Tensor::zeros(DType::Bool, {}));
  std::int64_t i = 0;
  for (; i < trips && go; ++i) {
    if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
      return user_error("stopped", "the run was stopped by its stop token");
    }
    condition.set_i64(0, 1);
    std::vector<Tensor> inputs{Tensor::scalar_i64(DType::I64, i), condition};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    std::vector<Tensor> outputs;
    WEFT_TRY(run_body(body, inputs, outputs));
    go = outputs[0].i64(0) != 0;
    for (std::size_t c = 0; c < carried.size(); ++c) carried[c] = outputs[1 + c];
    for (std::size_t s = 0; s < stacked.size(); ++s) stacked[s].push_back(outputs[1 + carried.size() + s]);
  }
  if (!has_late_) {
    late_ = layout_->bindings;
    has_late_ = true;
  }
  for (std::size_t s = 0; s < stacked.size(); ++s) {
    if (!step.stacked_symbols[s].empty()) late_[step.stacked_symbols[s]] = i;
  }
  for (std::size_t c = 0; c < carried.size(); ++c) WEFT_TRY(put(step.carried_out[c], carried[c]));
  for (std::size_t s = 0; s < stacked.size(); ++s) {
    SlotId slot = step.stacked_out[s];
    std::vector<std::int64_t> sizes;
    if (!stacked[s].empty()) {
      sizes = stacked[s][0].shape();
    } else {
      sizes = WEFT_TRY(shape(slot));
      sizes.erase(sizes.begin());
    }
    WEFT_TRY(put(slot, WEFT_TRY(stack(stacked[s], plan_.slots[slot].dtype, sizes))));
  }
  return {};
}

// Each slice of ys is written in place; the carried values alternate between two buffers.
Result<void> Run::scan(const ScanStep& step, std::size_t k) {
  const Executable& body = *executable_.state_->bodies[k][0];
  std::int64_t length = WEFT_TRY(step.length.evaluate(bindings()));
  std::vector<Tensor> carried, xs, spare(step.carried.size());
  for (SlotId s : step.carried) carried.push_back(WEFT_TRY(tensor(s)));
  for (SlotId s : step.xs) xs.push_back(WEFT_TRY(tensor(s)));
  std::vector<Tensor> captures;
  for (SlotId s : step.captures) captures.push_back(WEFT_TRY(tensor(s)));
  std::vector<Tensor> ys;
  for (SlotId s : step.ys) {
    void* to = memory_->pointers[s];
    if (!to) to = WEFT_TRY(make(s));
    ys.push_back(Tensor::mutable_view(plan_.slots[s].dtype, WEFT_TRY(shape(s)), to));
  }
  auto slice_shape = [](const Tensor& t) { return std::vector<std::int64_t>(t.shape().begin() + 1, t.shape().end()); };
  for (std::int64_t i = 0; i < length; ++i) {
    if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
      return user_error("stopped", "the run was stopped by its stop token");
    }
    std::vector<Tensor> inputs = carried;
    for (const Tensor& x : xs) {
      std::size_t bytes = x.byte_size() / length;
      inputs.push_back(Tensor::view(x.dtype(), slice_shape(x), static_cast<const std::byte*>(x.data()) + i * bytes, nullptr));
    }
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    std::vector<Tensor> outputs = std::move(spare);
    for (Tensor& y : ys) {
      std::size_t bytes = y.byte_size() / length;
      outputs.push_back(Tensor::mutable_view(y.dtype(), slice_shape(y), static_cast<std::byte*>(y.mutable_data()) + i * bytes));
    }
    WEFT_TRY(run_body(body, inputs, outputs));
    outputs.resize(carried.size());
    // The first carried values are the caller's and must not be written to.
    spare = i == 0 ? std::vector<Tensor>(carried.size()) : std::move(carried);
    carried = std::move(outputs);
  }
  for (std::size_t c = 0; c < carried.size(); ++c) WEFT_TRY(put(step.carried_out[c], carried[c]));
  return {};
}

}  // namespace weft::runtime
