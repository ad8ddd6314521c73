#include <algorithm>

#include "graph/interpret/combine.h"
#include "graph/interpret/elements.h"
#include "graph/interpret/indexing.h"

namespace weft::graph::interpreter {
namespace {

struct Placement {
  Sizes offsets;
  std::int64_t length;  // elements of each slice
};

// Of several updates of one element the last in row-major order stays.
Result<Tensor> overwrite(const Tensor& x, const Tensor& updates, const Placement& place) {
  const Tensor source = WEFT_TRY(spread(x)), values = WEFT_TRY(spread(updates));
  Tensor y = WEFT_TRY(Tensor::empty(source.dtype(), source.shape()));
  if (y.size() > 0) {
    with_carrier(source.dtype(), [&](auto carrier) {
      using T = decltype(carrier);
      T* out = mutable_elements<T>(y);
      std::copy_n(elements<T>(source), source.size(), out);
      const T* from = elements<T>(values);
      for (std::size_t i = 0; i < place.offsets.size(); ++i) {
        std::copy_n(from + static_cast<std::int64_t>(i) * place.length, place.length, out + place.offsets[i]);
      }
    });
  }
  return gathered(std::move(y), x.dtype());
}

// Combined in the wide type and rounded once.
Result<Tensor> combine(const Tensor& x, const Tensor& updates, const Placement& place, Meet how) {
  return with_wide(x.dtype(), [&](auto w) -> Result<Tensor> {
    using W = decltype(w);
    std::vector<W> values = widen<W>(x);
    const std::vector<W> news = widen<W>(updates);
    for (std::size_t i = 0; i < place.offsets.size(); ++i) {
      for (std::int64_t j = 0; j < place.length; ++j) {
        W& to = values[place.offsets[i] + j];
        to = meet(how, to, news[static_cast<std::int64_t>(i) * place.length + j]);
      }
    }
    return narrow(x.dtype(), x.shape(), values);
  });
}

Result<Placement> placement(const Eval& e) {
  const Tensor &x = e.in[0], &indices = e.in[1];
  if (e.op() == Op::ScatterElements) {
    return Placement{WEFT_TRY(element_offsets(e, x, indices, e.attrs().integer(Attr::Axis))), 1};
  }
  const Sizes& shape = indices.shape();
  Placement p{WEFT_TRY(tuple_offsets(e, x, indices, 0)), 1};
  p.length = count_of(x.shape(), static_cast<std::size_t>(shape.back()), x.shape().size());
  return p;
}

}  // namespace

Result<Tensors> eval_scatter(Eval& e) {
  const Placement place = WEFT_TRY(placement(e));
  const Tensor &x = e.in[0], &updates = e.in[2];
  if (updates.size() != static_cast<std::int64_t>(place.offsets.size()) * place.length) {
    return e.error("shape-mismatch", "the updates do not fit the indices")
        .expected(shape_str(e.in[1].shape()))
        .found(shape_str(updates.shape()));
  }
  const std::string& how = e.attrs().str(Attr::Combine);
  if (how == "none") return one(overwrite(x, updates, place));
  const bool ordered = how == "max" || how == "min";
  if (is_string(x.dtype()) || (is_complex(x.dtype()) && ordered)) {
    return e.error("dtype-mismatch", "combine " + how + " of " + name(x.dtype()));
  }
  if (ordered) return one(combine(x, updates, place, how == "max" ? Meet::Max : Meet::Min));
  return one(combine(x, updates, place, how == "mul" ? Meet::Mul : Meet::Add));
}

}  // namespace weft::graph::interpreter
