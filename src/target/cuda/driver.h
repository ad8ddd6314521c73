// The functions of NVIDIA's driver that are used, from libcuda.so.1, which is opened at run time: Weft is built and starts
// without it. What the driver's own header would declare is declared here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace weft::target::cuda {

using Address = unsigned long long;  // on the device
using DeviceNumber = int;
struct Context;
struct Stream;
struct Module;
struct Kernel;
struct Graph;
struct GraphNode;
struct GraphExec;

struct KernelNode {  // CUDA_KERNEL_NODE_PARAMS_v2
  Kernel* function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  Context* context;
};

enum Status : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kNotReady = 600,
  kLaunchOutOfResources = 701,
};

enum Attribute : int {
  kClockKilohertz = 13,
  kMultiprocessors = 16,
  kMemoryClockKilohertz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
};

enum JitOption : int { kErrorLog = 5, kErrorLogBytes = 6 };

struct Driver {
#define FUNCTION(name, symbol, parameters) Status(*name) parameters = nullptr;
#include "target/cuda/functions.def"
#undef FUNCTION
};

// Opened and initialised once. Unsupported when there is no driver or no device; the error says what to install.
Result<const Driver*> driver();

// What a status says: user errors for want of memory, a device that is gone, a driver that is too old; else internal ones.
Error driver_error(const Driver& driver, const char* call, Status status);

// Whether no call on the context can succeed any more.
bool loses_device(Status status);

}  // namespace weft::target::cuda
