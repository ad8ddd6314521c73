// Gathers and scatters. Indices come from both ends; several updates meet in one element.
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

struct Take {
  Shape x, index;
  std::int64_t axis;  // or the number of batch axes
  Dim limit;          // of the index
};

std::vector<Take> takes(Op op) {
  switch (op) {
    case Op::Gather:
      return {{{n() + 1, m()}, {5}, 0, n() + 1}, {{5, 7}, {3, 2}, 1, 7}, {{7, 33}, {n(), m()}, 0, 7}, {{5, 7}, {}, 0, 5}, {{3, 0}, {4}, 0, 3}};
    case Op::GatherElements:
    case Op::ScatterElements:
      return {{{n() + 2, m()}, {n(), m()}, 0, n() + 2}, {{5, 7}, {5, 9}, 1, 7}, {{5, 7}, {3, 7}, 0, 5}, {{3, 4}, {0, 4}, 0, 3}, {{65}, {33}, 0, 65}};
    case Op::GatherNd:
      return {{{4, 5, 3}, {6, 2}, 0, 4}, {{4, 5, 3}, {4, 2, 1}, 1, 5}, {{4, 4, 4}, {n(), 3}, 0, 4}, {{n() + 1, m()}, {7, 1}, 0, n() + 1}};
    case Op::ScatterNd:
      return {{{4, 5, 3}, {6, 2}, 0, 4}, {{4, 4, 4}, {n(), 3}, 0, 4}, {{n() + 1, m()}, {7, 1}, 0, n() + 1}};
    default: return {};
  }
}

// Indices are tried in each integer dtype with f32, and in i64 with each dtype of values.
std::vector<std::pair<DType, DType>> index_pairs(Op op) {
  std::vector<std::pair<DType, DType>> pairs;
  for (DType t : dtypes_of(graph::info(op).dtypes)) pairs.emplace_back(t, DType::I64);
  for (DType t : dtypes_of("i")) {
    if (t != DType::I64 && bits(t) >= 8) pairs.emplace_back(DType::F32, t);
  }
  return pairs;
}

std::string named(const Take& take, DType t, DType index) {
  return text(t, take.x) + "/" + text(index, take.index) + "/axis=" + std::to_string(take.axis);
}

// The shape of what is written: as infer has it of what the matching gather reads.
Shape updates_of(Op op, const Take& take) {
  if (op == Op::ScatterElements) return take.index;
  Shape shape(take.index.begin(), take.index.end() - 1);
  shape.insert(shape.end(), take.x.begin() + take.index.back().value(), take.x.end());
  return shape;
}

}  // namespace

void sweep_gather(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (const auto& pair : index_pairs(op)) {
    for (const Take& take : takes(op)) {
      Maker make(about.name, named(take, pair.first, pair.second));
      const ValueId x = make.input(pair.first, take.x, Draw::Any);
      const ValueId index = make.input(pair.second, take.index, Draw::Index, take.limit);
      const Attr key = op == Op::GatherNd ? Attr::Batch : Attr::Axis;
      make.tolerance(0).done(into, {make.b().node(op, {x, index}, Attrs().set(key, take.axis))});
    }
  }
}

void sweep_scatter(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (const auto& pair : index_pairs(op)) {
    const DType t = pair.first;
    for (const char* combine : {"none", "add", "mul", "max", "min"}) {
      if (combine != std::string("none") && (is_bool(t) || is_complex(t) || is_string(t))) continue;
      for (const Take& take : takes(op)) {
        Maker make(about.name, named(take, t, pair.second) + "/" + combine);
        const ValueId x = make.input(t, take.x), index = make.input(pair.second, take.index, Draw::Index, take.limit);
        const ValueId updates = make.input(t, updates_of(op, take));
        Attrs attrs = Attrs().set(Attr::Combine, std::string(combine));
        if (op == Op::ScatterElements) attrs.set(Attr::Axis, take.axis);
        make.tolerance(is_float(t) ? 4 : 0, is_float(t) ? 16 * eps(t) : 0).done(into, {make.b().node(op, {x, index, updates}, attrs)});
      }
    }
  }
}

}  // namespace weft::sweep
