// Kernel IR as source text. One program of the grid is one work group, of as many work items as the function has
// threads. Parameters: for each buffer its memory and the byte where it starts there, the sizes, the same pair for the
// status word that a failed check writes its code to; all integers are 64-bit.
#pragma once

#include <span>
#include <string>

#include "kernel/kernel.h"

namespace weft::codegen {

// What a device has beyond OpenCL 1.2.
struct OpenClFeatures {
  bool shuffles = false;   // within a subgroup, whose size kernels ask for by Intel's attribute: a warp
  bool byte_dots = false;  // cl_khr_integer_dot_product, in the language from OpenCL C 3.0 on
};

// OpenCL C 1.2, with the features given. What the language has no type for is refused.
Result<std::string> print_opencl(std::span<const kernel::Function> functions, const OpenClFeatures& features = {});
std::string opencl_name(const kernel::Function& function);  // weft_NAME: plain names may be builtins

// WGSL: a module for each kernel, whose entry point is wgsl_name(). Programs of one thread start wgsl_group() at a time,
// the groups in x and then y. Binding 0 is a uniform of 32-bit words: the number of programs, the element of binding 1
// (i32) where the status is, a zero, a word that is not used; the byte where each buffer starts in its binding, 2
// and on; the sizes, low word and high word.
Result<std::string> print_wgsl(const kernel::Function& function);
std::string wgsl_name(const kernel::Function& function);
int wgsl_group(const kernel::Function& function);  // threads of a work group

}  // namespace weft::codegen
