// The values of a run's slots: where they are, what shape they have, how they get there.
#include <fmt/format.h>

#include <cstring>

#include "runtime/hostops/hostops.h"
#include "runtime/run.h"

namespace weft::runtime {

Bindings& Run::late() {
  if (!has_late_) late_ = layout_->bindings;
  has_late_ = true;
  return late_;
}

Result<std::vector<std::int64_t>> Run::shape(SlotId slot) const {
  if (layout_->known[slot]) return layout_->shapes[slot];
  return evaluate(plan_.slots[slot].shape, bindings());
}

Result<void*> Run::writable(SlotId slot, Tensor& t) const {
  try {
    return t.mutable_data();
  } catch (const Error&) {
    const Slot& s = plan_.slots[slot];
    return user_error("output-read-only", "the tensor given for the output may not be written")
        .at(s.kind == Slot::Kind::Output ? plan_.output_names[s.index] : s.name);
  }
}

Result<void*> Run::make(SlotId slot) {
  if (void* p = memory_->pointers[slot]) return p;
  const Slot& s = plan_.slots[slot];
  if (s.kind == Slot::Kind::Alias) return make(s.index);
  bool output = s.kind == Slot::Kind::Output;
  if (s.kind != Slot::Kind::Dynamic && s.kind != Slot::Kind::Temp && !output) return memory_->pointers[slot];
  Tensor& t = output ? outputs_[s.index] : memory_->dynamic[slot];
  std::vector<std::int64_t> sizes = WEFT_TRY(shape(slot));
  bool fits = t.defined() && t.shape() == sizes && t.dtype() == s.dtype;
  if (!fits && t.defined() && output && role_ == Role::Whole) {
    return user_error("output-mismatch", "the tensor given for the output does not fit")
        .at(plan_.output_names[s.index])
        .expected(name(s.dtype) + shape_str(sizes))
        .found(name(t.dtype()) + shape_str(t.shape()));
  }
  if (!fits) t = WEFT_TRY(Tensor::empty(s.dtype, std::move(sizes)));
  return memory_->pointers[slot] = WEFT_TRY(writable(slot, t));
}

Result<Tensor> Run::tensor(SlotId slot) {
  WEFT_TRY(fetch(slot));
  const Slot& s = plan_.slots[slot];
  switch (s.kind) {
    case Slot::Kind::Input:
      return inputs_[s.index];
    case Slot::Kind::Constant:
      return plan_.constants[s.index];
    case Slot::Kind::Output:
      return outputs_[s.index];
    case Slot::Kind::Alias:
      return WEFT_TRY(tensor(s.index)).reshaped(WEFT_TRY(shape(slot)));
    case Slot::Kind::Dynamic:
    case Slot::Kind::Temp:
      if (memory_->dynamic[slot].defined()) return memory_->dynamic[slot];
      if (void* p = memory_->pointers[slot]) return Tensor::view(s.dtype, WEFT_TRY(shape(slot)), p, nullptr);
  }
  return internal_error(fmt::format("slot {} is read before it is made", slot));
}

// Never an output whose size is not known: its writer makes it, and put() copies.
Result<Tensor> Run::target(SlotId slot) {
  const Slot& s = plan_.slots[slot];
  if (!layout_->known[slot]) return Tensor();
  if (s.kind == Slot::Kind::Output) return outputs_[s.index];
  if (s.kind != Slot::Kind::Temp) return Tensor();
  return Tensor::mutable_view(s.dtype, layout_->shapes[slot], memory_->pointers[slot]);
}

// The value must be what the plan says of the slot; sizes that are still unknown get their values here.
Result<void> Run::settle(SlotId slot, const Tensor& value, const std::string& origin) {
  const Slot& s = plan_.slots[slot];
  bool fits = value.dtype() == s.dtype;
  if (layout_->known[slot]) {
    fits = fits && value.shape() == layout_->shapes[slot];
  } else if (fits) {
    Bindings& all = late();
    std::size_t before = all.size();
    fits = fit_shape(s.shape, value.shape(), all);
    if (fits && all.size() != before) WEFT_TRY(check_requirements(plan_, all));
  }
  if (fits) return {};
  return user_error("shape-mismatch", "a result differs from what the graph states")
      .at(origin)
      .expected(name(s.dtype) + str(s.shape))
      .found(name(value.dtype()) + shape_str(value.shape()));
}

Result<void> Run::put(SlotId slot, Tensor value, const std::string& origin) {
  WEFT_TRY(settle(slot, value, origin));
  host_wrote(slot);
  const Slot& s = plan_.slots[slot];
  if (s.kind == Slot::Kind::Dynamic) {
    const auto* at = static_cast<const std::byte*>(value.data());
    bool in_arena = !is_string(s.dtype) && std::less_equal<>()(memory_->arena, at) &&
                    std::less<>()(at, memory_->arena + memory_->arena_bytes);
    if (!in_arena) {
      memory_->dynamic[slot] = std::move(value);
      memory_->pointers[slot] = is_string(s.dtype) ? nullptr : const_cast<std::byte*>(at);
      return {};
    }  // the arena's bytes are another value's soon
  }
  if (is_string(s.dtype)) {
    Tensor& t = outputs_[s.index];
    if (!t.defined()) t = WEFT_TRY(Tensor::empty(s.dtype, value.shape()));
    if (t.data() == value.data()) return {};
    if (t.dtype() != s.dtype || t.shape() != value.shape()) {
      return user_error("output-mismatch", "the tensor given for the output does not fit")
          .at(plan_.output_names[s.index])
          .expected(name(s.dtype) + shape_str(value.shape()))
          .found(name(t.dtype()) + shape_str(t.shape()));
    }
    t.mutable_strings() = value.string_values();
    return {};
  }
  void* to = WEFT_TRY(make(slot));
  if (to != value.data() && value.byte_size() > 0) std::memcpy(to, value.data(), value.byte_size());
  return {};
}

}  // namespace weft::runtime
