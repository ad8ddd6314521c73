#include "kernel/simt/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace weft::kernel::simt {
namespace {

// Vectors in echelon form, each with the combination of the vectors put in that makes it.
class Echelon {
 public:
  // Reduces v; `used` collects which inputs were added.
  void reduce(Bits& v, Bits& used) const {
    for (const Row& row : rows_) {
      if (v & row.lead) v ^= row.vector, used ^= row.made_of;
    }
  }
  bool add(Bits v, int number) {
    Bits used = number < 32 ? Bits{1} << number : 0;
    reduce(v, used);
    if (v == 0) return false;
    rows_.push_back({v, used, std::bit_floor(v)});
    return true;
  }
  bool contains(Bits v) const {
    Bits used = 0;
    reduce(v, used);
    return v == 0;
  }
  int size() const { return static_cast<int>(rows_.size()); }

 private:
  struct Row {
    Bits vector, made_of, lead;
  };
  std::vector<Row> rows_;
};

Echelon echelon(const std::vector<Bits>& vectors) {
  Echelon e;
  for (std::size_t i = 0; i < vectors.size(); ++i) e.add(vectors[i], static_cast<int>(i));
  return e;
}

Bits mask(int bits) { return bits >= 32 ? ~Bits{0} : (Bits{1} << bits) - 1; }

void append(std::vector<Bits>& to, const std::vector<Bits>& from) { to.insert(to.end(), from.begin(), from.end()); }

// The vectors of n bits, those with the fewest bits first.
std::vector<Bits> sparse_first(int n) {
  std::vector<Bits> all;
  for (Bits v = 1; v <= mask(n); ++v) all.push_back(v);
  std::stable_sort(all.begin(), all.end(), [](Bits a, Bits b) { return std::popcount(a) < std::popcount(b); });
  return all;
}

}  // namespace

LinearMap LinearMap::identity(int bits) {
  std::vector<Bits> columns;
  for (int i = 0; i < bits; ++i) columns.push_back(Bits{1} << i);
  return {bits, std::move(columns)};
}

Bits LinearMap::operator()(Bits x) const {
  Bits y = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (x >> i & 1) y ^= columns_[i];
  }
  return y;
}

int LinearMap::rank() const { return echelon(columns_).size(); }

LinearMap LinearMap::transposed() const {
  std::vector<Bits> columns(static_cast<std::size_t>(outputs_));
  for (int i = 0; i < inputs(); ++i) {
    for (int o = 0; o < outputs_; ++o) columns[static_cast<std::size_t>(o)] |= (column(i) >> o & 1) << i;
  }
  return {inputs(), std::move(columns)};
}

std::optional<Bits> LinearMap::solve(Bits y) const {
  Bits x = 0;
  echelon(columns_).reduce(y, x);
  return y == 0 ? std::optional(x) : std::nullopt;
}

std::optional<LinearMap> LinearMap::right_inverse() const {
  const Echelon e = echelon(columns_);
  std::vector<Bits> columns;
  for (int o = 0; o < outputs_; ++o) {
    Bits y = Bits{1} << o, x = 0;
    e.reduce(y, x);
    if (y != 0) return std::nullopt;
    columns.push_back(x);
  }
  return LinearMap(inputs(), std::move(columns));
}

LinearMap compose(const LinearMap& f, const LinearMap& g) {
  WEFT_CHECK(f.inputs() == g.outputs(), "maps that do not follow each other");
  std::vector<Bits> columns;
  for (int i = 0; i < g.inputs(); ++i) columns.push_back(f(g.column(i)));
  return {f.outputs(), std::move(columns)};
}

bool spans(const std::vector<Bits>& vectors, Bits v) { return echelon(vectors).contains(v); }

Layout::Layout(std::array<int, 2> axis_bits, std::array<std::vector<Bits>, 3> bases)
    : axis_bits_(axis_bits), bases_(std::move(bases)) {
  for (const Part part : kParts) {
    for (const Bits b : this->bases(part)) WEFT_CHECK((b & ~mask(axis_bits[0] + axis_bits[1])) == 0, "a basis outside of the tile");
  }
}

LinearMap Layout::map() const {
  std::vector<Bits> columns;
  for (const Part part : kParts) append(columns, bases(part));
  return {axis_bits_[0] + axis_bits_[1], std::move(columns)};
}

Bits Layout::coordinate(Bits reg, Bits lane, Bits warp) const {
  return map()(reg | lane << bits(Part::Register) | warp << (bits(Part::Register) + bits(Part::Lane)));
}

Layout Layout::transposed() const {
  std::array<std::vector<Bits>, 3> bases = bases_;
  for (auto& part : bases) {
    for (Bits& b : part) b = column(b) << bits(Axis::Row) | row(b);
  }
  return {{axis_bits_[1], axis_bits_[0]}, std::move(bases)};
}

Layout Layout::projected(Axis axis) const {
  std::array<std::vector<Bits>, 3> bases = bases_;
  for (auto& part : bases) {
    for (Bits& b : part) b = axis == Axis::Row ? column(b) : row(b);
  }
  std::array<int, 2> axis_bits = axis_bits_;
  axis_bits[static_cast<std::size_t>(axis)] = 0;
  return {axis_bits, std::move(bases)};
}

std::string str(const Layout& layout) {
  constexpr const char* names[] = {"register", "; lane", "; warp"};
  std::string s;
  for (const Part part : kParts) {
    s += names[static_cast<std::size_t>(part)];
    for (const Bits b : layout.bases(part)) s += fmt::format(" ({},{})", layout.row(b), layout.column(b));
  }
  return s;
}

Layout product(const Layout& a, const Layout& b) {
  const int rows = a.bits(Axis::Row), cols = a.bits(Axis::Column), all_cols = cols + b.bits(Axis::Column);
  std::array<std::vector<Bits>, 3> bases;
  for (const Part part : kParts) {
    auto& to = bases[static_cast<std::size_t>(part)];
    for (const Bits x : a.bases(part)) to.push_back(a.row(x) << all_cols | a.column(x));
    for (const Bits x : b.bases(part)) to.push_back(b.row(x) << (all_cols + rows) | b.column(x) << cols);
  }
  return {{rows + b.bits(Axis::Row), all_cols}, std::move(bases)};
}

std::optional<Layout> divide(const Layout& whole, const Layout& a) {
  const int rows = a.bits(Axis::Row), cols = a.bits(Axis::Column);
  const std::array<int, 2> rest = {whole.bits(Axis::Row) - rows, whole.bits(Axis::Column) - cols};
  if (rest[0] < 0 || rest[1] < 0) return std::nullopt;
  std::array<std::vector<Bits>, 3> bases;
  for (const Part part : kParts) {
    const auto& all = whole.bases(part);
    for (std::size_t i = static_cast<std::size_t>(a.bits(part)); i < all.size(); ++i) {
      bases[static_cast<std::size_t>(part)].push_back(whole.row(all[i]) >> rows << rest[1] | whole.column(all[i]) >> cols);
    }
  }
  Layout b(rest, std::move(bases));
  return product(a, b) == whole ? std::optional(std::move(b)) : std::nullopt;
}

// Position bits of `to` one by one: what their basis lacks against the same bit of `from` must come from registers, or
// from registers and lanes.
Conversion conversion(const Layout& from, const Layout& to) {
  WEFT_CHECK(from.bits(Axis::Row) == to.bits(Axis::Row) && from.bits(Axis::Column) == to.bits(Axis::Column) &&
                 from.bits(Part::Lane) == to.bits(Part::Lane) && from.bits(Part::Warp) == to.bits(Part::Warp),
             "layouts of two tiles");
  if (from == to) return {Conversion::Through::Nothing, LinearMap::identity(from.map().inputs())};
  const int registers = from.bits(Part::Register), lanes = from.bits(Part::Lane), warps = from.bits(Part::Warp);
  const int coordinate_bits = from.map().outputs(), position_bits = registers + lanes + warps;
  const LinearMap in_thread(coordinate_bits, from.bases(Part::Register));
  std::vector<Bits> warp_bases = from.bases(Part::Register);
  append(warp_bases, from.bases(Part::Lane));
  const LinearMap in_warp(coordinate_bits, warp_bases);

  const auto attempt = [&](bool lanes_too) -> std::optional<LinearMap> {
    const LinearMap& reach = lanes_too ? in_warp : in_thread;
    std::vector<Bits> columns;
    for (const Bits b : to.bases(Part::Register)) {
      const auto x = reach.solve(b);
      if (!x) return std::nullopt;
      columns.push_back(*x);
    }
    for (int i = 0; i < lanes; ++i) {
      const Bits b = to.bases(Part::Lane)[static_cast<std::size_t>(i)];
      if (b == from.bases(Part::Lane)[static_cast<std::size_t>(i)]) {
        columns.push_back(Bits{1} << (registers + i));
        continue;
      }
      const auto x = lanes_too ? LinearMap(coordinate_bits, from.bases(Part::Lane)).solve(b) : std::nullopt;
      if (!x) return std::nullopt;
      columns.push_back(*x << registers);
    }
    for (int i = 0; i < warps; ++i) {
      if (to.bases(Part::Warp)[static_cast<std::size_t>(i)] != from.bases(Part::Warp)[static_cast<std::size_t>(i)]) return std::nullopt;
      columns.push_back(Bits{1} << (registers + lanes + i));
    }
    return LinearMap(position_bits, std::move(columns));
  };
  if (auto source = attempt(false)) return {Conversion::Through::Registers, *std::move(source)};
  if (auto source = attempt(true)) return {Conversion::Through::Lanes, *std::move(source)};
  return {Conversion::Through::Shared, {}};
}

// Coordinates are a space; a bank is what is left of them modulo a subspace S (offsets in one bank). Two lanes meet in
// a bank when their difference is in S, so S must have nothing in common with what the lanes of a writing warp span,
// nor with what those of a reading one do. Two proper subspaces never fill the space, so S can grow by a vector outside
// of both until it leaves just as many banks as there are.
LinearMap swizzle(const Layout& writer, const Layout& reader, int vector_bits, int bank_bits) {
  const int all = writer.map().outputs(), n = all - vector_bits;
  WEFT_CHECK(vector_bits <= writer.bits(Axis::Column) && reader.map().outputs() == all, "runs longer than a row");
  Echelon with_writer, with_reader, basis;
  for (const Bits b : writer.bases(Part::Lane)) with_writer.add(b >> vector_bits, 32);
  for (const Bits b : reader.bases(Part::Lane)) with_reader.add(b >> vector_bits, 32);
  const int depth = std::max(0, n - bank_bits);  // of S
  std::vector<Bits> same_bank;
  for (const Bits v : sparse_first(n)) {
    if (static_cast<int>(same_bank.size()) == depth) break;
    if (with_writer.contains(v) || with_reader.contains(v)) continue;
    same_bank.push_back(v);
    with_writer.add(v, 32), with_reader.add(v, 32), basis.add(v, 32);
  }
  for (const Bits v : sparse_first(n)) {  // more lanes than banks: they meet, but no more than they must
    if (static_cast<int>(same_bank.size()) == depth) break;
    if (basis.add(v, 32)) same_bank.push_back(v);
  }
  std::vector<Bits> columns;
  for (int i = 0; i < n && static_cast<int>(columns.size()) < n - depth; ++i) {
    if (basis.add(Bits{1} << i, 32)) columns.push_back(Bits{1} << i);
  }
  append(columns, same_bank);
  const auto offsets = LinearMap(n, std::move(columns)).right_inverse();  // run -> offset in runs
  WEFT_CHECK(offsets.has_value(), "a swizzle that is no basis");
  std::vector<Bits> result;
  for (int i = 0; i < all; ++i)
    result.push_back(i < vector_bits ? Bits{1} << i : offsets->column(i - vector_bits) << vector_bits);
  return {all, std::move(result)};
}

}  // namespace weft::kernel::simt
