#include "target/target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "target/opencl/opencl.h"

namespace weft::target {

namespace {

std::vector<Info>& table() {
  static std::vector<Info> targets{
      {"cpu", "this machine's cores, through LLVM", nullptr, nullptr},
      {"opencl", "an OpenCL device; opencl:1 is the second one", open_opencl, opencl_devices},
  };
  return targets;
}

}  // namespace

std::span<const Info> all() { return table(); }

void add(const Info& info) { table().push_back(info); }

Result<std::shared_ptr<const Target>> open(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  const auto targets = all();
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const Info& t) { return kind == t.name; });
  if (found == targets.end()) {
    std::vector<std::string> names{"ref"};
    for (const Info& t : targets) names.push_back(t.name);
    return user_error("unknown-target", "there is no such target").found(std::string(name)).suggest(fmt::format("targets are {}", fmt::join(names, ", ")));
  }
  int device = 0;
  if (colon != std::string_view::npos) {
    const std::string_view number = name.substr(colon + 1);
    const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), device);
    if (found->open == nullptr || failure != std::errc() || end != number.data() + number.size() || device < 0) {
      return user_error("unknown-target", "this target has no such device").found(std::string(name));
    }
  }
  if (found->open == nullptr) return std::shared_ptr<const Target>();
  return found->open(device);
}

}  // namespace weft::target
