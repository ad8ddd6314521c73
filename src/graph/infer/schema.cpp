// The checks that the op table alone decides: operand and region counts, dtype classes, attributes,
// Same and Bool rules.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

struct ClassName {
  char letter;
  DTypeClass cls;
  const char* name;
};
constexpr ClassName kClasses[] = {
    {'b', DTypeClass::Bool, "bool"},
    {'i', DTypeClass::Int, "signed integer"},
    {'u', DTypeClass::UInt, "unsigned integer"},
    {'f', DTypeClass::Float, "float"},
    {'c', DTypeClass::Complex, "complex"},
    {'s', DTypeClass::String, "string"},
};

bool has_class(std::string_view classes, DType dtype) {
  return std::any_of(std::begin(kClasses), std::end(kClasses), [&](const ClassName& c) {
    return c.cls == info(dtype).cls && classes.find(c.letter) != std::string_view::npos;
  });
}

std::string class_names(std::string_view classes) {
  std::string out;
  for (const ClassName& c : kClasses) {
    if (classes.find(c.letter) == std::string_view::npos) continue;
    out += (out.empty() ? "" : " or ") + std::string(c.name);
  }
  return out;
}

Result<void> check_operands(const InferInput& in, const OpInfo& op) {
  const int count = static_cast<int>(in.operands.size());
  if (count < op.min_operands || (count > op.min_operands && !op.variadic)) {
    return infer_error(in, "operand-count", "wrong number of operands")
        .expected(fmt::format("{}{}", op.variadic ? "at least " : "", op.min_operands))
        .found(std::to_string(count));
  }
  if (op.min_operands > 0 && !has_class(op.dtypes, in.operands[0].dtype)) {
    return infer_error(in, "dtype-mismatch", "operand 0 has a dtype that the op does not take")
        .expected(class_names(op.dtypes))
        .found(name(in.operands[0].dtype));
  }
  return {};
}

Result<void> check_rules(const InferInput& in, const OpInfo& op) {
  const bool alike = op.dtype_rule == DTypeRule::Same || op.dtype_rule == DTypeRule::Bool;
  for (std::size_t i = 1; i < in.operands.size(); ++i) {
    if (alike) WEFT_TRY(expect_dtype(in, static_cast<int>(i), in.operands[0].dtype));
    if (op.shape_rule == ShapeRule::Same &&
        !known_equal(in.facts, in.operands[0].shape, in.operands[i].shape)) {
      return shape_error(in, fmt::format("operand {} must have the shape of operand 0", i),
                         str(in.operands[0].shape), str(in.operands[i].shape));
    }
  }
  return {};
}

Result<void> check_attrs(const InferInput& in, const OpInfo& op) {
  for (const auto& [key, value] : in.attrs.all()) {
    const AttrInfo& attr = info(key);
    const bool taken = std::any_of(op.attrs.begin(), op.attrs.end(),
                                   [k = key](const AttrUse& u) { return u.attr == k; });
    if (!taken)
      return infer_error(in, "bad-attribute",
                         fmt::format("the op has no attribute '{}'", attr.name));
    if (value.index() != static_cast<std::size_t>(attr.type)) {
      return infer_error(in, "bad-attribute",
                         fmt::format("attribute '{}' has a value of another type", attr.name));
    }
  }
  for (const AttrUse& use : op.attrs) {
    if (!use.optional && !in.attrs.has(use.attr)) {
      return infer_error(in, "bad-attribute",
                         fmt::format("attribute '{}' is missing", info(use.attr).name));
    }
  }
  return {};
}

}  // namespace

// The alternatives of AttrValue stand in the order of AttrType.
static_assert(std::is_same_v<
              std::variant_alternative_t<static_cast<int>(AttrType::Data), AttrValue>, Tensor>);
static_assert(
    std::is_same_v<std::variant_alternative_t<static_cast<int>(AttrType::Dims), AttrValue>, Shape>);

Result<void> check_schema(const InferInput& in) {
  const OpInfo& op = info(in.op);
  WEFT_TRY(check_operands(in, op));
  WEFT_TRY(check_attrs(in, op));
  if (!op.regions && !in.regions.empty())
    return infer_error(in, "bad-region", "the op takes no regions");
  return check_rules(in, op);
}

}  // namespace weft::graph
