// Plans as bytes, for the cache on disk: everything but machine code, which has entries of its own, and constants' bytes,
// which lie behind the plan so that they can be mapped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "runtime/plan.h"

namespace weft::runtime {

// Whether a plan can be written: steps that only the compiler's interpreter can do cannot.
bool is_storable(const Plan& plan);

// Constants in the order in which they lie, each at a multiple of kConstantAlignment from the first; views of the same bytes
// share a place.
constexpr std::size_t kConstantAlignment = 64;
struct PlanBytes {
  std::vector<char> plan;
  std::vector<ByteSpan> constants;
  std::size_t constant_bytes = 0;  // with padding between them
};
PlanBytes encode_plan(const Plan& plan);

// Constants become views of `constants`, which `owner` keeps. Kernels have no code yet.
Result<std::shared_ptr<Plan>> decode_plan(ByteSpan plan, ByteSpan constants, std::shared_ptr<const void> owner);

// All plans in one: itself, and bodies of branches and loops.
void for_each_plan(Plan& plan, const std::function<void(Plan&)>& visit);

}  // namespace weft::runtime
