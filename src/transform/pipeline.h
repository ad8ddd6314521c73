// The graph passes, as a table, and the straight pipeline that runs them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "transform/products.h"

namespace weft::transform {

// What products of f32 may be computed with; the names are PyTorch's. Each allows what those before it do.
enum class Precision : std::uint8_t {
  Highest,  // errors at most twice those of a plain sum of f32 products
  High,     // errors at most about 1e-5 of the result's largest magnitude
  Medium,   // errors of about 1e-2, as of bf16 inputs
};
std::optional<Precision> parse_precision(std::string_view name);  // "highest", "high", "medium"

// How the weights of products are kept.
enum class Weights : std::uint8_t { F32, Bf16, Int8, Int4 };
std::optional<Weights> parse_weights(std::string_view name);  // "f32", "bf16", "int8", "int4"

// As WEFT_PASSES_OFF and WEFT_PASS_LIMIT say, until changed.
struct PassOptions {
  PassOptions();
  Precision precision = Precision::Highest;
  Weights weights = Weights::F32;    // as they are in the model
  ProductChooser products;           // what the machine gains by products of bf16; none: nothing
  std::vector<std::string> off;      // passes by name that do not run
  int limit = -1;                    // at most this many passes run, in order (bisection); -1: all
  std::size_t fold_bytes = 256 << 20;  // constants that folding may make, in all
  bool verify_each = false;          // verify, print and parse after each pass
};

struct Pass {
  const char* name;
  const char* doc;
  Result<graph::Graph> (*run)(const graph::Graph& graph, const PassOptions& options);
};
const std::vector<Pass>& passes();  // in pipeline order

Result<graph::Graph> optimize(const graph::Graph& graph, const PassOptions& options = {});

}  // namespace weft::transform
