// Linear layouts: where the elements of a tile lie in the registers of a group of threads.
//
// A group of threads holds a tile of 2^r rows and 2^c columns. A position is (register, lane, warp): register 3 of
// lane 7 of warp 1. All counts are powers of two, so a position and a coordinate (row, column) are strings of bits, and
// every distribution that is worth having is *linear* over them: the coordinate of a position is the exclusive or of
// the coordinates of its bits. A layout is therefore a short list of *bases*, one coordinate for each bit of a position.
// For a row of 8 columns over 2 registers and 4 lanes, pairs of neighbours in a lane:
//
//   register bit 0 -> column 1          lane 0 holds columns 0 1
//   lane bit 0     -> column 2          lane 1 holds columns 2 3
//   lane bit 1     -> column 4          lane 2 holds columns 4 5, lane 3 holds columns 6 7
//
// Register 1 of lane 3 (bits 1, 1 1) is column 1 ^ 2 ^ 4 = 7. A basis of zero means that positions which differ in that
// bit hold the same element: a broadcast is zeros, and a value of one row per warp has only zeros for its lanes. What
// follows is linear algebra over GF(2), the field of two elements in which addition is exclusive or:
//
//   compose    f after g, the product of matrices
//   invert     from coordinates back to positions; where several hold an element, the one with zeros
//   transpose  rows for columns
//   product    a times b: b repeats a, its bits above a's in registers, lanes, warps, rows and columns alike
//   divide     the b for which a times b is the whole
//   project    what is left of a layout when an axis is reduced or not there: its bits become zero
//
// A conversion between two layouts of one tile is the map from a position of the second to the position of the first
// that holds its element. If it stays within a thread, registers are renamed; if within a warp, lanes shuffle; else the
// tile goes through shared memory (`conversion`). There, addresses are a linear map of coordinates too, and the one
// that spreads both the writers and the readers of a warp over all banks is derived (`swizzle`), not looked up.
// Source: Triton's linear layouts, arXiv:2505.23819.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::kernel::simt {

using Bits = std::uint32_t;

// A matrix over GF(2): column i is the image of input bit i.
class LinearMap {
 public:
  LinearMap() = default;
  LinearMap(int outputs, std::vector<Bits> columns) : outputs_(outputs), columns_(std::move(columns)) {}
  static LinearMap identity(int bits);

  int inputs() const { return static_cast<int>(columns_.size()); }
  int outputs() const { return outputs_; }
  Bits column(int input) const { return columns_[static_cast<std::size_t>(input)]; }
  Bits operator()(Bits x) const;

  int rank() const;
  LinearMap transposed() const;
  std::optional<Bits> solve(Bits y) const;          // an x with map(x) == y that leaves free bits zero; none: no such x
  std::optional<LinearMap> right_inverse() const;   // map(inverse(y)) == y for all y; none: not onto
  friend LinearMap compose(const LinearMap& f, const LinearMap& g);  // f after g
  friend bool operator==(const LinearMap&, const LinearMap&) = default;

 private:
  int outputs_ = 0;
  std::vector<Bits> columns_;
};

// Whether v is a sum of some of the vectors.
bool spans(const std::vector<Bits>& vectors, Bits v);

enum class Part : std::uint8_t { Register, Lane, Warp };
inline constexpr std::array<Part, 3> kParts = {Part::Register, Part::Lane, Part::Warp};
enum class Axis : std::uint8_t { Row, Column };

// Bits of a coordinate: the columns' below the rows'. Bits of a position: registers', lanes', warps', from the lowest.
class Layout {
 public:
  Layout() = default;
  Layout(std::array<int, 2> axis_bits, std::array<std::vector<Bits>, 3> bases);

  int bits(Axis axis) const { return axis_bits_[static_cast<std::size_t>(axis)]; }
  int bits(Part part) const { return static_cast<int>(bases(part).size()); }
  const std::vector<Bits>& bases(Part part) const { return bases_[static_cast<std::size_t>(part)]; }
  LinearMap map() const;  // position -> coordinate
  Bits coordinate(Bits reg, Bits lane, Bits warp) const;
  Bits row(Bits coordinate) const { return coordinate >> bits(Axis::Column); }
  Bits column(Bits coordinate) const { return coordinate & ((Bits{1} << bits(Axis::Column)) - 1); }

  Layout transposed() const;
  Layout projected(Axis axis) const;  // the axis has one element
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::array<int, 2> axis_bits_ = {0, 0};
  std::array<std::vector<Bits>, 3> bases_;
};

std::string str(const Layout& layout);  // "register (0,1) (0,2); lane (0,4) (1,0); warp"

Layout product(const Layout& a, const Layout& b);
std::optional<Layout> divide(const Layout& whole, const Layout& a);  // b with product(a, b) == whole

// How a tile moves from one layout to another.
struct Conversion {
  enum class Through : std::uint8_t { Nothing, Registers, Lanes, Shared } through = Through::Nothing;
  // Unless through shared memory: bits of a position of `to` -> bits of the position of `from` that holds its element.
  // Within Registers, lane and warp stay; within Lanes, the warp stays and the register depends on the register alone.
  LinearMap source;
};
Conversion conversion(const Layout& from, const Layout& to);

// Addresses in shared memory: coordinate -> element offset, one to one. Runs of 2^vector_bits columns stay together and
// in order. The next bank_bits bits of an offset tell banks apart, and no two lanes of a warp that access different
// runs meet in a bank, neither when they write as `writer` nor when they read as `reader`, as long as there are banks
// enough for the runs of a warp.
LinearMap swizzle(const Layout& writer, const Layout& reader, int vector_bits, int bank_bits);

}  // namespace weft::kernel::simt
