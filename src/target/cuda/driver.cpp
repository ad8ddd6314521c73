#include "target/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace weft::target::cuda {
namespace {

constexpr const char* kInstall =
    "install NVIDIA's driver (on Debian nvidia-driver with libcuda1); kernels alone are printed by 'weft compile --target "
    "cuda:sm_90a --emit source'";

Result<Driver> open_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unsupported("no-driver", "libcuda.so.1 cannot be opened").suggest(kInstall);
  Driver d;
#define FUNCTION(name, symbol, parameters)                            \
  d.name = reinterpret_cast<decltype(d.name)>(dlsym(library, symbol)); \
  if (d.name == nullptr) return unsupported("no-driver", "libcuda.so.1 lacks " symbol).suggest("install a driver for CUDA 12 or newer");
#include "target/cuda/functions.def"
#undef FUNCTION
  const Status status = d.Init(0);
  if (status == kNoDevice) return unsupported("no-device", "the NVIDIA driver finds no device").suggest("see 'nvidia-smi'");
  if (status != kSuccess) return unsupported("no-driver", fmt::format("cuInit failed with status {}", static_cast<int>(status))).suggest(kInstall);
  return d;
}

}  // namespace

Result<const Driver*> driver() {
  static const Result<Driver> opened = open_driver();
  if (!opened.ok()) return opened.error();
  return &*opened;
}

bool loses_device(Status status) {
  switch (static_cast<int>(status)) {
    case 4:    // the driver is shutting down
    case 46:   // CUDA_ERROR_DEVICE_UNAVAILABLE
    case 214:  // uncorrectable ECC
    case 220:  // NVLink
    case 700:  // an illegal address
    case 702:  // the driver's own watchdog
    case 714: case 715: case 716: case 717: case 718: case 719:  // a kernel's fault
    case 999:
      return true;
    default:
      return false;
  }
}

Error driver_error(const Driver& driver, const char* call, Status status) {
  const char* name = nullptr;
  if (driver.GetErrorName(status, &name) != kSuccess || name == nullptr) name = "unknown";
  const std::string what = fmt::format("{} failed: {} ({})", call, name, static_cast<int>(status));
  if (status == kOutOfMemory) {
    return user_error("out-of-device-memory", what).suggest("the GPU has too little free memory for this model");
  }
  if (status == kUnsupportedPtxVersion) return user_error("driver-too-old", what).suggest("install a newer NVIDIA driver");
  if (loses_device(status)) {
    return user_error("device-lost", what).suggest("what was on the GPU is gone: load the model again in a new process; 'nvidia-smi -q' says how it is");
  }
  return internal_error(what);
}

}  // namespace weft::target::cuda
