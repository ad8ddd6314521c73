#include "cli/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "api/state.h"
#include "base/npy.h"
#include "base/text.h"
#include "cli/compared.h"
#include "cli/errors.h"
#include "cli/index_range.h"

namespace weft::cli {
namespace {

// SplitMix64, seeded by the input's name: the same numbers everywhere.
class Random {
 public:
  explicit Random(const std::string& name) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform(double lo, double hi) { return lo + (hi - lo) * static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Interval {
  double lo = 0, hi = 0;
};

std::optional<Interval> parse_interval(DType dtype, const std::string& spec) {
  if (spec == "zeros") return Interval{0, 0};
  if (spec == "ones") return Interval{1, 1};
  if (spec == "random") return is_float(dtype) || is_complex(dtype) ? Interval{-1, 1} : Interval{0, 2};
  if (const auto value = parse_number<double>(spec)) return Interval{*value, *value};
  if (!spec.starts_with("range:")) return std::nullopt;
  const std::size_t colon = spec.find(':', 6);
  if (colon == std::string::npos) return std::nullopt;
  const auto lo = parse_number<double>(std::string_view(spec).substr(6, colon - 6));
  const auto hi = parse_number<double>(std::string_view(spec).substr(colon + 1));
  if (!lo || !hi || !std::isfinite(*lo) || !std::isfinite(*hi) || *lo > *hi) return std::nullopt;
  return Interval{*lo, *hi};
}

Result<Interval> interval_of(const std::string& name, DType dtype, const std::string& spec) {
  const auto range = parse_interval(dtype, spec);
  if (!range) {
    return usage_error("an input is a .npy file, a number, random, zeros, ones or range:LO:HI with LO <= HI").at(name).found(spec);
  }
  constexpr double kMost = 0x1p62;  // of integers, so that they convert
  if (!is_float(dtype) && !is_complex(dtype) && !(std::abs(range->lo) <= kMost && std::abs(range->hi) <= kMost)) {
    return usage_error("no such integer").at(name).found(spec);
  }
  return *range;
}

void fill(Tensor& t, const Interval& range, Random& random) {
  const auto draw = [&] { return range.lo == range.hi ? range.lo : random.uniform(range.lo, range.hi); };
  if (is_complex(t.dtype())) {
    const DType part = t.dtype() == DType::C64 ? DType::F32 : DType::F64;
    for (std::int64_t i = 0; i < 2 * t.size(); ++i) store_f64(part, t.mutable_data(), i, draw());
  } else if (is_float(t.dtype())) {
    for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, draw());
  } else {
    for (std::int64_t i = 0; i < t.size(); ++i) t.set_i64(i, static_cast<std::int64_t>(std::floor(draw())));
  }
}

struct Given {
  std::string spec;
  std::optional<Tensor> file;
};

// An input of the file whose value the model was loaded for.
bool is_compiled_in(const Model& model, const std::string& name) {
  const auto& inputs = model.state->source().graph->inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const onnx::ValueInfo& info) { return info.name == name; });
}

// "NAME=SPEC", where the name itself may hold '='.
Result<std::map<std::string, Given>> parse_inputs(const Model& model, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const Port& port : model.inputs()) names.push_back(port.name);
  std::map<std::string, Given> given;
  for (const std::string& argument : arguments) {
    const Port* chosen = nullptr;
    for (const Port& port : model.inputs()) {
      const bool fits = argument.rfind(port.name + "=", 0) == 0;
      if (fits && (!chosen || port.name.size() > chosen->name.size())) chosen = &port;
    }
    if (!chosen) {
      const std::size_t equals = argument.find('=');
      if (equals == std::string::npos) return usage_error("--input needs NAME=SPEC").found(argument);
      const std::string name = argument.substr(0, equals);
      if (is_compiled_in(model, name)) continue;
      WEFT_TRY(require_one_of("input", name, names));
    }
    Given g{argument.substr(chosen->name.size() + 1), std::nullopt};
    const bool is_npy = g.spec.size() > 4 && g.spec.compare(g.spec.size() - 4, 4, ".npy") == 0;
    if (is_npy) {
      WEFT_TRY(require_file(g.spec));
      g.file = WEFT_TRY(read_npy(g.spec, chosen->dtype));
    }
    if (!given.emplace(chosen->name, std::move(g)).second) return usage_error("this input is given twice").at(chosen->name);
  }
  return given;
}

std::set<std::string> symbols_of(const Model& model) {
  std::set<std::string> symbols;
  for (const Port& port : model.inputs()) {
    for (const Dim& d : port.shape) d.collect_symbols(symbols);
  }
  return symbols;
}

// The named sizes: from --dim, else from the files' shapes, else 1 or the least that is allowed.
Result<Bindings> bind(const Model& model, const std::map<std::string, Given>& given, const Sizes& dims) {
  const std::set<std::string> symbols = symbols_of(model);
  Bindings bindings;
  for (const auto& [name, size] : dims) {
    if (symbols.count(name)) bindings[name] = size;
  }
  for (const Port& port : model.inputs()) {
    const auto it = given.find(port.name);
    if (it == given.end() || !it->second.file || it->second.file->shape().size() != port.shape.size()) continue;
    for (std::size_t a = 0; a < port.shape.size(); ++a) {
      const auto symbol = port.shape[a].as_symbol();
      if (!symbol) continue;
      const std::int64_t size = it->second.file->shape()[a];
      const auto [known, fresh] = bindings.emplace(*symbol, size);
      if (fresh || known->second == size || dims.count(*symbol) == 0) continue;
      return usage_error("the file has another size than --dim gives '" + *symbol + "'")
          .at(port.name)
          .expected(std::to_string(known->second))
          .found(std::to_string(size));
    }
  }
  for (const std::string& s : symbols) {
    const SymbolRange range = model.state->facts.range(Dim::symbol(s));
    bindings.emplace(s, std::max<std::int64_t>(range.lo, std::max<std::int64_t>(1, range.multiple_of)));
  }
  return bindings;
}

}  // namespace

Result<Sizes> parse_dims(const std::vector<std::string>& arguments) {
  Sizes sizes;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.rfind('=');
    const auto size = equals == std::string::npos ? std::nullopt
                                                  : parse_number<std::int64_t>(std::string_view(argument).substr(equals + 1));
    if (!size || *size < 0 || equals == 0) return usage_error("--dim needs NAME=SIZE").found(argument);
    if (!sizes.emplace(argument.substr(0, equals), *size).second) return usage_error("this size is given twice").at(argument);
  }
  return sizes;
}

Result<Tensor> make_tensor(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                           const std::string& spec) {
  const Interval range = WEFT_TRY(interval_of(name, dtype, spec));
  Random random(name);
  if (is_string(dtype)) {
    Tensor t = WEFT_TRY(Tensor::zeros(dtype, shape));
    for (std::string& s : t.mutable_strings()) s = spec == "random" ? fmt::format("text {}", random.bits() % 10) : "";
    return t;
  }
  Tensor t = WEFT_TRY(Tensor::empty(dtype, shape));
  fill(t, range, random);
  return t;
}

Result<std::vector<Tensor>> make_inputs(const Model& model, const std::vector<std::string>& arguments, const Sizes& dims) {
  const std::map<std::string, Given> given = WEFT_TRY(parse_inputs(model, arguments));
  const Bindings bindings = WEFT_TRY(bind(model, given, dims));
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < model.inputs().size(); ++i) {
    const Port& port = model.inputs()[i];
    const auto it = given.find(port.name);
    if (it != given.end() && it->second.file) {
      inputs.push_back(*it->second.file);
      continue;
    }
    const std::vector<std::int64_t> shape = WEFT_TRY(evaluate(port.shape, bindings));
    std::string spec = it == given.end() ? "random" : it->second.spec;
    if (spec == "random" && is_int(port.dtype)) {
      const graph::Graph& g = *model.state->graph();
      const onnx::GraphPtr& source = model.state->source().graph;
      const auto known = source ? compared_with(*source, port.name) : std::nullopt;
      const auto extent = index_extent(g, g.inputs()[i]);
      if (known) {
        spec = std::to_string(*known);
      } else if (extent && *extent > 0) {
        spec = fmt::format("range:0:{}", *extent);
      }
    }
    inputs.push_back(WEFT_TRY(make_tensor(port.name, port.dtype, shape, spec)));
  }
  return inputs;
}

}  // namespace weft::cli
