#include "compile/tuned.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/knobs.h"
#include "runtime/cache.h"

namespace weft::compiler {
namespace {

constexpr std::int64_t kMostBytes = 16 << 20;

runtime::Cache store() {
  const std::string beside = runtime::Cache().directory();
  return runtime::Cache(beside.empty() ? "" : beside + "/tuned", kMostBytes);
}

// Most of the time nothing was ever tuned: then nothing is looked up.
bool is_there() {
  static const bool there = [] {
    std::error_code ignored;
    const std::string folder = store().directory();
    return !folder.empty() && std::filesystem::is_directory(folder, ignored);
  }();
  return there;
}

runtime::CacheKey key_of(const Machine& m, const std::string& group, const DimFacts& facts) {
  runtime::CacheKey key;
  key.add("tuned 1");
  key.add(m.name);
  key.add(fmt::format("{} bits, {} cores, {}", m.vector_bits, m.cores, fmt::join(m.features, ",")));
  key.add(group);
  for (const auto& [symbol, range] : facts.symbols()) {
    if (group.find(symbol) == std::string::npos) continue;  // sizes of other kernels
    key.add(fmt::format("{} {} {} {}", symbol, range.lo, range.hi, range.multiple_of));
  }
  return key;
}

std::string text_of(const std::vector<char>& blob) { return {blob.begin(), blob.end()}; }

}  // namespace

std::optional<Tuned> find_tuned(const Machine& machine, const std::string& group, const DimFacts& facts) {
  const auto blobs = store().get(key_of(machine, group, facts));
  if (!blobs || blobs->empty()) return std::nullopt;
  Tuned tuned;
  tuned.choice = text_of(blobs->front());
  for (std::size_t k = 1; k < blobs->size(); ++k) tuned.tried.push_back(text_of((*blobs)[k]));
  return tuned;
}

void keep_tuned(const Machine& machine, const std::string& group, const DimFacts& facts, const Tuned& tuned) {
  runtime::Cache::Blobs blobs{{tuned.choice.begin(), tuned.choice.end()}};
  for (const std::string& record : tuned.tried) blobs.emplace_back(record.begin(), record.end());
  store().put(key_of(machine, group, facts), blobs);
}

std::string tuned_state() {
  std::error_code error;
  const std::string folder = store().directory();
  const auto changed = folder.empty() ? std::filesystem::file_time_type() : std::filesystem::last_write_time(folder, error);
  return folder.empty() || error ? "" : fmt::format("{}", changed.time_since_epoch().count());
}

std::string tuned_choice(const Options& options, const std::string& group, const DimFacts& facts) {
  if (const auto it = options.choices.find(group); it != options.choices.end()) return it->second;
  if (!options.tuned || !options.choices.empty() || options.target || !is_there()) return "";
  const auto found = find_tuned(options.machine, group, facts);
  return found ? found->choice : "";
}

}  // namespace weft::compiler
