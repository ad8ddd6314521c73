#include "compile/prepare.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "base/bytes.h"

namespace weft::compiler {

namespace {

struct Axis {
  std::int64_t size = 0, stride = 0;
};

// Where the elements of one panel come from. A constant without panels is one panel of one lane.
struct Packing {
  const char* from = nullptr;
  std::vector<Axis> outer;  // axes that count within a panel, outermost first
  std::int64_t rows = 1;    // of a panel: the product of their sizes
  std::int64_t lanes = 1;   // in all panels
  std::int64_t width = 1;   // lanes of a panel
  std::int64_t lane_stride = 0;
  Axis inner{1, 0};         // what lies inside a lane

  std::int64_t panels() const { return (lanes + width - 1) / width; }
};

// Each axis of `shape` as the axes of the tensor that make it up, outermost first: nothing where one is cut through.
std::optional<std::vector<std::vector<Axis>>> split_axes(const Tensor::Deferred& from, const std::vector<std::int64_t>& shape) {
  std::vector<std::vector<Axis>> result;
  std::size_t at = 0;
  for (std::int64_t size : shape) {
    std::vector<Axis>& parts = result.emplace_back();
    for (std::int64_t left = size; left != 1; ++at) {
      if (at == from.shape.size() || from.shape[at] == 0 || left % from.shape[at] != 0) return std::nullopt;
      left /= from.shape[at];
      const Axis next{from.shape[at], from.strides[at]};
      if (next.size == 1) continue;
      if (!parts.empty() && parts.back().stride == next.size * next.stride) {
        parts.back() = {parts.back().size * next.size, next.stride};
      } else {
        parts.push_back(next);
      }
    }
  }
  return result;
}

// Elements whose order is deferred are read where they lie, unless the panels cut through their axes.
Packing packing_of(const Tensor& data, const std::vector<std::int64_t>& shape, const loop::StorageMap& map) {
  Packing p;
  std::vector<std::vector<Axis>> axes;
  if (const Tensor::Deferred* elsewhere = data.deferred(); elsewhere != nullptr && data.size() > 0) {
    auto split = split_axes(*elsewhere, shape);
    const auto whole = [&](int axis) { return axis < 0 || (*split)[axis].size() <= 1; };
    if (split && whole(map.panel_axis) && whole(map.inner)) {
      p.from = reinterpret_cast<const char*>(elsewhere->data);
      axes = std::move(*split);
    }
  }
  if (p.from == nullptr) {
    const std::vector<std::int64_t> stride = row_major_strides(shape);
    for (std::size_t k = 0; k < shape.size(); ++k) axes.push_back({{shape[k], stride[k]}});
    p.from = static_cast<const char*>(data.bytes());
  }
  std::vector<int> order = map.order;
  if (order.empty()) {
    order.resize(shape.size());
    std::iota(order.begin(), order.end(), 0);
  }
  for (int axis : order) {
    if (axis == map.panel_axis || axis == map.inner) continue;
    p.outer.insert(p.outer.end(), axes[axis].begin(), axes[axis].end());
    p.rows *= shape[axis];
  }
  if (map.panel_axis < 0) return p;
  p.lanes = shape[map.panel_axis];
  p.width = map.panel;
  p.lane_stride = axes[map.panel_axis].empty() ? 0 : axes[map.panel_axis][0].stride;
  if (map.inner >= 0 && !axes[map.inner].empty()) p.inner = axes[map.inner][0];
  return p;
}

// Elements that need not be aligned.
template <class T>
struct Source {
  const char* at = nullptr;
  Source operator+(std::int64_t elements) const { return {at + elements * static_cast<std::int64_t>(sizeof(T))}; }
  T operator[](std::int64_t i) const {
    T value;
    std::memcpy(&value, at + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
  }
};

// `count` rows whose elements lie next to each other in memory, lane by lane: a transposition, in blocks that stay in the
// nearest cache.
template <class T>
void copy_rows(Source<T> from, T* to, std::int64_t count, std::int64_t lanes, const Packing& p) {
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t row = 0; row < count; row += kBlock) {
    const std::int64_t end = std::min(count, row + kBlock);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const Source<T> source = from + lane * p.lane_stride;
      for (std::int64_t r = row; r < end; ++r) to[r * p.width + lane] = source[r];
    }
  }
}

// One row whose lanes have several elements.
template <class T>
void copy_lanes(Source<T> from, T* to, std::int64_t lanes, const Packing& p) {
  for (std::int64_t k = 0; k < p.inner.size; ++k) {
    const Source<T> source = from + k * p.inner.stride;
    for (std::int64_t lane = 0; lane < lanes; ++lane) to[lane * p.inner.size + k] = source[lane * p.lane_stride];
  }
}

template <class T>
void pack_panel(Source<T> from, T* to, std::int64_t panel, const Packing& p) {
  const std::int64_t lanes = std::min(p.width, p.lanes - panel * p.width), row_size = p.width * p.inner.size;
  from = from + panel * p.width * p.lane_stride;
  to += panel * p.rows * row_size;
  if (lanes < p.width) std::fill_n(to, p.rows * row_size, T{0});
  const bool contiguous = p.inner.size == 1 && !p.outer.empty() && p.outer.back().stride == 1;
  const std::int64_t step = contiguous ? std::max<std::int64_t>(1, p.outer.back().size) : 1;
  std::vector<std::int64_t> at(p.outer.size(), 0);
  for (std::int64_t row = 0; row < p.rows; row += step, to += step * row_size) {
    Source<T> source = from;
    for (std::size_t k = 0; k < p.outer.size(); ++k) source = source + at[k] * p.outer[k].stride;
    if (p.inner.size > 1) {
      copy_lanes(source, to, lanes, p);
    } else if (contiguous) {
      copy_rows(source, to, step, lanes, p);
    } else if (p.lane_stride == 1) {
      std::memcpy(to, source.at, static_cast<std::size_t>(lanes) * sizeof(T));
    } else {
      for (std::int64_t lane = 0; lane < lanes; ++lane) to[lane] = source[lane * p.lane_stride];
    }
    for (std::size_t k = p.outer.size() - (contiguous ? 1 : 0); k-- > 0;) {
      if (++at[k] < p.outer[k].size) break;
      at[k] = 0;
    }
  }
}

// What the jobs of one constant share. The last one gives back the file's pages: the packed form is what is read from now on.
struct Packed {
  Packing packing;
  Tensor from, to;
  std::atomic<std::int64_t> left{0};

  void done() {
    if (left.fetch_sub(1) == 1) MappedFile::release(packing.from, from.byte_size());
  }
};

template <class T>
void add_jobs(const std::shared_ptr<Packed>& shared, std::vector<Job>& jobs) {
  constexpr std::int64_t kBytesPerJob = 4 << 20;
  const Packing& packing = shared->packing;
  const auto panel_bytes = static_cast<std::int64_t>(sizeof(T)) * packing.rows * packing.width * packing.inner.size;
  const std::int64_t per_job = std::max<std::int64_t>(1, kBytesPerJob / std::max<std::int64_t>(1, panel_bytes));
  T* to = shared->to.as_mutable<T>();
  for (std::int64_t begin = 0; begin < packing.panels(); begin += per_job) {
    const std::int64_t end = std::min(packing.panels(), begin + per_job);
    ++shared->left;
    jobs.push_back([shared, to, begin, end]() -> Result<void> {
      const Source<T> from{shared->packing.from};
      for (std::int64_t panel = begin; panel < end; ++panel) pack_panel(from, to, panel, shared->packing);
      shared->done();
      return {};
    });
  }
}

}  // namespace

Result<Tensor> prepare_constant(const Tensor& data, const std::vector<std::int64_t>& shape, const loop::StorageMap& map,
                                std::vector<Job>& jobs) {
  const Dim elements = loop::storage_elements(Shape(shape.begin(), shape.end()), map);
  auto shared = std::make_shared<Packed>();
  shared->packing = packing_of(data, shape, map);
  shared->from = data;
  shared->to = WEFT_TRY(Tensor::empty(data.dtype(), {elements.value()}));
  switch (bits(data.dtype())) {
    case 8:
      add_jobs<std::uint8_t>(shared, jobs);
      break;
    case 16:
      add_jobs<std::uint16_t>(shared, jobs);
      break;
    case 32:
      add_jobs<std::uint32_t>(shared, jobs);
      break;
    case 64:
      add_jobs<std::uint64_t>(shared, jobs);
      break;
    default:
      return unsupported("unsupported-dtype", std::string("laying out constants of ") + name(data.dtype()));
  }
  return shared->to;
}

Result<Tensor> prepare_constant(const Tensor& data, const std::vector<std::int64_t>& shape, const loop::StorageMap& map) {
  std::vector<Job> jobs;
  Tensor result = WEFT_TRY(prepare_constant(data, shape, map, jobs));
  for (const Job& job : jobs) WEFT_TRY(job());
  return result;
}

}  // namespace weft::compiler
