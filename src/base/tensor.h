// A host tensor: dtype, concrete shape, dense row-major bytes that are owned, shared, or mapped from a file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"

namespace weft {

class Tensor {
 public:
  Tensor() = default;
  // Uninitialised (64-byte aligned) storage; an overflowing or negative shape, or no memory, is an error.
  static Result<Tensor> empty(DType dtype, std::vector<std::int64_t> shape);
  static Result<Tensor> zeros(DType dtype, std::vector<std::int64_t> shape);
  // A view: `owner` keeps the bytes alive (null: the caller does).
  static Tensor view(DType dtype, std::vector<std::int64_t> shape, const void* data, std::shared_ptr<const void> owner);
  // A view of bytes that may lie anywhere: where their address does not suit the dtype they are copied when first needed.
  static Tensor view_anywhere(DType dtype, std::vector<std::int64_t> shape, const void* data,
                              std::shared_ptr<const void> owner);
  // The same as view() over memory that may be written.
  static Tensor mutable_view(DType dtype, std::vector<std::int64_t> shape, void* data,
                             std::shared_ptr<const void> owner = nullptr);
  static Tensor strings(std::vector<std::int64_t> shape, std::vector<std::string> values);
  static Tensor scalar(DType dtype, double value);     // rank 0
  static Tensor scalar_i64(DType dtype, std::int64_t value);
  static Tensor of(const std::vector<std::int64_t>& values);  // i64[n]

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  std::int64_t size() const;       // number of elements
  std::size_t byte_size() const;   // of the dense storage; 0 for strings
  const void* data() const { return deferred_ == nullptr ? data_ : copied(); }
  const void* bytes() const;       // the same bytes, perhaps not aligned for their dtype
  bool writable() const { return writable_; }
  void* mutable_data();            // WEFT_CHECKs writable(): it came from empty, zeros or mutable_view
  template <class T>
  const T* as() const { return static_cast<const T*>(data()); }
  template <class T>
  T* as_mutable() { return static_cast<T*>(mutable_data()); }
  const std::vector<std::string>& string_values() const;
  std::vector<std::string>& mutable_strings();

  double f64(std::int64_t i) const { return load_f64(dtype_, data(), i); }
  std::int64_t i64(std::int64_t i) const { return load_i64(dtype_, data(), i); }
  void set_f64(std::int64_t i, double v) { store_f64(dtype_, mutable_data(), i, v); }
  void set_i64(std::int64_t i, std::int64_t v) { store_i64(dtype_, mutable_data(), i, v); }

  // Elements that lie elsewhere in another order or at odd addresses, in row-major order of `shape`. The first who asks for
  // data() makes the copy that all tensors sharing this have from then on; who only lays them out anew reads them here.
  struct Deferred {
    const std::byte* data = nullptr;
    std::vector<std::int64_t> shape, strides;  // strides in elements
    std::atomic<void*> copy{nullptr};
    ~Deferred();
  };
  const Deferred* deferred() const { return deferred_.get(); }  // null: they lie where data() says
  // Axis k of the result is axis order[k] of this one; nothing is moved until somebody asks for data(). Of whole bytes only.
  Tensor permuted(const std::vector<int>& order) const;

  Tensor reshaped(std::vector<std::int64_t> shape) const;  // same element count, shares the bytes
  std::uint64_t content_hash() const;  // of dtype, shape and bytes (xxHash), and of the order where that is deferred
  bool defined() const { return data_ != nullptr || owner_ != nullptr || !shape_.empty(); }

 private:
  DType dtype_ = DType::F32;
  bool writable_ = false;
  std::vector<std::int64_t> shape_;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<Deferred> deferred_;  // null: data_ is dense and aligned
  const void* copied() const;
};

// Row-major walk helpers.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape);
std::string shape_str(const std::vector<std::int64_t>& shape);  // "[1, 3, 224, 224]"

}  // namespace weft
