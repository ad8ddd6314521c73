// What tests look for in emitted assembly.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace weft::codegen::test {

// The lines of the block that holds the most fused multiply-adds.
inline std::vector<std::string> hot_block(const std::string& assembly) {
  std::vector<std::string> best, block;
  auto count = [](const std::vector<std::string>& lines) {
    return std::count_if(lines.begin(), lines.end(),
                         [](auto& l) { return l.find("vfmadd") != std::string::npos; });
  };
  std::istringstream stream(assembly);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind(".L", 0) == 0) block.clear();
    block.push_back(line);
    if (count(block) > count(best)) best = block;
  }
  return best;
}

}  // namespace weft::codegen::test
