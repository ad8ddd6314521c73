#include "target/target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "target/cuda/cuda.h"
#include "target/null/null.h"
#include "target/opencl/opencl.h"
#include "target/places.h"
#include "target/sim/sim.h"
#include "target/webgpu/webgpu.h"

namespace weft::target {

namespace {

std::vector<Info>& table() {
  static std::vector<Info> targets{
      {"cpu", "this machine's cores, through LLVM", nullptr, nullptr},
      {"opencl", "an OpenCL device; opencl:1 is the second one", open_opencl, opencl_devices},
      {"cuda", "an NVIDIA GPU; cuda:sm_90a is code for one that need not be here", open_cuda, cuda_devices},
      {"webgpu", "a WebGPU adapter, through wgpu-native; webgpu:1 is the second one", open_webgpu, webgpu_devices},
      {"null", "a machine that does nothing, to time all the rest: null:sm_90a; outputs are zeros", open_null, nullptr},
      {"sim", "a machine of groups of threads, interpreted and checked: sim:opencl, sim:sm_90a", open_sim, nullptr},
  };
  return targets;
}

Error no_such_device(std::string_view target, std::string_view which) {
  return user_error("unknown-target", "this target has no such device").found(fmt::format("{}:{}", target, which));
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
    if (name == "ref") {
      return user_error("target", "the interpreter makes no kernels and goes with no other target").found(std::string(name));
    }
    std::vector<std::string> names{"ref"};
    for (const Info& t : targets) names.push_back(t.name);
    return user_error("unknown-target", "there is no such target").found(std::string(name)).suggest(fmt::format("targets are {}", fmt::join(names, ", ")));
  }
  const std::string_view which = colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
  if (found->open != nullptr) return found->open(which);
  if (!which.empty()) return no_such_device(kind, which);
  return std::shared_ptr<const Target>();
}

Result<std::shared_ptr<const Target>> Target::with_code(std::string_view kind) const {
  return user_error("unknown-code", "this target takes one kind of code").at(machine().name).found(std::string(kind)).suggest("leave '--code' out");
}

std::vector<std::string_view> split(std::string_view places) {
  std::vector<std::string_view> names;
  for (std::size_t begin = 0; begin <= places.size();) {
    const std::size_t end = std::min(places.find('+', begin), places.size());
    names.push_back(places.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

Result<Places> open_places(std::string_view names, std::string_view code) {
  Places places{nullptr, false};
  for (const std::string_view name : split(names)) {
    auto target = WEFT_TRY(open(name));
    if (!(target ? places.device != nullptr : places.cpu)) {
      target ? places.device = std::move(target), void() : void(places.cpu = true);
      continue;
    }
    return unsupported("target", "kernels run on one device, or on it and the CPU").found(std::string(names)).suggest("say 'opencl+cpu', for one");
  }
  if (code.empty()) return places;
  if (!places.device) return user_error("unknown-code", "this process takes one kind of code").found(std::string(code)).suggest("leave '--code' out");
  places.device = WEFT_TRY(places.device->with_code(code));
  return places;
}

Result<int> device_number(std::string_view target, std::string_view which) {
  int device = 0;
  if (which.empty()) return device;
  const auto [end, failure] = std::from_chars(which.data(), which.data() + which.size(), device);
  if (failure == std::errc() && end == which.data() + which.size() && device >= 0) return device;
  return no_such_device(target, which);
}

}  // namespace weft::target
