// Branches and loops of a plan; scans are in scan.cpp. Their bodies are plans that run inside the same run's options and bindings. A body keeps
// one Run over all iterations, so that only pointers change from one to the next.
#include <cstring>

#include "runtime/run.h"

namespace weft::runtime {

namespace {

// Slices of one shape, joined along a new leading axis as they come.
class Stack {
 public:
  explicit Stack(DType dtype) : dtype_(dtype) {}

  Result<void> push(const Tensor& slice, const std::string& origin) {
    if (count_ == 0) {
      shape_ = slice.shape();
    } else if (slice.shape() != shape_) {
      return user_error("shape-mismatch", "the shapes of a stacked output differ between iterations")
          .at(origin)
          .expected(shape_str(shape_))
          .found(shape_str(slice.shape()));
    }
    ++count_;
    elements_ += slice.size();
    if (is_string(dtype_)) {
      strings_.insert(strings_.end(), slice.string_values().begin(), slice.string_values().end());
      return {};
    }
    if (elements_ > (storage_.defined() ? storage_.size() : 0)) WEFT_TRY(reserve(std::max<std::int64_t>(64, 2 * elements_)));
    copy(slice, elements_ - slice.size());
    return {};
  }

  // `none` is the shape of a slice when there was no iteration.
  Result<Tensor> finish(const std::vector<std::int64_t>& none) {
    std::vector<std::int64_t> shape = count_ > 0 ? shape_ : none;
    shape.insert(shape.begin(), count_);
    if (is_string(dtype_)) return Tensor::strings(std::move(shape), std::move(strings_));
    Tensor result = WEFT_TRY(Tensor::empty(dtype_, shape));
    if (result.byte_size() > 0) std::memcpy(result.mutable_data(), storage_.data(), result.byte_size());
    return result;
  }

 private:
  Result<void> reserve(std::int64_t elements) {
    Tensor larger = WEFT_TRY(Tensor::empty(dtype_, {elements}));
    if (storage_.defined()) std::memcpy(larger.mutable_data(), storage_.data(), storage_.byte_size());
    storage_ = std::move(larger);
    return {};
  }

  void copy(const Tensor& slice, std::int64_t at) {
    if (bits(dtype_) % 8 != 0) {  // elements share bytes
      for (std::int64_t i = 0; i < slice.size(); ++i) {
        is_float(dtype_) ? storage_.set_f64(at + i, slice.f64(i)) : storage_.set_i64(at + i, slice.i64(i));
      }
      return;
    }
    if (slice.byte_size() == 0) return;
    auto* to = static_cast<std::byte*>(storage_.mutable_data()) + at * (bits(dtype_) / 8);
    std::memcpy(to, slice.data(), slice.byte_size());
  }

  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::int64_t count_ = 0, elements_ = 0;
  Tensor storage_;
  std::vector<std::string> strings_;
};

}  // namespace

Result<std::vector<Tensor>> Run::tensors(const std::vector<SlotId>& slots) {
  std::vector<Tensor> result;
  result.reserve(slots.size());
  for (SlotId s : slots) result.push_back(WEFT_TRY(tensor(s)));
  return result;
}

Result<bool> Run::truth(SlotId slot, const std::string& origin) {
  Tensor t = WEFT_TRY(tensor(slot));
  if (t.size() == 1) return t.i64(0) != 0;
  return user_error("shape-mismatch", "a condition is one value").at(origin).found(shape_str(t.shape()));
}

Result<void> Run::branch(const BranchStep& step, std::size_t k) {
  const bool holds = WEFT_TRY(truth(step.condition, step.origin));
  const Executable& body = *executable_.state_->bodies[k][holds ? 0 : 1];
  std::vector<Tensor> inputs = WEFT_TRY(tensors(step.inputs)), outputs;
  for (SlotId s : step.outputs) outputs.push_back(WEFT_TRY(target(s)));
  WEFT_TRY(Run(body, inputs, outputs, options_, bindings(), Role::Body).execute());
  // One result's sizes may be expressions of another's.
  for (std::size_t o = 0; o < outputs.size(); ++o) WEFT_TRY(settle(step.outputs[o], outputs[o], step.origin));
  for (std::size_t o = 0; o < outputs.size(); ++o) WEFT_TRY(put(step.outputs[o], outputs[o], step.origin));
  return {};
}

Result<void> Run::loop(const LoopStep& step, std::size_t k) {
  Tensor count = WEFT_TRY(tensor(step.trip_count));
  if (count.size() != 1) return user_error("shape-mismatch", "the trip count is one value").at(step.origin);
  const std::int64_t trips = count.i64(0);
  bool go = WEFT_TRY(truth(step.condition, step.origin));
  const std::size_t carried = step.carried.size();

  Tensor iteration = WEFT_TRY(Tensor::zeros(DType::I64, {}));
  std::vector<Tensor> inputs{iteration, Tensor::scalar_i64(DType::Bool, 1)}, outputs(1 + carried + step.stacked_out.size());
  for (SlotId s : step.carried) inputs.push_back(WEFT_TRY(tensor(s)));
  for (SlotId s : step.captures) inputs.push_back(WEFT_TRY(tensor(s)));
  std::vector<Stack> stacks;
  for (SlotId s : step.stacked_out) stacks.emplace_back(plan_.slots[s].dtype);
  {
    Run body(*executable_.state_->bodies[k][0], inputs, outputs, options_, bindings(), Role::Body);
    for (std::int64_t i = 0; i < trips && go; ++i) {
      WEFT_TRY(check_stop());
      iteration.set_i64(0, i);
      WEFT_TRY(body.execute());
      if (outputs[0].size() != 1) return user_error("shape-mismatch", "a condition is one value").at(step.origin);
      go = outputs[0].i64(0) != 0;
      for (std::size_t c = 0; c < carried; ++c) {
        std::swap(inputs[2 + c], outputs[1 + c]);
        // What was carried into the first iteration is not ours to write to, nor are strings that others may share.
        if (i == 0 || is_string(inputs[2 + c].dtype())) outputs[1 + c] = Tensor();
      }
      for (std::size_t s = 0; s < stacks.size(); ++s) WEFT_TRY(stacks[s].push(outputs[1 + carried + s], step.origin));
    }
  }
  for (std::size_t c = 0; c < carried; ++c) WEFT_TRY(put(step.carried_out[c], inputs[2 + c], step.origin));
  for (std::size_t s = 0; s < stacks.size(); ++s) {
    SlotId slot = step.stacked_out[s];
    std::vector<std::int64_t> none;  // a size that nothing binds is 0
    const Shape& stated = plan_.slots[slot].shape;
    for (std::size_t a = 1; a < stated.size(); ++a) {
      auto size = stated[a].evaluate(bindings());
      none.push_back(size.ok() ? std::max<std::int64_t>(0, *size) : 0);
    }
    WEFT_TRY(put(slot, WEFT_TRY(stacks[s].finish(none)), step.origin));
  }
  return {};
}

}  // namespace weft::runtime
