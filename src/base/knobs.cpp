#include "base/knobs.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

extern char** environ;

namespace weft {
namespace {

constexpr bool kKey = true, kNoKey = false;
constexpr KnobInfo kKnobs[] = {
#define KNOB(id, variable, type, initial, key, doc) {variable, KnobType::type, initial, k##key, doc},
#include "base/knobs.def"
#undef KNOB
};
constexpr std::size_t kKnobCount = std::size(kKnobs);

struct Value {
  std::string text;
  std::int64_t integer = 0;
};

std::optional<Value> parse(const KnobInfo& knob, std::string_view text) {
  Value value{std::string(text), 0};
  if (knob.type == KnobType::Text || knob.type == KnobType::Names) return value;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value.integer);
  if (failure != std::errc() || value.integer < 0) return std::nullopt;
  std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  if (suffix.empty()) return value;
  const std::size_t unit = knob.type == KnobType::Bytes && suffix.size() == 1 ? std::string_view("KMG").find(suffix[0])
                                                                              : std::string_view::npos;
  if (unit == std::string_view::npos) return std::nullopt;
  const std::int64_t scale = std::int64_t{1} << (10 * (unit + 1));
  if (__builtin_mul_overflow(value.integer, scale, &value.integer)) return std::nullopt;
  return value;
}

using Values = std::array<Value, kKnobCount>;

Values read_environment() {
  Values values;
  for (std::size_t i = 0; i < kKnobCount; ++i) {
    auto initial = parse(kKnobs[i], kKnobs[i].initial);
    WEFT_CHECK(initial.has_value(), std::string("the default of ") + kKnobs[i].variable);
    values[i] = std::move(*initial);
    const char* set = std::getenv(kKnobs[i].variable);
    if (set == nullptr) continue;
    if (auto value = parse(kKnobs[i], set)) values[i] = std::move(*value);
  }
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) environment.emplace_back(*entry);
  for (const std::string& warning : check_environment(environment)) warn(warning);
  return values;
}

Values& values() {
  static Values all = read_environment();
  return all;
}

Value& value_of(Knob knob) { return values()[static_cast<std::size_t>(knob)]; }

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    if (!name.empty()) names.push_back(name);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return names;
}

}  // namespace

int knob_count() { return static_cast<int>(kKnobCount); }
const KnobInfo& info(Knob knob) { return kKnobs[static_cast<std::size_t>(knob)]; }

const std::string& knob_text(Knob knob) { return value_of(knob).text; }

std::int64_t knob_integer(Knob knob) {
  const KnobType type = info(knob).type;
  WEFT_CHECK(type == KnobType::Count || type == KnobType::Bytes, std::string("the integer of ") + info(knob).variable);
  return value_of(knob).integer;
}

std::vector<std::string> knob_names(Knob knob) {
  const auto names = split_list(knob_text(knob));
  return {names.begin(), names.end()};
}

std::string knobs_cache_key() {
  std::string key;
  for (std::size_t i = 0; i < kKnobCount; ++i) {
    const std::string& text = values()[i].text;
    if (kKnobs[i].in_cache_key && text != kKnobs[i].initial) key += fmt::format("{}={};", kKnobs[i].variable, text);
  }
  return key;
}

bool set_knob(Knob knob, std::string_view text) {
  auto value = parse(info(knob), text);
  if (value) value_of(knob) = std::move(*value);
  return value.has_value();
}

std::vector<std::string> check_environment(const std::vector<std::string>& environment) {
  std::vector<std::string> names, warnings;
  for (const KnobInfo& knob : kKnobs) names.push_back(knob.variable);
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name.rfind("WEFT_", 0) != 0) continue;
    const KnobInfo* known = nullptr;
    for (const KnobInfo& knob : kKnobs) known = name == knob.variable ? &knob : known;
    if (known == nullptr) {
      const std::string hint = did_you_mean(name, names);
      warnings.push_back(fmt::format("unknown variable {}{}{}", name, hint.empty() ? "" : "; ", hint));
    } else if (entry.size() > name.size() && !parse(*known, entry.substr(name.size() + 1))) {
      warnings.push_back(fmt::format("{} is ignored: its value must be an integer of at least 0", name));
    }
  }
  return warnings;
}

bool list_contains(std::string_view comma_separated, std::string_view name) {
  for (const std::string_view entry : split_list(comma_separated)) {
    if (entry == name) return true;
  }
  return false;
}

}  // namespace weft
