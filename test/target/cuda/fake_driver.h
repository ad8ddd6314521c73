// A libcuda.so.1 for machines without one: host memory for a device's, calls in order, launches handed to a test that
// interprets the kernel. It fails on demand, and counts what it was not given back.
#pragma once

#include <cstdint>

struct FakeDriver {
  // What the device is and how it behaves.
  int major = 9, minor = 0;
  int devices = 1;
  std::int64_t memory = std::int64_t{1} << 30;  // bytes that may be allocated at once
  bool hangs = false;                           // the stream never ends what it was given
  int launch_status = 0;                        // of the next launches
  int load_status = 0;                          // of the next modules
  void (*run)(const char* entry, unsigned blocks, unsigned threads, void** parameters) = nullptr;
  int (*parameters)(const char* entry) = nullptr;  // how many: what a graph copies
  // What is held.
  std::int64_t bytes = 0;
  int blocks = 0, modules = 0, streams = 0, contexts = 0, graphs = 0;
  int launches = 0, graph_launches = 0;  // so far; those of a graph are not launches
  // From an address to the end of its block.
  std::int64_t (*bytes_at)(unsigned long long address) = nullptr;
};

extern "C" FakeDriver* weft_fake_driver();
