#include "codegen/llvm/spirv.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

namespace weft::codegen {
namespace {

// Opcodes by the specification's numbers.
enum Opcode : std::uint32_t {
  FunctionEnd = 56, Phi = 245, LoopMerge = 246, SelectionMerge = 247, Label = 248, Branch = 249, BranchConditional = 250, Switch = 251
};
constexpr std::size_t kHeaderWords = 5, kBound = 3;

std::uint32_t opcode(std::uint32_t first) { return first & 0xffff; }
std::uint32_t length(std::uint32_t first) { return first >> 16; }

// Where the instruction names blocks: words of it.
std::vector<std::size_t> block_words(std::span<const std::uint32_t> inst) {
  switch (opcode(inst[0])) {
    case Label:
    case Branch:
    case SelectionMerge: return {1};
    case LoopMerge: return {1, 2};
    case BranchConditional: return {2, 3};
    case Phi: {
      std::vector<std::size_t> parents;
      for (std::size_t k = 4; k < inst.size(); k += 2) parents.push_back(k);
      return parents;
    }
    default: return {};
  }
}

// One function's, up to its end; the next free id is the bound.
bool mend_function(std::span<std::uint32_t> words, std::uint32_t& bound) {
  std::unordered_map<std::uint32_t, std::uint32_t> ids;
  for (std::size_t at = 0; at < words.size(); at += length(words[at])) {
    if (opcode(words[at]) == Switch) return false;  // none is emitted
    if (opcode(words[at]) == Label && !ids.emplace(words[at + 1], bound++).second) return false;
  }
  for (std::size_t at = 0; at < words.size(); at += length(words[at])) {
    for (std::size_t k : block_words(words.subspan(at, length(words[at])))) {
      const auto found = ids.find(words[at + k]);
      if (found == ids.end()) return false;
      words[at + k] = found->second;
    }
  }
  return true;
}

}  // namespace

bool mend_blocks(std::string& module) {
  std::vector<std::uint32_t> words(module.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), module.data(), module.size());
  std::size_t begin = kHeaderWords;
  for (std::size_t at = kHeaderWords; at < words.size();) {
    const std::uint32_t size = length(words[at]);
    if (size == 0 || at + size > words.size()) return false;
    const bool ends = opcode(words[at]) == FunctionEnd;
    at += size;
    if (!ends) continue;
    if (!mend_function(std::span(words).subspan(begin, at - begin), words[kBound])) return false;
    begin = at;
  }
  std::memcpy(module.data(), words.data(), module.size());
  return true;
}

bool ids_are_unique(const std::string& listing) {
  std::set<std::string> seen;
  for (std::size_t at = 0; at < listing.size();) {
    const std::size_t end = std::min(listing.find('\n', at), listing.size());
    const std::size_t first = listing.find_first_not_of(" \t", at), equals = listing.find(" = Op", at);
    if (first < end && equals < end && listing[first] == '%' && !seen.insert(listing.substr(first, equals - first)).second) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace weft::codegen
