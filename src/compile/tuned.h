// What `weft tune` found: for a kernel on a machine, the candidate of its schedule that was the fastest. Kept beside the
// compile cache, one entry a kernel, with the cache's properties: content-addressed, written atomically, bounded, and an
// entry that is damaged or names no candidate is as none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace weft::compiler {

struct Tuned {
  std::string choice;              // print() of the record; empty: the default is the best
  std::vector<std::string> tried;  // all that were measured against the default
};

std::optional<Tuned> find_tuned(const Machine& machine, const std::string& group, const DimFacts& facts);
void keep_tuned(const Machine& machine, const std::string& group, const DimFacts& facts, const Tuned& tuned);

// Differs whenever something was kept since: programs that were stored before are made anew.
std::string tuned_state();

// What the schedule of a printed group is asked for: "" for the model's own choice.
std::string tuned_choice(const Options& options, const std::string& group, const DimFacts& facts);

}  // namespace weft::compiler
