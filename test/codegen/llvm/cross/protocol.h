// What server.c and server.cpp say to each other.
#pragma once

#include <stdint.h>

#define WEFT_CROSS_BASE INT64_C(0x100000000)
#define WEFT_CROSS_BYTES (INT64_C(2) << 30)
#define WEFT_CROSS_MOST 256

// Followed by the offsets of the buffers and the sizes. Everything is an offset into the shared memory.
struct WeftRequest {
  int64_t kernel, begin, end, scratch;
  int64_t buffers, sizes;  // how many
};
