// Print, parse, print: the identity at every level that has a parser.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace weft::cli {

inline const std::vector<std::string> kParsedStages{"graph", "loop", "tile", "kernel"};

class TextCheck {
 public:
  void add(const std::string& stage, const std::string& name, std::string text);
  // How many texts of each stage parsed back to themselves, and verified; an internal error names the first that did
  // not and shows where it differs. `constants`: those of the graphs, by content hash.
  Result<std::map<std::string, int>> run(const graph::Sidecar& constants) const;

 private:
  struct Item {
    std::string stage, name, text;
  };
  std::vector<Item> items_;
};

}  // namespace weft::cli
