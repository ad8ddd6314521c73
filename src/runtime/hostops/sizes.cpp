#include <fmt/format.h>

#include "runtime/hostops/hostops.h"

namespace weft::runtime {

Result<Tensor> shape_value(const Shape& dims, const Bindings& bindings) {
  std::vector<std::int64_t> values;
  for (const Dim& d : dims) values.push_back(WEFT_TRY(d.evaluate(bindings)));
  return Tensor::of(values);
}

namespace {

Result<void> bind_value(const Dim& symbol, std::int64_t value, Bindings& bindings) {
  const auto bare = symbol.as_symbol();
  if (bare && bindings.find(*bare) == bindings.end()) {
    bindings.emplace(*bare, value);
    return {};
  }
  const std::int64_t known = WEFT_TRY(symbol.evaluate(bindings));
  if (known == value) return {};
  return user_error("size-mismatch", fmt::format("size {} has two values", symbol.str()))
      .expected(fmt::to_string(known))
      .found(fmt::to_string(value));
}

}  // namespace

Result<void> bind_symbol(const Dim& symbol, std::int64_t value, Bindings& bindings) {
  if (value < 0) {
    return user_error("negative-size", fmt::format("size {} must not be negative", symbol.str()))
        .found(fmt::to_string(value));
  }
  return bind_value(symbol, value, bindings);
}

Result<void> bind(const Tensor& values, const Shape& symbols, Bindings& bindings) {
  if (values.size() != static_cast<std::int64_t>(symbols.size())) {
    return user_error("size-mismatch", "the tensor of sizes has the wrong number of elements")
        .expected(fmt::to_string(symbols.size()))
        .found(fmt::to_string(values.size()));
  }
  // These need not be sizes (a slice may start at -1): a size below 0 is an error where it is used as one.
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    WEFT_TRY(bind_value(symbols[i], values.i64(static_cast<std::int64_t>(i)), bindings));
  }
  return {};
}

}  // namespace weft::runtime
