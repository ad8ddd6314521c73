#include "target/webgpu/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/knobs.h"

namespace weft::target::webgpu {
namespace {

constexpr const char* kInstall =
    "PyPI's package wgpu has it: pip download --no-deps wgpu, unzip, and set WEFT_WEBGPU_LIBRARY to "
    "wgpu/resources/libwgpu_native-release.so";
constexpr const char* kDriver = "install a Vulkan driver; for this machine's CPU, on Debian, mesa-vulkan-drivers and libvulkan1";

Result<Library> open_library() {
  const std::string& chosen = knob_text(Knob::WebGpuLibrary);
  const std::string path = chosen.empty() ? "libwgpu_native.so" : chosen;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return unsupported("no-webgpu", fmt::format("wgpu-native cannot be opened: {}", dlerror())).suggest(kInstall);
  Library l;
#define FUNCTION(name, result, parameters)                                 \
  l.name = reinterpret_cast<decltype(l.name)>(dlsym(handle, "wgpu" #name)); \
  if (l.name == nullptr) return unsupported("no-webgpu", fmt::format("{} lacks wgpu" #name, path)).suggest(kInstall);
#include "target/webgpu/functions.def"
#undef FUNCTION
  InstanceExtras extras;
  extras.backends = kVulkanMetalAndD3d12;  // what looks for others, and so for a display, is left out
  InstanceDescriptor wanted;
  wanted.next = &extras.chain;
  l.instance = l.CreateInstance(&wanted);
  if (l.instance == nullptr) return unsupported("no-webgpu", "wgpu-native makes no instance").suggest(kDriver);
  return l;
}

Facts facts_of(const Library& l, Adapter* adapter) {
  Facts facts;
  AdapterInfo info;
  if (l.AdapterGetInfo(adapter, &info) == kSuccess) {
    facts.name = text_of(info.device);
    facts.is_cpu = info.kind == kCpuAdapter;
    l.AdapterInfoFreeMembers(info);
  }
  l.AdapterGetLimits(adapter, &facts.limits);
  facts.has_i64 = l.AdapterHasFeature(adapter, kShaderI64) != 0;
  facts.has_f64 = l.AdapterHasFeature(adapter, kShaderF64) != 0;
  facts.has_i64_atomics = l.AdapterHasFeature(adapter, kI64Atomics) != 0 && l.AdapterHasFeature(adapter, kI64AtomicMinMax) != 0;
  return facts;
}

Result<std::vector<Found>> list_adapters() {
  const Library& l = *WEFT_TRY(library());
  EnumerateOptions options;
  options.backends = kVulkanMetalAndD3d12;
  std::vector<Adapter*> handles(l.InstanceEnumerateAdapters(l.instance, &options, nullptr));
  if (!handles.empty()) l.InstanceEnumerateAdapters(l.instance, &options, handles.data());
  if (handles.empty()) return unsupported("no-device", "WebGPU finds no adapter").suggest(kDriver);
  std::vector<Found> all;
  for (Adapter* a : handles) all.push_back({a, facts_of(l, a)});
  return all;
}

}  // namespace

Result<const Library*> library() {
  static const Result<Library> opened = open_library();
  if (!opened.ok()) return opened.error();
  return &*opened;
}

Result<const std::vector<Found>*> adapters() {
  static const Result<std::vector<Found>> listed = list_adapters();
  if (!listed.ok()) return listed.error();
  return &*listed;
}

std::string text_of(Text text) {
  if (text.data == nullptr) return "";
  return text.length == kZeroEnded ? std::string(text.data) : std::string(text.data, text.length);
}

}  // namespace weft::target::webgpu
