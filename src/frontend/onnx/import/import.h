// ONNX model → Graph IR. Every operator is a function in ops/ (one file per family) that builds prims and composites;
// subgraphs become regions, functions are inlined. What is missing is collected over the whole model and reported at
// once.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/onnx/model.h"
#include "graph/graph.h"

namespace weft::onnx {

struct ImportOptions {
  std::map<std::string, SymbolRange> ranges;         // of named dimensions (dim_param)
  std::map<std::string, std::int64_t> fixed;         // named dimensions that are known: "batch" = 8
  std::set<std::string> given;                       // inputs with a default that stay inputs: the caller gives them
  std::map<std::string, Tensor> known;               // inputs whose values are known: they become constants
};

// The name under which a size that is no number is known to ImportOptions and to users: the model's own, or INPUT_AXIS
// where it has none (a name without a letter or digit, such as "?", is none: two of them need not be equal).
std::string size_name(const DimSpec& spec, const std::string& input, std::size_t axis);

// One thing that is missing, and where.
struct Gap {
  std::string op;        // "ai.onnx.Foo (opset 17)", "attribute 'x' of Foo", ...
  std::string reason;
  std::vector<std::string> nodes;  // labels
};

struct Imported {
  graph::Graph graph;
  std::vector<std::string> input_names, output_names;
};

// The model is validated. Missing operators, attributes and types: one Unsupported error that lists them all.
Result<Imported> import_model(const Model& model, const ImportOptions& options = {});

// Everything that stands in the way of importing the model, at once; empty when nothing does. An error is of the
// user's kind: the model itself is wrong.
Result<std::vector<Gap>> find_gaps(const Model& model, const ImportOptions& options = {});

}  // namespace weft::onnx
