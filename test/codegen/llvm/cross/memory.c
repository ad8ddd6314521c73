// The only functions that kernels may call, in the plainest form.
#include <stddef.h>

void* memcpy(void* restrict to, const void* restrict from, size_t n) {
  for (size_t i = 0; i < n; ++i) ((char*)to)[i] = ((const char*)from)[i];
  return to;
}

void* memmove(void* to, const void* from, size_t n) {
  if ((char*)to <= (const char*)from) return memcpy(to, from, n);
  for (size_t i = n; i > 0; --i) ((char*)to)[i - 1] = ((const char*)from)[i - 1];
  return to;
}

void* memset(void* to, int value, size_t n) {
  for (size_t i = 0; i < n; ++i) ((char*)to)[i] = (char)value;
  return to;
}
