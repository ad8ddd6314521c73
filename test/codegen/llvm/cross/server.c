// Runs kernels that another program compiled: this one is built for their CPU and works under an emulator of it.
//
// Descriptor 3 is memory that both share, mapped here at weft_base; the code of kernels lies in it, too. On descriptor 0
// come requests, each answered with the kernel's status word.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol.h"

static int read_all(void* to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = read(0, (char*)to + done, bytes - done);
    if (n <= 0) return 0;
    done += (size_t)n;
  }
  return 1;
}

typedef void (*Kernel)(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch, int64_t* status);

int main(void) {
  char* base = mmap((void*)WEFT_CROSS_BASE, WEFT_CROSS_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_FIXED, 3, 0);
  if (base == MAP_FAILED) return 2;
  struct WeftRequest request;
  while (read_all(&request, sizeof request)) {
    void* buffers[WEFT_CROSS_MOST];
    int64_t sizes[WEFT_CROSS_MOST];
    if (request.buffers > WEFT_CROSS_MOST || request.sizes > WEFT_CROSS_MOST) return 3;
    for (int64_t k = 0; k < request.buffers; ++k) {
      int64_t offset;
      if (!read_all(&offset, sizeof offset)) return 4;
      buffers[k] = base + offset;
    }
    if (!read_all(sizes, sizeof(int64_t) * (size_t)request.sizes)) return 4;
    int64_t status = 0;
    ((Kernel)(base + request.kernel))(buffers, sizes, request.begin, request.end, base + request.scratch, &status);
    if (write(0, &status, sizeof status) != sizeof status) return 5;
  }
  return 0;
}
