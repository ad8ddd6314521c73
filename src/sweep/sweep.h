// The op sweep: small graphs that between them use every prim and every composite, over the dtypes that the op's table
// allows and over shapes that are awkward: empty, of one element, odd, a vector's width and one beside it, and with
// sizes left open, which are compiled once and run at several sizes. What comes out is known from the interpreter.
//
// A family of prims is one file here; which family an op belongs to is a column of graph/ops.def, so a new op of a
// known family is swept without another line. A test asserts that each op has cases, for each class of dtypes it takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "graph/graph.h"

namespace weft::sweep {

// How the elements of an input are drawn.
enum class Draw : std::uint8_t {
  Any,      // everything that the dtype has: NaN, infinities, both zeros, extremes, subnormals, ordinary numbers
  Tame,     // small numbers, many of them equal, whose products and sums are far from the dtype's limits
  Special,  // tame, with NaN and infinities here and there
  NearOne,  // positive and near 1: products of many stay ordinary
  Index,    // integers in [-limit, limit)
  Count,    // integers in [0, limit)
  Text,     // strings that are numbers
};

struct Input {
  Draw draw = Draw::Tame;
  Dim limit = 1;  // of Index and Count
};

struct Case {
  std::string op;    // the prim or composite that it is about
  std::string name;  // "add/f16/[3,0,5]"
  graph::Graph graph;
  std::vector<Input> inputs;   // of the graph, in order
  std::vector<Bindings> runs;  // values of the open sizes; one that is empty where there is none
  double rtol = 0, atol = 0;   // of floats; everything else is exact
};

// All of them, in the order of the op table, composites after prims.
std::vector<Case> cases();

// The inputs of one run. They depend on the case's name and the run alone.
Result<std::vector<Tensor>> inputs_of(const Case& c, const Bindings& sizes);

}  // namespace weft::sweep
