// What the public handles hold; also used by the command line, which shows more than the public API does.
#pragma once

#include <memory>
#include <mutex>

#include "compile/compile.h"
#include "frontend/onnx/import/import.h"
#include "runtime/execute.h"
#include "weft/weft.h"

namespace weft {

struct Model::State {
  std::string path;
  onnx::ImportOptions how;  // the file became the graph with these
  bool cache = true;
  std::string content;      // of the file; empty: it is not looked up in the cache
  std::vector<Port> inputs, outputs;
  DimFacts facts;           // of the sizes of inputs
  double hash_ms = 0;
  mutable double load_ms = 0, import_ms = 0;

  // Read and imported when first asked for; a file that is gone or another by then is an error that is thrown.
  const onnx::Model& source() const;
  const std::shared_ptr<const graph::Graph>& graph() const;
  bool is_imported() const { return graph_ != nullptr; }
  Result<void> import();                                      // now, with the ports
  void set_source(const onnx::Model& source) { source_ = source; }  // what import() imports, instead of the file
  void set_graph(std::shared_ptr<const graph::Graph> graph);  // of a model that comes from no file

 private:
  Result<onnx::Imported> read() const;
  void need() const;
  mutable std::mutex mutex_;
  mutable onnx::Model source_;
  mutable std::shared_ptr<const graph::Graph> graph_;
};

// The same model, imported otherwise.
Result<Model> import_again(const Model& model, const onnx::ImportOptions& how);

// A program of the same model for sizes that it does not take, compiled by the first run that needs it.
struct Variant {
  std::vector<std::vector<std::int64_t>> shapes;  // of the inputs
  std::once_flag once;
  Result<Program> program = Program();
};

struct Program::State {
  std::shared_ptr<const Model::State> model;
  std::string target;
  int threads = 0;
  compiler::Compiled compiled;                            // cpu
  std::unique_ptr<const runtime::Executable> executable; // cpu
  CompileStats stats;
  double find_ms = 0, store_ms = 0;                       // in the cache
  CompileOptions options;
  // Without forms of operators that need finite values: made when a run first meets one that is not.
  mutable std::once_flag exact_once;
  mutable Result<Program> exact = Program();
  mutable std::mutex variants_mutex;
  mutable std::vector<std::shared_ptr<Variant>> variants;  // the most recently used last
};

// The graph that the program's plan was made of. A program that came from the cache has none: it is made again.
Result<std::shared_ptr<const graph::Graph>> compiled_graph(const Program& program, const compiler::Options& how);

// What the compiler is asked for; an error names the option that is wrong. The CPU may be one that this is not.
Result<compiler::Options> compiler_options(const CompileOptions& options);
Result<void> require_here(const compiler::Options& how);  // that code made with these runs in this process

// Runs `f`; what it throws (a broken invariant, no memory) becomes a Result.
template <class F>
auto at_the_edge(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return user_error("out-of-memory", "not enough memory");
  } catch (const std::exception& e) {
    return internal_error(e.what());
  }
}

}  // namespace weft
