// Weft: run a model through compiled code.
//
//   auto model = weft::load("model.onnx").value();
//   auto program = weft::compile(model).value();
//   auto outputs = program.run({weft::Tensor::view(weft::DType::F32, {1, 784}, pixels, nullptr)}).value();
//
// Every call that can fail returns a Result: test it with ok(), or let value() throw weft::Error. Models and programs are
// values that share their state; a program may be run from many threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/tensor.h"

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

namespace weft {

// An input or output: its name, element type and shape; sizes may be symbols ("batch") or expressions of them.
struct Port {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
};

struct LoadOptions {
  std::map<std::string, SymbolRange> ranges;       // of named sizes: the program runs every size in its range
  std::map<std::string, std::int64_t> sizes;       // named sizes that are fixed when loading
  std::set<std::string> given;                     // inputs with a default value that are to be inputs all the same
  std::map<std::string, Tensor> known;             // inputs that are compiled in with these values: no inputs any more
  bool cache = true;                               // look the model up in the compile cache, so that it need not be read
};

class WEFT_API Model {
 public:
  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;

  struct State;
  std::shared_ptr<const State> state;
};

// Reads, checks and imports an ONNX file. Weights stay mapped from the file. What is not supported is one error that
// lists everything that is missing.
WEFT_API Result<Model> load(const std::string& path, const LoadOptions& options = {});

struct CompileOptions {
  std::string target = "cpu";           // "cpu", "ref" (the interpreter), a device ("opencl", "opencl:1"), or it and the CPU: "opencl+cpu"
  std::string code;                     // of a device that takes several kinds: "spirv" for OpenCL's; "": its usual one
  int threads = 0;                      // of the program's runs; 0: as many as the process may use
  bool cache = true;                    // look compiled code up on disk and keep it there
  bool tuned = true;                    // use the schedules that `weft tune` found
  std::vector<std::string> passes_off;  // graph passes that do not run
  std::string cpu = "native";           // at most what this CPU has: "x86-64-v2", "x86-64-v3" ...; docs/cpus.md
  std::string weights = "f32";          // of products, kept as "f32", "bf16", "int8" or "int4": smaller, less exact
  std::string precision = "highest";    // of f32 products: "highest", "high" or "medium"; docs/semantics.md
  std::vector<std::vector<std::int64_t>> first_shapes;  // of the first run's inputs, if known: what they take is compiled with the rest
};

struct RunOptions {
  const std::atomic<bool>* stop = nullptr;  // when it becomes true the run ends with an error before its next step
};

// What compiling took and made.
struct CompileStats {
  double compile_ms = 0;
  int nodes = 0, prims = 0, loops = 0, kernels = 0, unique_kernels = 0, host_steps = 0;
  bool from_cache = false;
};

class WEFT_API Program {
 public:
  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;
  const CompileStats& stats() const;

  // In the order of inputs(). Fails on wrong types and shapes (named), on sizes outside their range, on indices out of
  // range in the data. Sizes of two names that meet in one operator are compiled as equal; the first run in which one of
  // them is 1 and is spread along the other compiles a variant for its sizes (a few are kept), and takes as long.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs, const RunOptions& options = {}) const;
  // The same, writing into `outputs`: tensors of the right type and shape over the caller's memory
  // (Tensor::mutable_view), or undefined ones, which are made.
  Result<void> run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                        const RunOptions& options = {}) const;

  struct State;
  std::shared_ptr<const State> state;
};

WEFT_API Result<Program> compile(const Model& model, const CompileOptions& options = {});

WEFT_API const char* version();

}  // namespace weft
