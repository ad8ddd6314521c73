#include "fake_driver.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

std::mutex mutex;
std::map<unsigned long long, std::size_t> blocks;

std::int64_t bytes_at(unsigned long long address) {
  const std::lock_guard<std::mutex> lock(mutex);
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return 0;
  const auto& [begin, size] = *--next;
  return static_cast<std::int64_t>(begin + size) - static_cast<std::int64_t>(address);
}

FakeDriver& driver() {
  static FakeDriver d = [] {
    FakeDriver made;
    made.bytes_at = bytes_at;
    return made;
  }();
  return d;
}

struct Module {
  std::string text;
  std::set<std::string> entries;
};

int start(void* kernel, unsigned blocks, unsigned threads, void** parameters) {
  if (driver().launch_status != 0) return driver().launch_status;
  if (driver().run != nullptr) driver().run(static_cast<std::string*>(kernel)->c_str(), blocks, threads, parameters);
  return 0;
}

struct KernelNode {
  void* kernel_function;
  unsigned grid, grid_y, grid_z, threads, block_y, block_z, shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

struct GraphNode {
  void* kernel;
  unsigned grid, threads;
  std::vector<std::uint64_t> values;
};
using Graph = std::vector<GraphNode>;

}  // namespace

extern "C" {

FakeDriver* weft_fake_driver() { return &driver(); }

int cuInit(unsigned) { return 0; }
int cuGetErrorName(int status, const char** name) {
  *name = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : status == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OTHER";
  return 0;
}
int cuDeviceGetCount(int* count) { return *count = driver().devices, 0; }
int cuDeviceGet(int* device, int number) { return *device = number, 0; }
int cuDeviceGetName(char* name, int room, int) { return std::strncpy(name, "Fake GPU", static_cast<std::size_t>(room)), 0; }
int cuDeviceGetAttribute(int* value, int what, int) {
  switch (what) {
    case 16: *value = 4; return 0;
    case 75: *value = driver().major; return 0;
    case 76: *value = driver().minor; return 0;
    default: return 1;
  }
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &driver(), ++driver().contexts, 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return --driver().contexts, 0; }
int cuCtxPushCurrent_v2(void*) { return 0; }
int cuCtxPopCurrent_v2(void**) { return 0; }
int cuStreamCreate(void** stream, unsigned) { return *stream = &driver(), ++driver().streams, 0; }
int cuStreamDestroy_v2(void*) { return --driver().streams, 0; }
int cuStreamQuery(void*) { return driver().hangs ? 600 : 0; }

int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (driver().bytes + static_cast<std::int64_t>(bytes) > driver().memory) return 2;
  *address = reinterpret_cast<unsigned long long>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  blocks[*address] = bytes;
  driver().bytes += static_cast<std::int64_t>(bytes);
  ++driver().blocks;
  return 0;
}
int cuMemFree_v2(unsigned long long address) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = blocks.find(address);
  if (found == blocks.end()) return 1;
  driver().bytes -= static_cast<std::int64_t>(found->second);
  --driver().blocks;
  blocks.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void*) {
  if (bytes_at(to) < static_cast<std::int64_t>(bytes)) return 1;
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void*) {
  if (bytes_at(from) < static_cast<std::int64_t>(bytes)) return 1;
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), 0;
}

int cuModuleLoadDataEx(void** module, const void* text, unsigned options, int* names, void** values) {
  if (driver().load_status != 0) {
    for (unsigned i = 0; i < options; ++i) {
      if (names[i] == 5) std::strcpy(static_cast<char*>(values[i]), "ptxas: line 7: nonsense");
    }
    return driver().load_status;
  }
  auto made = new Module{static_cast<const char*>(text), {}};
  const std::string mark = ".entry ";
  for (std::size_t at = made->text.find(mark); at != std::string::npos; at = made->text.find(mark, at)) {
    at += mark.size();
    made->entries.insert(made->text.substr(at, made->text.find_first_of("( \n", at) - at));
  }
  ++driver().modules;
  return *module = made, 0;
}
int cuModuleUnload(void* module) { return delete static_cast<Module*>(module), --driver().modules, 0; }
int cuModuleGetFunction(void** kernel, void* module, const char* name) {
  const auto& entries = static_cast<Module*>(module)->entries;
  const auto found = entries.find(name);
  if (found == entries.end()) return 500;
  return *kernel = const_cast<std::string*>(&*found), 0;
}
int cuLaunchKernel(void* kernel, unsigned x, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void*, void** parameters,
                   void**) {
  return ++driver().launches, start(kernel, x, threads, parameters);
}

int cuGraphCreate(void** graph, unsigned) { return *graph = new Graph, 0; }
int cuGraphAddKernelNode_v2(void** node, void* graph, void* const*, std::size_t, const KernelNode* what) {
  auto& nodes = *static_cast<Graph*>(graph);
  const int count = driver().parameters(static_cast<std::string*>(what->kernel_function)->c_str());
  GraphNode made{what->kernel_function, what->grid, what->threads, {}};
  for (int i = 0; i < count; ++i) made.values.push_back(*static_cast<std::uint64_t*>(what->parameters[i]));
  nodes.push_back(std::move(made));
  return *node = graph, 0;
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return ++driver().graphs, *exec = new Graph(*static_cast<Graph*>(graph)), 0;
}
int cuGraphLaunch(void* exec, void*) {
  ++driver().graph_launches;
  for (GraphNode& n : *static_cast<Graph*>(exec)) {
    std::vector<void*> parameters;
    for (std::uint64_t& v : n.values) parameters.push_back(&v);
    if (const int status = start(n.kernel, n.grid, n.threads, parameters.data())) return status;
  }
  return 0;
}
int cuGraphExecDestroy(void* exec) { return delete static_cast<Graph*>(exec), --driver().graphs, 0; }
int cuGraphDestroy(void* graph) { return delete static_cast<Graph*>(graph), 0; }

}  // extern "C"
