#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/wide.h"
#include "runtime/hostops/hostops.h"

namespace weft::runtime {
namespace {

struct Box {
  double y0, x0, y1, x1;
  double area() const { return (y1 - y0) * (x1 - x0); }
};

Box read_box(const double* v, bool center) {
  if (center) return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (height <= 0 || width <= 0) return 0;
  const double common = height * width;
  const double all = a.area() + b.area() - common;
  return all > 0 ? common / all : 0;
}

// The kept boxes of one class, best first; of equal scores the lower index first.
std::vector<std::int64_t> select(const std::vector<Box>& boxes, const double* scores, const NmsOptions& options) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (scores[i] > options.score_threshold) order.push_back(static_cast<std::int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
  std::vector<std::int64_t> kept;
  for (std::int64_t candidate : order) {
    if (static_cast<std::int64_t>(kept.size()) >= options.max_per_class) break;
    const bool hidden = std::any_of(kept.begin(), kept.end(), [&](std::int64_t k) {
      return overlap(boxes[candidate], boxes[k]) > options.iou_threshold;
    });
    if (!hidden) kept.push_back(candidate);
  }
  return kept;
}

}  // namespace

Result<Tensors> non_max_suppression(const Tensor& boxes, const Tensor& scores, const NmsOptions& options) {
  const auto &bs = boxes.shape(), &ss = scores.shape();
  if (bs.size() != 3 || ss.size() != 3 || bs[2] != 4 || ss[0] != bs[0] || ss[2] != bs[1]) {
    return user_error("shape-mismatch", "boxes are [batch, n, 4] and scores [batch, classes, n]")
        .found(shape_str(bs) + " and " + shape_str(ss));
  }
  const std::int64_t batches = bs[0], n = bs[1], classes = ss[1];
  const std::vector<double> coordinates = widen<double>(boxes), values = widen<double>(scores);
  std::vector<std::array<std::int64_t, 3>> found;
  std::vector<Box> batch_boxes(static_cast<std::size_t>(n));
  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t i = 0; i < n; ++i) {
      batch_boxes[i] = read_box(coordinates.data() + (b * n + i) * 4, options.center);
    }
    for (std::int64_t c = 0; c < classes; ++c) {
      for (std::int64_t i : select(batch_boxes, values.data() + (b * classes + c) * n, options)) {
        found.push_back({b, c, i});
      }
    }
  }
  Tensor out = WEFT_TRY(Tensor::empty(DType::I64, {static_cast<std::int64_t>(found.size()), 3}));
  auto* p = out.as_mutable<std::int64_t>();
  for (std::size_t i = 0; i < found.size(); ++i) std::copy(found[i].begin(), found[i].end(), p + i * 3);
  return Tensors{out};
}

Result<Tensors> non_max_suppression(const Tensors& operands, bool center) {
  WEFT_CHECK(operands.size() == 5, "non_max_suppression has five operands");
  for (int i = 2; i < 5; ++i) {
    if (operands[i].size() != 1) {
      return user_error("shape-mismatch", fmt::format("operand {} of non_max_suppression is one number", i))
          .found(shape_str(operands[i].shape()));
    }
  }
  const NmsOptions options{operands[2].i64(0), operands[3].f64(0), operands[4].f64(0), center};
  return non_max_suppression(operands[0], operands[1], options);
}

}  // namespace weft::runtime
