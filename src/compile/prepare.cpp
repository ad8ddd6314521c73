#include "compile/prepare.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>

#include "base/bytes.h"

namespace weft::compiler {

namespace {

// Where the elements of one panel come from. A constant without panels is one panel of one lane.
struct Packing {
  struct Axis {
    std::int64_t size = 0, stride = 0;
  };
  std::vector<Axis> outer;  // axes that count within a panel, outermost first
  std::int64_t rows = 1;    // of a panel: the product of their sizes
  std::int64_t lanes = 1;   // in all panels
  std::int64_t width = 1;   // lanes of a panel
  std::int64_t lane_stride = 0;

  std::int64_t panels() const { return (lanes + width - 1) / width; }
};

Packing packing_of(const std::vector<std::int64_t>& shape, const loop::StorageMap& map) {
  const std::vector<std::int64_t> stride = row_major_strides(shape);
  std::vector<int> order = map.order;
  if (order.empty()) {
    order.resize(shape.size());
    std::iota(order.begin(), order.end(), 0);
  }
  Packing p;
  for (int axis : order) {
    if (axis == map.panel_axis) continue;
    p.outer.push_back({shape[axis], stride[axis]});
    p.rows *= shape[axis];
  }
  if (map.panel_axis < 0) return p;
  p.lanes = shape[map.panel_axis];
  p.width = map.panel;
  p.lane_stride = stride[map.panel_axis];
  return p;
}

// `count` rows whose elements lie next to each other in memory, lane by lane: a transposition, in blocks that stay in the
// nearest cache.
template <class T>
void copy_rows(const T* from, T* to, std::int64_t count, std::int64_t lanes, const Packing& p) {
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t row = 0; row < count; row += kBlock) {
    const std::int64_t end = std::min(count, row + kBlock);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const T* source = from + lane * p.lane_stride;
      for (std::int64_t r = row; r < end; ++r) to[r * p.width + lane] = source[r];
    }
  }
}

template <class T>
void pack_panel(const T* from, T* to, std::int64_t panel, const Packing& p) {
  const std::int64_t lanes = std::min(p.width, p.lanes - panel * p.width);
  from += panel * p.width * p.lane_stride;
  to += panel * p.rows * p.width;
  if (lanes < p.width) std::fill_n(to, p.rows * p.width, T{0});
  const bool contiguous = !p.outer.empty() && p.outer.back().stride == 1;
  const std::int64_t step = contiguous ? std::max<std::int64_t>(1, p.outer.back().size) : 1;
  std::vector<std::int64_t> at(p.outer.size(), 0);
  for (std::int64_t row = 0; row < p.rows; row += step, to += step * p.width) {
    const T* source = from;
    for (std::size_t k = 0; k < p.outer.size(); ++k) source += at[k] * p.outer[k].stride;
    if (contiguous) {
      copy_rows(source, to, step, lanes, p);
    } else if (p.lane_stride == 1) {
      std::copy_n(source, lanes, to);
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
    if (left.fetch_sub(1) == 1) MappedFile::release(from.data(), from.byte_size());
  }
};

template <class T>
void add_jobs(const std::shared_ptr<Packed>& shared, std::vector<Job>& jobs) {
  constexpr std::int64_t kBytesPerJob = 4 << 20;
  const Packing& packing = shared->packing;
  const auto panel_bytes = static_cast<std::int64_t>(sizeof(T)) * packing.rows * packing.width;
  const std::int64_t per_job = std::max<std::int64_t>(1, kBytesPerJob / std::max<std::int64_t>(1, panel_bytes));
  T* to = shared->to.as_mutable<T>();
  for (std::int64_t begin = 0; begin < packing.panels(); begin += per_job) {
    const std::int64_t end = std::min(packing.panels(), begin + per_job);
    ++shared->left;
    jobs.push_back([shared, to, begin, end]() -> Result<void> {
      const T* from = shared->from.as<T>();
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
  shared->packing = packing_of(shape, map);
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
