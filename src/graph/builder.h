// Builder: writes nodes into a graph with one call per prim, carrying the origin. Composites (ops/) and the frontends
// build through it. A failed call is remembered: later calls return invalid values and status() tells the first error,
// so that building code stays free of checks. Scalars and broadcasting helpers keep the prims' strictness out of the
// caller's way.
// An invalid value is kInvalid. Helpers add no node where the result would equal the operand (reshape to the same
// shape, identity transpose, full slice, zero padding, concat of one, reduction over no axis). Negative axes count
// from the end.
#pragma once

#include "graph/graph.h"

namespace weft::graph {

constexpr ValueId kInvalid = -1;

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  Result<void> status() const;  // the first error, if any
  void fail(Error error);       // remember an error (the first one is kept)
  // With folding, a pure node whose operands are all constants becomes a constant at once when its result has at most
  // kFoldBytes: what an importer needs to see through shape arithmetic and conditions.
  void set_folding(bool on) { folding_ = on; }
  static constexpr std::size_t kFoldBytes = 64 << 10;
  void set_origin(std::shared_ptr<const Origin> origin) { origin_ = std::move(origin); }
  const std::shared_ptr<const Origin>& origin() const { return origin_; }

  // Any prim; the single-result form WEFT_CHECKs that there is one result.
  std::vector<ValueId> nodes(Op op, std::vector<ValueId> operands, Attrs attrs = {},
                             std::vector<std::shared_ptr<const Graph>> regions = {});
  ValueId node(Op op, std::vector<ValueId> operands, Attrs attrs = {},
               std::vector<std::shared_ptr<const Graph>> regions = {});

  const Type& type(ValueId v) const;  // of an invalid value: a scalar f32
  const Shape& shape(ValueId v) const { return type(v).shape; }
  DType dtype(ValueId v) const { return type(v).dtype; }

  ValueId constant(Tensor data);
  ValueId scalar(DType dtype, double value);              // rank 0
  ValueId splat(const Type& type, double value);          // a scalar broadcast to a shape
  ValueId like(ValueId v, double value) { return splat(type(v), value); }
  ValueId shape_value(Shape dims);                        // i64[k]; a constant when all are known
  ValueId iota(DType dtype, Shape shape, std::int64_t axis);

  ValueId unary(Op op, ValueId x) { return node(op, {x}); }
  ValueId binary(Op op, ValueId a, ValueId b);  // broadcasts both to their common shape (NumPy rules)
  ValueId select(ValueId cond, ValueId a, ValueId b);  // broadcasts all three
  ValueId cast(ValueId x, DType dtype, bool saturate = true);  // none if it is already that dtype

  ValueId reshape(ValueId x, Shape shape);                // none if equal
  // x, said to have this shape: sizes that may be equal are taken to be, by reshapes that are checked when the sizes are
  // known. Sizes that differ for certain, and a shape of another rank, are left for what uses the value to refuse.
  ValueId assert_shape(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, std::vector<std::int64_t> axes);
  // NumPy rules: trailing axes align. A size that may equal the target's is asserted to, by a reshape that is checked
  // when the sizes are known.
  ValueId broadcast_to(ValueId x, Shape shape);
  ValueId broadcast_in(ValueId x, Shape shape, std::vector<std::int64_t> axes);
  ValueId slice(ValueId x, Shape starts, Shape sizes, std::vector<std::int64_t> steps);
  ValueId slice_axis(ValueId x, std::int64_t axis, Dim start, Dim size, std::int64_t step = 1);
  ValueId pad(ValueId x, Shape lo, Shape hi, ValueId value);
  ValueId concat(std::vector<ValueId> xs, std::int64_t axis);
  ValueId gather(ValueId x, ValueId indices, std::int64_t axis);
  ValueId reduce(Op op, ValueId x, std::vector<std::int64_t> axes, bool keepdims = false);  // arg ops: one axis
  ValueId dot(ValueId a, ValueId b, std::vector<std::int64_t> lhs_batch, std::vector<std::int64_t> rhs_batch,
              std::vector<std::int64_t> lhs_contract, std::vector<std::int64_t> rhs_contract, DType dtype);
  ValueId matmul(ValueId a, ValueId b);  // NumPy matmul rules, dtype of a

  // The common shape by NumPy's rules. Sizes that may be equal count as equal, a constant before a symbolic one;
  // sizes that no binding makes equal, neither of them 1, are an error.
  Result<Shape> broadcast_shapes(const std::vector<Shape>& shapes) const;

 private:
  std::vector<ValueId> folded(NodeId id);
  ValueId assert_sizes(ValueId x, const Shape& shape);
  void pair_sizes(ValueId& a, const std::vector<std::int64_t>& a_axes, ValueId& b,
                  const std::vector<std::int64_t>& b_axes);
  ValueId assert_size(ValueId x, std::size_t axis, const Dim& size);
  bool valid(const std::vector<ValueId>& values) const;

  Graph& graph_;
  std::shared_ptr<const Origin> origin_;
  bool folding_ = false;
  std::optional<Error> error_;
};

}  // namespace weft::graph
