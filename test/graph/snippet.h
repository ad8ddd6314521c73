// Test helpers: graphs from text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "graph/graph.h"

namespace weft::graph {

// "(%x: f32[n]) where n in 1..8" and "%y = abs %x : f32[n]" as a whole graph that returns nothing.
inline std::string snippet(const std::string& inputs, const std::string& body) {
  const std::size_t end = inputs.find(')');
  return "graph @t" + inputs.substr(0, end + 1) + inputs.substr(end + 1) + " {\n" + body +
         "\nreturn\n}\n";
}

inline Graph parsed(const std::string& text) {
  auto graph = parse(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().what() << "\n" << text;
    return Graph();
  }
  return *graph;
}

}  // namespace weft::graph
