#include "base/tensor.h"

#define XXH_STATIC_LINKING_ONLY
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/bytes.h"

namespace weft {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxBytes = std::size_t{1} << 46;  // beyond any machine's memory

std::optional<std::int64_t> element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  bool zero = false;
  for (std::int64_t d : shape) {
    if (d < 0) return std::nullopt;
    if (d == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(count, d, &count)) {
      return std::nullopt;
    }
  }
  return zero ? 0 : count;
}

Error bad_shape(DType dtype, const std::vector<std::int64_t>& shape) {
  return user_error("tensor-too-large", fmt::format("a tensor of {}{} has a negative size or more bytes than can be addressed",
                                                    name(dtype), shape_str(shape)));
}

// `count` strings behind the owner pointer; data() points at the vector so that defined() holds for rank 0.
std::shared_ptr<std::vector<std::string>> make_strings(std::size_t count) {
  return std::make_shared<std::vector<std::string>>(count);
}

// Null when there is no memory. Large blocks ask for large pages: weights are written once, and read again and again.
void* allocate(std::size_t bytes) {
  constexpr std::size_t kLargePage = 2 << 20, kLarge = 2 * kLargePage;
  const std::size_t to = bytes >= kLarge ? kLargePage : kAlignment;
  void* memory = nullptr;
  if (posix_memalign(&memory, to, (bytes + kAlignment) / kAlignment * kAlignment) != 0) return nullptr;  // never of size zero
#if defined(__linux__)
  if (bytes >= kLarge) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace

Result<Tensor> Tensor::empty(DType dtype, std::vector<std::int64_t> shape) {
  const auto count = element_count(shape);
  const auto bytes = count ? storage_bytes(dtype, *count) : std::nullopt;
  if (!bytes || *bytes > kMaxBytes) return bad_shape(dtype, shape);
  Tensor t;
  t.dtype_ = dtype;
  t.writable_ = true;
  if (is_string(dtype)) {
    if (static_cast<std::size_t>(*count) > kMaxBytes / sizeof(std::string)) return bad_shape(dtype, shape);
    auto values = make_strings(static_cast<std::size_t>(*count));
    t.data_ = values.get();
    t.owner_ = std::move(values);
  } else {
    void* memory = allocate(*bytes);
    if (memory == nullptr) {
      return user_error("out-of-memory", fmt::format("cannot allocate {} bytes for a tensor of {}{}", *bytes,
                                                     name(dtype), shape_str(shape)));
    }
    t.owner_ = std::shared_ptr<const void>(memory, [](const void* p) { std::free(const_cast<void*>(p)); });
    t.data_ = memory;
  }
  t.shape_ = std::move(shape);
  return t;
}

Result<Tensor> Tensor::zeros(DType dtype, std::vector<std::int64_t> shape) {
  Tensor t = WEFT_TRY(empty(dtype, std::move(shape)));
  if (!is_string(dtype)) std::memset(t.mutable_data(), 0, t.byte_size());
  return t;
}

Tensor Tensor::view(DType dtype, std::vector<std::int64_t> shape, const void* data,
                    std::shared_ptr<const void> owner) {
  WEFT_CHECK(!is_string(dtype), "a view of strings");
  WEFT_CHECK(element_count(shape).has_value(), "a view of an impossible shape " + shape_str(shape));
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.data_ = data;
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::view_anywhere(DType dtype, std::vector<std::int64_t> shape, const void* data,
                             std::shared_ptr<const void> owner) {
  Tensor t = view(dtype, std::move(shape), data, std::move(owner));
  if (reinterpret_cast<std::uintptr_t>(data) % alignment(dtype) != 0) {
    t.deferred_ = std::make_shared<Deferred>();
    t.deferred_->data = static_cast<const std::byte*>(data);
    t.deferred_->shape = t.shape_;
    t.deferred_->strides = row_major_strides(t.shape_);
  }
  return t;
}

Tensor Tensor::permuted(const std::vector<int>& order) const {
  WEFT_CHECK(!is_string(dtype_) && bits(dtype_) % 8 == 0, std::string("axes of packed ") + name(dtype_));
  WEFT_CHECK(order.size() == shape_.size(), "an order of other axes");
  const bool elsewhere = deferred_ != nullptr && deferred_->shape == shape_;
  const std::vector<std::int64_t> strides = elsewhere ? deferred_->strides : row_major_strides(shape_);
  Tensor t = *this;
  t.writable_ = false;
  t.data_ = elsewhere ? static_cast<const void*>(deferred_->data) : data();
  t.deferred_ = std::make_shared<Deferred>();
  t.deferred_->data = static_cast<const std::byte*>(t.data_);
  for (std::size_t k = 0; k < order.size(); ++k) {
    t.shape_[k] = shape_[order[k]];
    t.deferred_->strides.push_back(strides[order[k]]);
  }
  t.deferred_->shape = t.shape_;
  // Memory that only this tensor's copy of `deferred_` owns must outlive the new one.
  t.owner_ = std::make_shared<Tensor>(*this);
  return t;
}

Tensor::Deferred::~Deferred() { std::free(copy.load()); }

namespace {

bool in_order(const Tensor::Deferred& from) { return from.strides == row_major_strides(from.shape); }

template <class T>
void gather(const Tensor::Deferred& from, T* to) {
  std::vector<std::int64_t> at(from.shape.size(), 0);
  const std::int64_t inner = from.shape.back(), step = from.strides.back() * static_cast<std::int64_t>(sizeof(T));
  std::int64_t rows = 1;
  for (std::size_t k = 0; k + 1 < from.shape.size(); ++k) rows *= from.shape[k];
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t start = 0;
    for (std::size_t k = 0; k + 1 < at.size(); ++k) start += at[k] * from.strides[k];
    const std::byte* source = from.data + start * static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t i = 0; i < inner; ++i) std::memcpy(to++, source + i * step, sizeof(T));
    for (std::size_t k = at.size() - 1; k-- > 0;) {
      if (++at[k] < from.shape[k]) break;
      at[k] = 0;
    }
  }
}

struct Pair {
  std::uint64_t low, high;  // of a complex number
};

void gather(const Tensor::Deferred& from, int width, void* to) {
  switch (width) {
    case 8: return gather(from, static_cast<std::uint8_t*>(to));
    case 16: return gather(from, static_cast<std::uint16_t*>(to));
    case 32: return gather(from, static_cast<std::uint32_t*>(to));
    case 64: return gather(from, static_cast<std::uint64_t*>(to));
    default: return gather(from, static_cast<Pair*>(to));
  }
}

}  // namespace

// Two threads may both copy; one copy stays.
const void* Tensor::copied() const {
  if (const void* made = deferred_->copy.load(std::memory_order_acquire)) return made;
  const std::size_t bytes = byte_size();
  void* memory = allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  if (in_order(*deferred_)) {
    if (bytes > 0) std::memcpy(memory, deferred_->data, bytes);
  } else if (bytes > 0) {
    gather(*deferred_, bits(dtype_), memory);
  }
  MappedFile::release(deferred_->data, bytes);
  void* made = nullptr;
  if (deferred_->copy.compare_exchange_strong(made, memory, std::memory_order_acq_rel)) return memory;
  std::free(memory);
  return made;
}

const void* Tensor::bytes() const {
  return deferred_ == nullptr || in_order(*deferred_) ? data_ : copied();
}

Tensor Tensor::mutable_view(DType dtype, std::vector<std::int64_t> shape, void* data,
                            std::shared_ptr<const void> owner) {
  Tensor t = view(dtype, std::move(shape), data, std::move(owner));
  t.writable_ = true;
  return t;
}

Tensor Tensor::strings(std::vector<std::int64_t> shape, std::vector<std::string> values) {
  const auto count = element_count(shape);
  WEFT_CHECK(count && static_cast<std::size_t>(*count) == values.size(),
             fmt::format("{} strings for shape {}", values.size(), shape_str(shape)));
  auto owned = std::make_shared<std::vector<std::string>>(std::move(values));
  Tensor t;
  t.dtype_ = DType::Str;
  t.writable_ = true;
  t.shape_ = std::move(shape);
  t.data_ = owned.get();
  t.owner_ = std::move(owned);
  return t;
}

Tensor Tensor::scalar(DType dtype, double value) {
  if (!is_float(dtype)) return scalar_i64(dtype, static_cast<std::int64_t>(value));
  Tensor t = empty(dtype, {}).value();
  std::memset(t.mutable_data(), 0, t.byte_size());
  t.set_f64(0, value);
  return t;
}

Tensor Tensor::scalar_i64(DType dtype, std::int64_t value) {
  if (is_float(dtype)) return scalar(dtype, static_cast<double>(value));
  Tensor t = empty(dtype, {}).value();
  std::memset(t.mutable_data(), 0, t.byte_size());
  t.set_i64(0, value);
  return t;
}

Tensor Tensor::of(const std::vector<std::int64_t>& values) {
  Tensor t = empty(DType::I64, {static_cast<std::int64_t>(values.size())}).value();
  if (!values.empty()) std::memcpy(t.mutable_data(), values.data(), t.byte_size());
  return t;
}

std::int64_t Tensor::size() const {
  std::int64_t count = 1;
  for (std::int64_t d : shape_) {
    if (d == 0) return 0;
    count *= d;
  }
  return count;
}

std::size_t Tensor::byte_size() const { return *storage_bytes(dtype_, size()); }

void* Tensor::mutable_data() {
  WEFT_CHECK(writable_ && !is_string(dtype_), "this tensor may not be written");
  return const_cast<void*>(data_);
}

const std::vector<std::string>& Tensor::string_values() const {
  WEFT_CHECK(is_string(dtype_) && data_ != nullptr, std::string("strings of a tensor of ") + name(dtype_));
  return *static_cast<const std::vector<std::string>*>(data_);
}

std::vector<std::string>& Tensor::mutable_strings() {
  WEFT_CHECK(writable_, "this tensor may not be written");
  return const_cast<std::vector<std::string>&>(string_values());
}

Tensor Tensor::reshaped(std::vector<std::int64_t> shape) const {
  const auto count = element_count(shape);
  WEFT_CHECK(count && *count == size(), fmt::format("reshape {} to {}", shape_str(shape_), shape_str(shape)));
  Tensor t = *this;
  t.shape_ = std::move(shape);
  t.writable_ = false;
  return t;
}

std::uint64_t Tensor::content_hash() const {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const auto add = [&](std::int64_t v) { XXH3_64bits_update(&state, &v, sizeof v); };
  add(static_cast<std::int64_t>(dtype_));
  add(rank());
  for (std::int64_t d : shape_) add(d);
  if (deferred_ != nullptr && !in_order(*deferred_)) {
    for (std::int64_t step : deferred_->strides) add(step);
  }
  if (is_string(dtype_)) {
    for (const std::string& s : string_values()) {
      add(static_cast<std::int64_t>(s.size()));
      XXH3_64bits_update(&state, s.data(), s.size());
    }
  } else if (data_ != nullptr) {
    XXH3_64bits_update(&state, data_, byte_size());
  }
  return XXH3_64bits_digest(&state);
}

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

std::string shape_str(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace weft
