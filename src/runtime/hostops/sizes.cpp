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

bool solve_symbol(const Dim& d, std::int64_t size, Bindings& bindings) {
  std::string unknown;
  for (const std::string& s : d.symbols()) {
    if (bindings.count(s)) continue;
    if (!unknown.empty()) return false;
    unknown = s;
  }
  if (unknown.empty()) return false;
  const auto at = [&](std::int64_t value) {
    Bindings trial = bindings;
    trial[unknown] = value;
    return d.evaluate(trial);
  };
  const auto zero = at(0), first = at(1);
  if (!zero.ok() || !first.ok()) return false;
  std::int64_t slope = 0, rest = 0;
  if (__builtin_sub_overflow(*first, *zero, &slope) || slope == 0) return false;
  if (__builtin_sub_overflow(size, *zero, &rest) || (slope == -1 && rest == INT64_MIN)) return false;
  const std::int64_t guess = rest / slope;
  const auto check = at(guess);
  if (guess < 0 || !check.ok() || *check != size) return false;
  bindings[unknown] = guess;
  return true;
}

bool fit_shape(const Shape& stated, const std::vector<std::int64_t>& sizes, Bindings& bindings) {
  bool fits = stated.size() == sizes.size();
  for (std::size_t a = 0; fits && a < sizes.size(); ++a) {
    const Dim& d = stated[a];
    if (d.is_const()) {
      fits = d.is(sizes[a]);
    } else if (const auto known = d.evaluate(bindings); known.ok() || d.as_symbol()) {
      fits = bind_symbol(d, sizes[a], bindings).ok();
    }  // an expression over sizes that nothing binds says nothing
  }
  return fits;
}

}  // namespace weft::runtime
