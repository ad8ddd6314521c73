// Control flow and named regions: what regions take and give must match what the node takes and
// gives.
#include <fmt/format.h>

#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

Types output_types(const Graph& region) {
  Types types;
  for (ValueId v : region.outputs()) types.push_back(region.type(v));
  return types;
}

Result<void> expect_regions(const InferInput& in, std::size_t count) {
  if (in.regions.size() != count) {
    return infer_error(in, "bad-region", "wrong number of regions")
        .expected(std::to_string(count))
        .found(std::to_string(in.regions.size()));
  }
  for (const auto& region : in.regions) {
    if (region == nullptr) return infer_error(in, "bad-region", "a region is missing");
  }
  return {};
}

Result<void> expect_inputs(const InferInput& in, const Graph& region, const Types& given) {
  if (region.inputs().size() != given.size()) {
    return infer_error(in, "bad-region",
                       fmt::format("region @{} takes another number of inputs", region.name))
        .expected(std::to_string(given.size()))
        .found(std::to_string(region.inputs().size()));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Type& type = region.type(region.inputs()[i]);
    if (!same_type(in.facts, given[i], type)) {
      return infer_error(in, "bad-region",
                         fmt::format("input {} of region @{} has another type than its operand", i,
                                     region.name))
          .expected(str(given[i]))
          .found(str(type));
    }
  }
  return {};
}

// Carried values come out as they went in; `offset` outputs stand before them.
Result<void> expect_carried(const InferInput& in, const Types& outputs, std::size_t offset,
                            const Types& carried) {
  if (outputs.size() < offset + carried.size()) {
    return infer_error(in, "bad-region", "the region gives fewer values than are carried")
        .expected(fmt::format("at least {}", offset + carried.size()))
        .found(std::to_string(outputs.size()));
  }
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const Type& type = outputs[offset + i];
    if (same_type(in.facts, carried[i], type)) continue;
    const std::string what =
        fmt::format("{}: carried value {} changes its type", info(in.op).name, i);
    const bool wrong = type.dtype != carried[i].dtype;
    Error e = wrong ? user_error("carried-type", what) : unsupported("carried-shape", what);
    return e.expected(str(carried[i])).found(str(type));
  }
  return {};
}

Result<std::size_t> count_attr(const InferInput& in, Attr attr, std::size_t limit) {
  const std::int64_t n = in.attrs.integer(attr);
  if (n >= 0 && static_cast<std::size_t>(n) <= limit) return static_cast<std::size_t>(n);
  return infer_error(in, "bad-attribute",
                     fmt::format("'{}' counts more operands than there are", info(attr).name))
      .expected(fmt::format("0 to {}", limit))
      .found(std::to_string(n));
}

Type stacked(const Dim& count, const Type& type) {
  Type result{type.dtype, {count}};
  result.shape.insert(result.shape.end(), type.shape.begin(), type.shape.end());
  return result;
}

Result<Types> infer_if(const InferInput& in) {
  WEFT_TRY(expect_scalar(in, 0, DType::Bool));
  WEFT_TRY(expect_regions(in, 2));
  const Types given(in.operands.begin() + 1, in.operands.end());
  for (const auto& region : in.regions) WEFT_TRY(expect_inputs(in, *region, given));
  const Types then = output_types(*in.regions[0]);
  const Types other = output_types(*in.regions[1]);
  if (then.size() != other.size()) {
    return infer_error(in, "bad-region", "the branches give different numbers of values")
        .expected(std::to_string(then.size()))
        .found(std::to_string(other.size()));
  }
  Types results = then;
  const Shape symbols = in.attrs.has(Attr::Symbol) ? in.attrs.dims(Attr::Symbol) : Shape{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (same_type(in.facts, then[i], other[i])) continue;
    const std::string what = fmt::format("if: the branches give result {} different types", i);
    const bool same_rank = then[i].rank() == other[i].rank();
    for (int d = 0; same_rank && d < then[i].rank() && next <= symbols.size(); ++d) {
      if (in.facts.known_equal(then[i].shape[d], other[i].shape[d])) continue;
      if (next < symbols.size()) results[i].shape[d] = symbols[next];
      ++next;
    }
    if (then[i].dtype == other[i].dtype && same_rank && next <= symbols.size()) continue;
    Error e = then[i].dtype != other[i].dtype ? user_error("if-branch-dtypes", what)
                                              : unsupported("if-branch-shapes", what);
    return e.expected(str(then[i])).found(str(other[i]));
  }
  return results;
}

Result<Types> infer_loop(const InferInput& in) {
  WEFT_TRY(expect_scalar(in, 0, DType::I64));
  WEFT_TRY(expect_scalar(in, 1, DType::Bool));
  WEFT_TRY(expect_regions(in, 1));
  const std::size_t count = WEFT_TRY(count_attr(in, Attr::Carried, in.operands.size() - 2));
  const Types carried(in.operands.begin() + 2,
                      in.operands.begin() + 2 + static_cast<std::ptrdiff_t>(count));
  WEFT_TRY(expect_inputs(in, *in.regions[0], in.operands));
  const Types outputs = output_types(*in.regions[0]);
  WEFT_TRY(expect_carried(in, outputs, 1, carried));
  if (!(outputs[0] == Type{DType::Bool, {}})) {
    return infer_error(in, "bad-region", "the region's first value must be the condition")
        .expected("bool[]")
        .found(str(outputs[0]));
  }
  const std::size_t scans = outputs.size() - 1 - count;
  const Shape sizes = in.attrs.has(Attr::Symbol) ? in.attrs.dims(Attr::Symbol) : Shape{};
  WEFT_TRY(expect_count(in, Attr::Symbol, sizes.size(), scans));
  Types results = carried;
  for (std::size_t i = 0; i < scans; ++i)
    results.push_back(stacked(sizes[i], outputs[1 + count + i]));
  return results;
}

Result<Types> infer_scan_region(const InferInput& in) {
  WEFT_TRY(expect_regions(in, 1));
  const std::size_t count = WEFT_TRY(count_attr(in, Attr::Carried, in.operands.size()));
  const std::size_t xs = WEFT_TRY(count_attr(in, Attr::Xs, in.operands.size() - count));
  if (xs == 0) return infer_error(in, "bad-attribute", "there is nothing to scan over: xs is 0");
  Types given = in.operands;
  const Type& first = in.operands[count];
  for (std::size_t i = count; i < count + xs; ++i) {
    Shape& shape = given[i].shape;
    if (shape.empty())
      return infer_error(in, "rank-mismatch",
                         fmt::format("operand {} is scanned over, but a scalar", i));
    WEFT_TRY(expect_equal(in,
                          fmt::format("operand {} has another length than operand {}", i, count),
                          first.shape[0], shape[0]));
    shape.erase(shape.begin());
  }
  WEFT_TRY(expect_inputs(in, *in.regions[0], given));
  const Types outputs = output_types(*in.regions[0]);
  Types results(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(count));
  WEFT_TRY(expect_carried(in, outputs, 0, results));
  for (std::size_t i = count; i < outputs.size(); ++i)
    results.push_back(stacked(first.shape[0], outputs[i]));
  return results;
}

Result<Types> infer_composite(const InferInput& in) {
  WEFT_TRY(expect_regions(in, 1));
  WEFT_TRY(expect_inputs(in, *in.regions[0], in.operands));
  for (const Node& node : in.regions[0]->nodes()) {
    if (!is_pure(node)) {
      return infer_error(in, "bad-region",
                         fmt::format("the body holds {}, which is not pure", info(node.op).name));
    }
  }
  return output_types(*in.regions[0]);
}

}  // namespace

Result<Types> infer_control(const InferInput& in) {
  switch (in.op) {
    case Op::If:
      return infer_if(in);
    case Op::Loop:
      return infer_loop(in);
    case Op::Scan:
      return infer_scan_region(in);
    case Op::Composite:
      return infer_composite(in);
    case Op::CustomCall:
      return parse_types(in.attrs.str(Attr::Types));
    default:
      return internal_error("a control op without inference");
  }
}

}  // namespace weft::graph
