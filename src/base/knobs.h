// Switches: one table (knobs.def), read from the environment once. A value that does not parse, or an unknown WEFT_*
// variable, is a warning on stderr; the default stands then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class Knob : std::uint8_t {
#define KNOB(id, variable, type, initial, key, doc) id,
#include "base/knobs.def"
#undef KNOB
};

enum class KnobType : std::uint8_t { Text, Names, Count, Bytes };

struct KnobInfo {
  const char* variable;
  KnobType type;
  const char* initial;
  bool in_cache_key;
  const char* doc;
};

int knob_count();
const KnobInfo& info(Knob knob);

const std::string& knob_text(Knob knob);    // any type, as written
std::int64_t knob_integer(Knob knob);       // Count, Bytes
std::vector<std::string> knob_names(Knob knob);  // Names
std::string knobs_cache_key();              // "WEFT_PASS_LIMIT=3;..." of those in the key that differ from the default

// For tests and command-line options: false when the text does not fit the type. Not for use while others read.
bool set_knob(Knob knob, std::string_view text);

// The warnings that an environment of "NAME=value" strings earns. Called on the real one at first use.
std::vector<std::string> check_environment(const std::vector<std::string>& environment);

bool list_contains(std::string_view comma_separated, std::string_view name);

}  // namespace weft
