// An embedding bag over a table that is too large for the device: the sum of some rows for each bag. The table is a file
// mapped into the host's memory; for each batch of bags only the rows that it names are copied to a small staging
// area, and the kernel finds them there by their place. Memory on the device stays below a budget, whatever the table.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "example.h"

namespace examples {
namespace {

template <int D>
void bags_of_rows(In<float> rows_here, In<std::int32_t> places, Out<float> out, Int per_bag) {
  const Tile d = lanes(D);
  Var sum = zeros<float>(1, D);
  for (Tile i : range(0, per_bag)) {
    const Tile place = cast<std::int64_t>(load(places, program_id() * per_bag + i));
    sum += load(rows_here, place * D + d);
  }
  store(out, program_id() * D + d, sum);
}

// A table in a file without a name, mapped.
class MappedTable {
 public:
  MappedTable(std::int64_t rows, int width) : bytes_(static_cast<std::size_t>(rows * width) * sizeof(float)) {
    char name[] = "/tmp/weft-table-XXXXXX";
    const int file = mkstemp(name);
    if (file >= 0 && unlink(name) == 0 && ftruncate(file, static_cast<off_t>(bytes_)) == 0)
      data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
  }
  ~MappedTable() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  MappedTable(const MappedTable&) = delete;
  float* rows() const { return data_ == MAP_FAILED ? nullptr : static_cast<float*>(data_); }

 private:
  std::size_t bytes_;
  void* data_ = MAP_FAILED;
};

}  // namespace

bool embedding_bag(const weft::CompileOptions& options) {
  constexpr int D = 32, kPerBag = 8, kBagsAtOnce = 64, kBags = 300;
  constexpr std::int64_t kRows = 200'000;           // 25.6 MB
  constexpr int kStaged = kBagsAtOnce * kPerBag;    // rows on the device at once: 64 KB
  const MappedTable table(kRows, D);
  if (table.rows() == nullptr) return std::fprintf(stderr, "embedding_bag: no room for the table in /tmp\n"), false;
  std::mt19937 random(5);
  std::vector<std::int64_t> indices(kBags * kPerBag);
  for (auto& index : indices) {
    index = static_cast<std::int64_t>(random() % kRows);
    for (int d = 0; d < D; ++d) table.rows()[index * D + d] = static_cast<float>((index + d) % 7) - 3;
  }

  const Kernel sum_rows = kernel("embedding_bag", bags_of_rows<D>);
  if (print_only(sum_rows, options)) return true;
  const CompiledKernel compiled = sum_rows.compile(options).value();
  std::vector<float> staged(kStaged * D), out(kBags * D), expected(kBags * D);
  std::int64_t moved = 0, least = 0;
  for (int first = 0; first < kBags; first += kBagsAtOnce) {
    const int bags = std::min(kBagsAtOnce, kBags - first);
    std::map<std::int64_t, std::int32_t> place_of;  // by row of the table
    std::vector<std::int32_t> places;
    for (int i = first * kPerBag; i < (first + bags) * kPerBag; ++i) {
      const auto [at, fresh] = place_of.emplace(indices[i], static_cast<std::int32_t>(place_of.size()));
      if (fresh) std::memcpy(&staged[at->second * D], table.rows() + indices[i] * D, D * sizeof(float));
      places.push_back(at->second);
    }
    const Arguments arguments = {staged, places, std::span<float>(out).subspan(first * D, bags * D), kPerBag};
    const Traffic traffic = sum_rows.interpret(bags, arguments).value();
    compiled.run(bags, arguments).value();
    moved += traffic.loaded + traffic.stored;
    least += (static_cast<std::int64_t>(place_of.size()) * D + bags * D) * 4 + static_cast<std::int64_t>(places.size()) * 4;
  }
  for (int bag = 0; bag < kBags; ++bag) {
    for (int i = 0; i < kPerBag; ++i) {
      for (int d = 0; d < D; ++d) expected[bag * D + d] += table.rows()[indices[bag * kPerBag + i] * D + d];
    }
  }
  const double error = worst_difference(out, expected);
  std::printf("%-16s %s: table of %.1f MB through %.1f KB, moved %.2f MB of at least %.2f (%.2f x), max error %.1e%s\n",
              "embedding_bag", options.target.c_str(), kRows * D * 4 / 1e6, kStaged * D * 4 / 1e3,
              static_cast<double>(moved) / 1e6, static_cast<double>(least) / 1e6,
              static_cast<double>(moved) / static_cast<double>(least), error, error == 0 ? "" : "  WRONG");
  return error == 0;
}

}  // namespace examples
