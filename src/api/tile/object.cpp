// Kernels compiled ahead of time: an object, and a header that calls it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "api/state.h"
#include "api/tile/launch.h"
#include "base/text.h"
#include "codegen/llvm/codegen.h"
#include "compile/kernels.h"

namespace weft::tile {
namespace {

std::string c_type(DType t) {
  if (t == DType::F32) return "float";
  if (t == DType::F64) return "double";
  if (is_bool(t)) return "unsigned char";
  if (is_int(t)) return fmt::format("{}int{}_t", is_signed_int(t) ? "" : "u", bits(t));
  return fmt::format("uint{}_t", bits(t));  // the bits of a narrow float
}

std::string header_of(const Kernel::State& kernel, const Machine& machine) {
  const Recorded& r = kernel.recorded;
  std::vector<std::string> parameters, buffers, sizes;
  for (const Parameter& p : r.parameters) {
    const std::string name = fmt::format("p{}", parameters.size());
    if (p.is_number) {
      parameters.push_back("int64_t " + name);
      sizes.push_back(name);
      continue;
    }
    const ssa::Buffer& buffer = r.function.buffers[p.place];
    parameters.push_back(fmt::format("{}{}* {}", buffer.written ? "" : "const ", c_type(buffer.dtype), name));
    buffers.push_back("(void*)" + name);
  }
  if (sizes.empty()) sizes.push_back("0");
  if (buffers.empty()) buffers.push_back("0");
  parameters.push_back("int64_t programs");
  std::string checks;
  for (std::size_t i = 0; i < r.checks.size(); ++i) checks += fmt::format("// {}: {}\n", i + 1, quote(r.checks[i]));
  return fmt::format(R"(// A kernel compiled by Weft. The processor must have: {}
#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern "C"
#else
extern
#endif
void {}_programs(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch, int64_t* status);

// Runs all programs on this thread. 0, or the number of a check that failed.
{}static inline int64_t {}({}) {{
  void* const buffers[] = {{{}}};
  const int64_t sizes[] = {{{}}};
  int64_t status = 0;
  {}_programs(buffers, sizes, 0, programs, 0, &status);
  return status;
}}
)",
                     fmt::join(machine.features, ", "), kernel.name, checks, kernel.name,
                     fmt::join(parameters, ", "), fmt::join(buffers, ", "), fmt::join(sizes, ", "), kernel.name);
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.flush()) return {};
  return user_error("cannot-write", "the file cannot be written").at(path);
}

}  // namespace

Result<void> Kernel::write_object(const std::string& stem, const CompileOptions& options) const {
  return at_the_edge([&]() -> Result<void> {
    if (!state) return no_kernel();
    const Recorded& r = state->recorded;
    if (r.error) return *r.error;
    const bool plain = is_identifier(state->name) && state->name.find('.') == std::string::npos;
    if (!plain) return user_error("bad-name", "the function in the header takes the kernel's name").at(state->name).expected("a C identifier");
    if (!r.prints.empty()) return unsupported("print", "a kernel that prints cannot be compiled ahead of time").at(state->name);
    const compiler::Options how = WEFT_TRY(compiler_options(options));
    if (how.target) return unsupported("object", "objects are made for CPUs").at(state->name).found(options.target);
    const auto target = codegen::target_for(how.machine);
    const kernel::Function function = WEFT_TRY(compiler::lower_program(r.function, how.machine, state->name));
    const codegen::Entry entry{&function, state->name + "_programs"};
    const codegen::Object object = WEFT_TRY(codegen::compile_object(std::span(&entry, 1), target));
    WEFT_TRY(write_file(stem + ".o", {object.data(), object.size()}));
    return write_file(stem + ".h", header_of(*state, how.machine));
  });
}

}  // namespace weft::tile
