// Scans: a body that runs once for each row of some values and hands others on. Rows of ys are written in place; what is
// handed on alternates between the results' memory and a spare, so that the last iteration writes the results. Where the
// body is launches on a device alone, all of it stays there from the first iteration to the last.
#include <array>

#include "runtime/run.h"

namespace weft::runtime {
namespace {

// Tensors of one shape, each over the next row of another's bytes.
class Rows {
 public:
  explicit Rows(const Tensor& whole)
      : dtype_(whole.dtype()),
        shape_(whole.shape().begin() + 1, whole.shape().end()),
        bytes_(whole.shape()[0] > 0 ? whole.byte_size() / static_cast<std::size_t>(whole.shape()[0]) : 0),
        data_(const_cast<void*>(whole.data())) {}
  Tensor operator[](std::int64_t i) const {
    return Tensor::mutable_view(dtype_, shape_, static_cast<std::byte*>(data_) + static_cast<std::size_t>(i) * bytes_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::size_t bytes_;
  void* data_;
};

DeviceSpan row(DeviceSpan whole, const Rows& rows, std::int64_t i) {
  const auto bytes = static_cast<std::int64_t>(rows.bytes());
  return {whole.memory, whole.offset + i * bytes, bytes};
}

}  // namespace

class Run::Scan {
 public:
  Scan(Run& run, const ScanStep& step, std::int64_t length) : run_(run), step_(step), length_(length) {
    if (length > 0 && run.plan_.device) copies_ = staying(step);
  }

  Result<void> execute(const Executable& executable) {
    WEFT_TRY(prepare());
    if (copies_) WEFT_TRY(prepare_on_device());
    Run body(executable, inputs_, outputs_, run_.options_, run_.bindings(), Role::Body, copies_ ? &kept_ : nullptr);
    for (std::int64_t i = 0; i < length_; ++i) {
      WEFT_TRY(run_.check_stop());
      place(i);
      if (copies_) place_on_device(i);
      WEFT_TRY(body.execute());
      WEFT_TRY(hand_on(i));
    }
    if (copies_) WEFT_TRY(body.check_device());
    return finish();
  }

 private:
  bool stays(const Rows& rows) const {
    return copies_ && static_cast<std::int64_t>(rows.bytes()) % step_.body->device_code->alignment() == 0;
  }
  std::size_t carried() const { return step_.carried.size(); }

  // A value that is not read here has its shape all the same.
  Result<Tensor> shaped(SlotId slot) {
    return Tensor::mutable_view(run_.plan_.slots[slot].dtype, WEFT_TRY(run_.shape(slot)), WEFT_TRY(run_.make(slot)));
  }
  Result<Tensor> input(SlotId slot) { return copies_ ? shaped(slot) : run_.tensor(slot); }

  Result<void> prepare() {
    for (SlotId s : step_.carried) inputs_.push_back(WEFT_TRY(input(s)));
    for (SlotId s : step_.xs) {
      xs_.emplace_back(WEFT_TRY(input(s)));
      if (copies_ && !stays(xs_.back())) xs_.back() = Rows(WEFT_TRY(run_.tensor(s)));
    }
    inputs_.resize(carried() + xs_.size());
    for (SlotId s : step_.captures) inputs_.push_back(WEFT_TRY(input(s)));
    for (SlotId s : step_.carried_out) {
      into_[0].push_back(WEFT_TRY(shaped(s)));
      into_[1].push_back(length_ > 1 ? WEFT_TRY(Tensor::empty(into_[0].back().dtype(), into_[0].back().shape())) : Tensor());
    }
    for (SlotId s : step_.ys) ys_.emplace_back(WEFT_TRY(shaped(s)));
    outputs_.resize(carried() + ys_.size());
    return {};
  }

  Result<void> prepare_on_device() {
    kept_.inputs.resize(inputs_.size());
    kept_.outputs.resize(outputs_.size());
    std::size_t next = 0;
    for (SlotId s : step_.carried) kept_.inputs[next++] = WEFT_TRY(run_.on_device(s, false));
    for (std::size_t x = 0; x < xs_.size(); ++x, ++next) {
      device_xs_.push_back(stays(xs_[x]) ? WEFT_TRY(run_.on_device(step_.xs[x], false)) : DeviceSpan());
    }
    for (SlotId s : step_.captures) kept_.inputs[next++] = WEFT_TRY(run_.on_device(s, false));
    for (std::size_t c = 0; c < carried(); ++c) {
      const DeviceSpan last = WEFT_TRY(run_.on_device(step_.carried_out[c], true));
      device_into_[0].push_back(last);
      device_into_[1].push_back(WEFT_TRY(run_.memory_->mirror->spare(step_.carried_out[c], last.bytes)));
    }
    for (std::size_t y = 0; y < ys_.size(); ++y) {
      device_ys_.push_back(stays(ys_[y]) ? WEFT_TRY(run_.on_device(step_.ys[y], true)) : DeviceSpan());
    }
    return {};
  }

  // The places of one iteration's values.
  void place(std::int64_t i) {
    for (std::size_t x = 0; x < xs_.size(); ++x) inputs_[carried() + x] = xs_[x][i];
    for (std::size_t c = 0; c < carried(); ++c) outputs_[c] = into_[turn(i)][c];
    for (std::size_t y = 0; y < ys_.size(); ++y) outputs_[carried() + y] = ys_[y][i];
  }
  std::size_t turn(std::int64_t i) const { return static_cast<std::size_t>((length_ - 1 - i) % 2); }

  void place_on_device(std::int64_t i) {
    kept_.resumed = i > 0;
    for (std::size_t x = 0; x < xs_.size(); ++x) {
      if (device_xs_[x].memory) kept_.inputs[carried() + x] = row(device_xs_[x], xs_[x], i);
    }
    for (std::size_t y = 0; y < ys_.size(); ++y) {
      if (device_ys_[y].memory) kept_.outputs[carried() + y] = row(device_ys_[y], ys_[y], i);
    }
    for (std::size_t c = 0; c < carried(); ++c) kept_.outputs[c] = is_row(c) ? kept_.outputs[row_of(c)] : device_into_[turn(i)][c];
  }
  // Whether a carried value lies in the row that is a copy of it.
  bool is_row(std::size_t c) const { return (*copies_)[c] >= 0 && device_ys_[static_cast<std::size_t>((*copies_)[c])].memory; }
  std::size_t row_of(std::size_t c) const { return carried() + static_cast<std::size_t>((*copies_)[c]); }

  Result<void> hand_on(std::int64_t i) {
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const SlotId slot = o < carried() ? step_.carried_out[o] : step_.ys[o - carried()];
      const void* expected = o < carried() ? into_[turn(i)][o].data() : ys_[o - carried()][i].data();
      if (outputs_[o].data() != expected) {
        return user_error("shape-mismatch", "a scan's result changes its shape").at(step_.origin).expected(str(run_.plan_.slots[slot].shape));
      }
    }
    for (std::size_t c = 0; c < carried(); ++c) {
      inputs_[c] = outputs_[c];
      if (copies_) kept_.inputs[c] = kept_.outputs[c];
    }
    return {};
  }

  Result<void> finish() {
    for (std::size_t c = 0; c < carried(); ++c) {
      const SlotId slot = step_.carried_out[c];
      if (length_ == 0) {
        WEFT_TRY(run_.put(slot, inputs_[c], step_.origin));
      } else if (!copies_) {
        run_.host_wrote(slot);
      } else if (is_row(c)) {
        WEFT_TRY(run_.plan_.device->download(WEFT_TRY(run_.make(slot)), kept_.outputs[c], kept_.outputs[c].bytes));
        run_.host_wrote(slot);
      }
    }
    for (std::size_t y = 0; y < ys_.size(); ++y) {
      if (!copies_ || !device_ys_[y].memory) run_.host_wrote(step_.ys[y]);
    }
    return {};
  }

  Run& run_;
  const ScanStep& step_;
  const std::int64_t length_;
  std::vector<Tensor> inputs_, outputs_;        // of the body
  std::vector<Rows> xs_, ys_;
  std::array<std::vector<Tensor>, 2> into_;     // by carried value
  // On the device, where it all stays there; without memory: rows that begin at odd addresses do not.
  std::optional<std::vector<int>> copies_;
  Kept kept_;
  std::vector<DeviceSpan> device_xs_, device_ys_;
  std::array<std::vector<DeviceSpan>, 2> device_into_;
};

Result<void> Run::scan(const ScanStep& step, std::size_t k) {
  Scan scan(*this, step, WEFT_TRY(step.length.evaluate(bindings())));
  return scan.execute(*executable_.state_->bodies[k][0]);
}

}  // namespace weft::runtime
