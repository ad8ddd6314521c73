#include "api/tile/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>

namespace weft::tile {
namespace {

std::string described(const Argument& a) {
  return a.is_number() ? "a number" : std::string(name(a.tensor().dtype())) + shape_str(a.tensor().shape());
}

}  // namespace

Result<std::unique_ptr<Bound>> bind(const Kernel::State& kernel, std::int64_t grid, const Arguments& arguments) {
  const Recorded& r = kernel.recorded;
  if (r.error) return *r.error;
  if (grid < 0) return user_error("bad-grid", fmt::format("a grid of {} programs", grid)).at(kernel.name);
  if (arguments.size() != r.parameters.size()) {
    return user_error("bad-arguments", fmt::format("{} arguments", arguments.size()))
        .at(kernel.name)
        .expected(std::to_string(r.parameters.size()));
  }
  auto bound = std::make_unique<Bound>();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& p = r.parameters[i];
    const Argument& a = arguments[i];
    const auto wrong = [&](const std::string& expected) {
      return user_error("bad-arguments", fmt::format("argument {} does not fit", i)).at(kernel.name).expected(expected).found(described(a));
    };
    if (p.is_number) {
      if (!a.is_number()) return wrong("an integer");
      bound->sizes.push_back(a.number());
      continue;
    }
    const ssa::Buffer& buffer = r.function.buffers[p.place];
    if (a.is_number() || a.tensor().dtype() != buffer.dtype) return wrong(fmt::format("memory of {}", name(buffer.dtype)));
    if (buffer.written && !a.tensor().writable()) return wrong("memory that may be written");
    bound->buffers.push_back({const_cast<void*>(a.tensor().data()), a.tensor().size()});
  }
  if (!r.prints.empty()) {
    bound->words.resize(kPrintWords);
    bound->buffers.push_back({&bound->printed, 1});
    bound->buffers.push_back({bound->words.data(), kPrintWords});
  }
  return bound;
}

Error failed_check(const Kernel::State& kernel, std::int64_t code) {
  const auto& checks = kernel.recorded.checks;
  const bool known = code >= 1 && code <= static_cast<std::int64_t>(checks.size());
  return user_error("check-failed", known ? checks[code - 1] : fmt::format("check {}", code)).at(kernel.name);
}

void show_print(const PrintSite& site, std::int64_t program, const std::function<Scalar(std::int64_t)>& element) {
  std::string text = fmt::format("{} [program {}]", site.label, program);
  for (std::int64_t row = 0; row < site.type.shape[0]; ++row) {
    text += site.type.shape[0] > 1 ? "\n " : ":";
    for (std::int64_t column = 0; column < site.type.shape[1]; ++column) {
      const Scalar x = element(row * site.type.shape[1] + column);
      text += is_float(site.type.dtype) ? fmt::format(" {:g}", x.f) : fmt::format(" {}", x.i);
    }
  }
  std::fprintf(stderr, "%s\n", text.c_str());
}

void show_prints(const Recorded& recorded, const Bound& bound) {
  if (recorded.prints.empty()) return;
  std::multimap<std::int64_t, std::size_t> records;  // program, first word
  const std::size_t asked = static_cast<std::uint32_t>(bound.printed);
  for (std::size_t at = 0; at < asked;) {
    if (at + 2 > bound.words.size()) break;
    const std::size_t words = static_cast<std::size_t>(recorded.prints[bound.words[at]].words());
    if (at + words > bound.words.size()) break;
    records.emplace(bound.words[at + 1], at);
    at += words;
  }
  for (const auto& [program, at] : records) {
    const PrintSite& site = recorded.prints[bound.words[at]];
    show_print(site, program, [&, first = at + 2](std::int64_t i) -> Scalar {
      const std::int64_t word = bound.words[first + i];
      if (site.type.dtype == DType::F32) return {std::bit_cast<float>(static_cast<std::int32_t>(word)), 0};
      if (site.type.dtype == DType::F64) return {std::bit_cast<double>(word), 0};
      return {0, word};
    });
  }
  if (asked > bound.words.size()) std::fprintf(stderr, "(print: more than %td words; the rest is not shown)\n", bound.words.size());
}

}  // namespace weft::tile
