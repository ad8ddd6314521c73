// Sequences and optional values. Importing sees through them: a sequence is a list of values whose length is known, so
// that what is left in the graph are its elements.
#include <fmt/format.h>

#include "frontend/onnx/import/importer.h"
#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Op;

constexpr std::int64_t kMaxLength = 4096;  // of a sequence: each element is values of its own in the graph

Result<Sequence> sequence_of(NodeContext& c, int operand) {
  const Sequence* s = c.sequence(operand);
  if (!s) return c.bad(fmt::format("input {} must be a sequence", operand));
  if (s->absent) return c.bad(fmt::format("input {} is an optional value that holds nothing", operand));
  return *s;
}

// A known position among `count`; negative ones count from the end.
Result<std::int64_t> position(NodeContext& c, int operand, std::int64_t count) {
  const std::vector<std::int64_t> values = WEFT_TRY(c.ints(operand, "a position"));
  if (values.size() != 1) return c.bad("a position must have one element");
  if (values[0] < -count || values[0] >= count) {
    return c.bad("the position is outside the sequence").expected(fmt::format("{} to {}", -count, count - 1)).found(std::to_string(values[0]));
  }
  return values[0] < 0 ? values[0] + count : values[0];
}

Result<void> sequence_empty(NodeContext& c) {
  c.out(0, Sequence{});
  return {};
}

Result<void> sequence_construct(NodeContext& c) {
  Sequence s;
  for (int i = 0; i < c.input_count(); ++i) s.items.push_back(c.in(i));
  c.out(0, std::move(s));
  return {};
}

Result<void> sequence_insert(NodeContext& c) {
  Sequence s = WEFT_TRY(sequence_of(c, 0));
  const auto length = static_cast<std::int64_t>(s.items.size());
  if (length >= kMaxLength) return c.missing("a sequence of that many elements");
  // Before an element, counted from either end, or after the last.
  std::int64_t at = length;
  if (c.has(2)) {
    const std::vector<std::int64_t> given = WEFT_TRY(c.ints(2, "a position"));
    if (given.size() != 1 || given[0] < -length || given[0] > length) return c.bad("the position is outside the sequence");
    at = given[0] < 0 ? given[0] + length : given[0];
  }
  s.items.insert(s.items.begin() + at, c.in(1));
  c.out(0, std::move(s));
  return {};
}

Result<void> sequence_erase(NodeContext& c) {
  Sequence s = WEFT_TRY(sequence_of(c, 0));
  const auto length = static_cast<std::int64_t>(s.items.size());
  if (length == 0) return c.bad("the sequence is empty");
  s.items.erase(s.items.begin() + (c.has(1) ? WEFT_TRY(position(c, 1, length)) : length - 1));
  c.out(0, std::move(s));
  return {};
}

// The elements side by side along a new axis; they must be of one shape.
ValueId stacked(NodeContext& c, const std::vector<ValueId>& items, std::int64_t axis) {
  std::vector<ValueId> parts;
  for (ValueId v : items) {
    Shape shape = c.b.shape(v);
    shape.insert(shape.begin() + axis, Dim(1));
    parts.push_back(c.b.reshape(v, std::move(shape)));
  }
  return c.b.concat(std::move(parts), axis);
}

Result<void> sequence_at(NodeContext& c) {
  const Sequence s = WEFT_TRY(sequence_of(c, 0));
  if (c.dims(1)) {
    c.out(0, s.items[WEFT_TRY(position(c, 1, static_cast<std::int64_t>(s.items.size())))]);
    return {};
  }
  // A position known only at run time chooses among elements of one type.
  for (ValueId v : s.items) {
    if (!(c.b.type(v) == c.b.type(s.items[0]))) return c.missing("a position known only at run time, among elements of several shapes");
  }
  if (s.items.empty()) return c.bad("the sequence is empty");
  c.out(0, c.b.gather(stacked(c, s.items, 0), c.b.reshape(c.in(1), {}), 0));
  return {};
}

Result<void> sequence_length(NodeContext& c) {
  const Sequence s = WEFT_TRY(sequence_of(c, 0));
  c.out(0, c.b.scalar(DType::I64, static_cast<double>(s.items.size())));
  return {};
}

// The sizes of the parts: given, or parts of one size with a smaller rest.
Result<std::vector<Dim>> parts_of(NodeContext& c, const Dim& extent) {
  if (c.has(1) && c.rank(1) == 1) {
    const auto sizes = c.dims(1);
    if (!sizes) return c.missing("split known only at run time");
    for (const Dim& size : *sizes) {
      if (c.b.graph().facts.known_less(size, Dim(0))) return c.bad("a part has a negative size").found(size.str());
    }
    return *sizes;
  }
  if (!extent.is_const()) return c.missing("a number of parts known only at run time");
  std::int64_t part = 1;
  if (c.has(1)) {
    const std::vector<std::int64_t> given = WEFT_TRY(c.ints(1, "split"));
    if (given.size() != 1 || given[0] < 1) return c.bad("split must be positive");
    part = given[0];
  }
  std::vector<Dim> sizes;
  if (extent.value() / part > kMaxLength) return c.missing("a sequence of that many elements");
  for (std::int64_t at = 0; at < extent.value(); at += part) sizes.push_back(std::min(part, extent.value() - at));
  return sizes;
}

Result<void> split_to_sequence(NodeContext& c) {
  const std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 0), c.rank(0)));
  const Shape shape = c.shape(0);
  const std::vector<Dim> parts = WEFT_TRY(parts_of(c, shape[axis]));
  Sequence s;
  Dim start;
  for (const Dim& size : parts) {
    ValueId part = c.b.slice_axis(c.in(0), axis, start, size);
    if (!c.has(1) && c.integer("keepdims", 1) == 0) {
      Shape rest = shape;
      rest.erase(rest.begin() + axis);
      part = c.b.reshape(part, std::move(rest));
    }
    s.items.push_back(part);
    start = start + size;
  }
  if (start.is_const() && shape[axis].is_const() && !(start == shape[axis])) {
    return c.bad("split does not add up to the axis").expected(shape[axis].str()).found(start.str());
  }
  c.out(0, std::move(s));
  return {};
}

Result<void> concat_from_sequence(NodeContext& c) {
  const Sequence s = WEFT_TRY(sequence_of(c, 0));
  if (s.items.empty()) return c.bad("the sequence is empty");
  const bool fresh = c.integer("new_axis", 0) != 0;
  const std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 0), c.b.type(s.items[0]).rank() + (fresh ? 1 : 0)));
  c.out(0, fresh ? stacked(c, s.items, axis) : c.b.concat(s.items, axis));
  return {};
}

// The body once for each element of the first sequence; other inputs are sequences as long, or the same for all.
Result<void> sequence_map(NodeContext& c) {
  const GraphPtr body = c.subgraph("body");
  if (!body) return c.bad("there is no body");
  const std::size_t length = WEFT_TRY(sequence_of(c, 0)).items.size();
  std::vector<Sequence> results(body->outputs.size());
  for (std::size_t k = 0; k < length; ++k) {
    std::vector<ValueId> arguments;
    for (int i = 0; i < c.input_count(); ++i) {
      const Sequence* s = c.sequence(i);
      if (s && s->items.size() != length) return c.bad("the sequences have different lengths");
      arguments.push_back(s ? s->items[k] : c.in(i));
    }
    const std::vector<ValueId> made = WEFT_TRY(c.importer().inline_subgraph(*body, arguments));
    for (std::size_t o = 0; o < made.size(); ++o) results[o].items.push_back(made[o]);
  }
  for (std::size_t o = 0; o < results.size(); ++o) c.out(static_cast<int>(o), std::move(results[o]));
  return {};
}

// An optional value is what it holds: a value or a sequence.
Result<void> pass(NodeContext& c) {
  if (const Sequence* s = c.sequence(0)) {
    c.out(0, Sequence(*s));
  } else {
    c.out(0, c.in(0));
  }
  return {};
}

Result<void> optional(NodeContext& c) {
  if (c.has(0)) return pass(c);
  c.out(0, Sequence{{}, true});
  return {};
}

Result<void> optional_get_element(NodeContext& c) {
  if (c.sequence(0) && c.sequence(0)->absent) return c.bad("the optional value holds nothing");
  return pass(c);
}

Result<void> optional_has_element(NodeContext& c) {
  const bool there = c.has(0) && !(c.sequence(0) && c.sequence(0)->absent);
  Tensor t = WEFT_TRY(Tensor::zeros(DType::Bool, {}));
  t.set_i64(0, there ? 1 : 0);
  c.out(0, c.b.constant(std::move(t)));
  return {};
}

constexpr OpEntry kSequenceOps[] = {
    {"SequenceEmpty", 11, kOpsetMax, 0, 0, "dtype", sequence_empty},
    {"SequenceConstruct", 11, kOpsetMax, 1, -1, "", sequence_construct},
    {"SequenceInsert", 11, kOpsetMax, 2, 3, "", sequence_insert, "", true},
    {"SequenceErase", 11, kOpsetMax, 1, 2, "", sequence_erase, "", true},
    {"SequenceAt", 11, kOpsetMax, 2, 2, "", sequence_at, "", true},
    {"SequenceLength", 11, kOpsetMax, 1, 1, "", sequence_length, "", true},
    {"SplitToSequence", 11, kOpsetMax, 1, 2, "axis keepdims", split_to_sequence},
    {"ConcatFromSequence", 11, kOpsetMax, 1, 1, "axis new_axis", concat_from_sequence, "", true},
    {"SequenceMap", 17, kOpsetMax, 1, -1, "body", sequence_map, "", true},
    {"Optional", 15, kOpsetMax, 0, 1, "type", optional, "", true},
    {"OptionalGetElement", 15, kOpsetMax, 1, 1, "", optional_get_element, "", true},
    {"OptionalHasElement", 15, kOpsetMax, 0, 1, "", optional_has_element, "", true},
};

}  // namespace

OpTable sequence_ops() { return {kSequenceOps, std::size(kSequenceOps)}; }

}  // namespace weft::onnx
