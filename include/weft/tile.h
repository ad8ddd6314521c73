// The tile language: kernels written in ordinary C++, compiled for every target.
//
//   auto add = weft::tile::kernel("add", [](In<float> x, In<float> y, Out<float> sum, Int n) {
//     Tile i = program_id() * 256 + lanes(256);          // which elements are this program's
//     store(sum, i, load(x, i, i < n) + load(y, i, i < n), i < n);
//   });
//   add.compile().value().run(4, {x, y, out, 1000}).value();
//
// A kernel is one program of a grid. Its body runs once, when the kernel is made, and what it does to tiles is recorded
// (so C++ variables, templates and captures are its constants, C++ functions its helpers, and a C++ loop over numbers is
// unrolled). A tile is a scalar or a matrix of known sizes: axis 0 are its rows, axis 1 its lanes. Operands of sizes 1
// stretch. Programs run in any order and must not write what another one reads or writes, but by atomics.
//
// Arithmetic is that of docs/semantics.md: operands have one element type; numbers take that of what they meet; f16, bf16
// and f8 become f32. Integer / and % round down. Mistakes in a body are not reported where they are made: the first one
// is the error of compile(), interpret() and debug().
//
// interpret() runs the recorded program with every access checked: bounds, and races between programs. debug() calls
// the body itself for each program with real values, which Tile::at() shows: set a breakpoint in it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/weft.h"

namespace weft::tile {

class Recorder;

// Element types that C++ has no type for: In<F16> x.
struct F16 {};
struct BF16 {};
struct F8E4M3 {};  // up to 448, no infinity
struct F8E5M2 {};

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, F16>) return DType::F16;
  else if constexpr (std::is_same_v<T, BF16>) return DType::BF16;
  else if constexpr (std::is_same_v<T, F8E4M3>) return DType::F8E4M3FN;
  else if constexpr (std::is_same_v<T, F8E5M2>) return DType::F8E5M2;
  else if constexpr (std::is_same_v<T, bool>) return DType::Bool;
  else if constexpr (std::is_same_v<T, float>) return DType::F32;
  else if constexpr (std::is_same_v<T, double>) return DType::F64;
  else {
    static_assert(std::is_integral_v<T>, "not an element type");
    constexpr DType kSigned[] = {DType::I8, DType::I16, DType::I32, DType::I64};
    constexpr DType kUnsigned[] = {DType::U8, DType::U16, DType::U32, DType::U64};
    constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[log2] : kUnsigned[log2];
  }
}

// A value of the kernel. Not assignable: see Var.
class WEFT_API Tile {
 public:
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  Tile(N number) : real_(static_cast<double>(number)), integer_(static_cast<std::int64_t>(number)),
                   kind_(std::is_floating_point_v<N> ? Kind::Real : Kind::Integer) {}
  Tile(const Tile&) = default;
  Tile& operator=(const Tile&) = delete;

  DType dtype() const;
  int rows() const;
  int columns() const;
  double at(int row = 0, int column = 0) const;  // the value, in debug(); 0 while recording

 protected:
  friend class Recorder;
  enum class Kind : std::uint8_t { Value, Integer, Real };
  explicit Tile(std::int32_t value, Kind kind) : value_(value), kind_(kind) {}
  std::int32_t value_ = -1;
  double real_ = 0;             // of a number
  std::int64_t integer_ = 0;
  Kind kind_;
};

// What a loop carries or a branch chooses is assigned: a variable of one shape and element type.
class WEFT_API Var : public Tile {
 public:
  Var(const Tile& initial);  // numbers become f32 or i64
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  Var(N number) : Var(Tile(number)) {}
  Var(const Var& other) : Var(static_cast<const Tile&>(other)) {}
  ~Var();
  Var& operator=(const Tile& x);
  Var& operator=(const Var& x) { return *this = static_cast<const Tile&>(x); }
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  Var& operator=(N number) { return *this = Tile(number); }
  Var& operator+=(const Tile& x);
  Var& operator-=(const Tile& x);
  Var& operator*=(const Tile& x);

 private:
  friend class Recorder;
};

// Parameters, in the order in which run() takes its arguments. Memory is addressed by element index.
class WEFT_API Memory {
 public:
  int buffer() const { return buffer_; }

 protected:
  Memory(Recorder& recorder, DType dtype, bool read, bool written);
  int buffer_;
};
template <class T>
struct In : Memory {
  explicit In(Recorder& r) : Memory(r, dtype_of<T>(), true, false) {}
};
template <class T>
struct Out : Memory {
  explicit Out(Recorder& r) : Memory(r, dtype_of<T>(), false, true) {}
};
template <class T>
struct InOut : Memory {
  explicit InOut(Recorder& r) : Memory(r, dtype_of<T>(), true, true) {}
};
struct WEFT_API Int : Tile {  // i64
  explicit Int(Recorder& recorder);
};

// Where a program is, and index tiles (i64).
WEFT_API Tile program_id();
WEFT_API Tile lanes(int n);  // [1, n]: 0, 1, ... n - 1
WEFT_API Tile rows(int n);   // [n, 1]
WEFT_API Tile full(DType dtype, int rows, int columns, const Tile& value);
template <class T>
Tile full(int rows, int columns, const Tile& value) { return full(dtype_of<T>(), rows, columns, value); }
template <class T>
Tile zeros(int rows, int columns) { return full<T>(rows, columns, 0); }

// Memory: one element for each of the index; where the mask is false no access, and 0. An index outside the memory is an
// error under interpret() and debug(), and undefined in compiled code.
WEFT_API Tile load(const Memory& memory, const Tile& index, const Tile& mask = true);
WEFT_API void store(const Memory& memory, const Tile& index, const Tile& value, const Tile& mask = true);
// Atomics give what was there before. add: 32 and 64 bits; max, min: integers of 32 and 64 bits.
WEFT_API Tile atomic_add(const Memory& memory, const Tile& index, const Tile& value, const Tile& mask = true);
WEFT_API Tile atomic_max(const Memory& memory, const Tile& index, const Tile& value, const Tile& mask = true);
WEFT_API Tile atomic_min(const Memory& memory, const Tile& index, const Tile& value, const Tile& mask = true);

// A matrix in memory: element (i, j) lies at offset + i * row_stride + j * column_stride. What is outside of its sizes
// is not accessed, and 0.
class WEFT_API Matrix {
 public:
  Matrix(const Memory& memory, const Tile& rows, const Tile& columns)
      : Matrix(memory, rows, columns, columns, 1, 0) {}
  Matrix(const Memory& memory, const Tile& rows, const Tile& columns, const Tile& row_stride,
         const Tile& column_stride = 1, const Tile& offset = 0)
      : memory_(memory), rows_(rows), columns_(columns), row_stride_(row_stride), column_stride_(column_stride),
        offset_(offset) {}
  Tile load(const Tile& i, const Tile& j) const;
  void store(const Tile& i, const Tile& j, const Tile& value) const;

 private:
  Tile index(const Tile& i, const Tile& j) const;
  Tile inside(const Tile& i, const Tile& j) const;
  Memory memory_;
  Tile rows_, columns_, row_stride_, column_stride_, offset_;
};

// Elementwise.
#define WEFT_TILE_BINARY(name) WEFT_API Tile name(const Tile& a, const Tile& b);
WEFT_TILE_BINARY(operator+) WEFT_TILE_BINARY(operator-) WEFT_TILE_BINARY(operator*)
WEFT_TILE_BINARY(operator/) WEFT_TILE_BINARY(operator%)
WEFT_TILE_BINARY(operator&) WEFT_TILE_BINARY(operator|) WEFT_TILE_BINARY(operator^)
WEFT_TILE_BINARY(operator<<) WEFT_TILE_BINARY(operator>>)
WEFT_TILE_BINARY(operator==) WEFT_TILE_BINARY(operator!=) WEFT_TILE_BINARY(operator<)
WEFT_TILE_BINARY(operator<=) WEFT_TILE_BINARY(operator>) WEFT_TILE_BINARY(operator>=)
WEFT_TILE_BINARY(maximum) WEFT_TILE_BINARY(minimum) WEFT_TILE_BINARY(pow)
#undef WEFT_TILE_BINARY
#define WEFT_TILE_UNARY(name) WEFT_API Tile name(const Tile& x);
WEFT_TILE_UNARY(operator-) WEFT_TILE_UNARY(operator~) WEFT_TILE_UNARY(operator!)
WEFT_TILE_UNARY(abs) WEFT_TILE_UNARY(floor) WEFT_TILE_UNARY(ceil) WEFT_TILE_UNARY(round)
WEFT_TILE_UNARY(exp) WEFT_TILE_UNARY(log) WEFT_TILE_UNARY(sqrt) WEFT_TILE_UNARY(rsqrt)
WEFT_TILE_UNARY(sin) WEFT_TILE_UNARY(cos) WEFT_TILE_UNARY(tanh) WEFT_TILE_UNARY(erf) WEFT_TILE_UNARY(sigmoid)
#undef WEFT_TILE_UNARY
WEFT_API Tile fma(const Tile& a, const Tile& b, const Tile& c);  // a * b + c, rounded once
WEFT_API Tile where(const Tile& condition, const Tile& a, const Tile& b);
WEFT_API Tile cast(const Tile& x, DType dtype);
WEFT_API Tile bitcast(const Tile& x, DType dtype);
template <class T>
Tile cast(const Tile& x) { return cast(x, dtype_of<T>()); }

// Along an axis: reductions leave size 1, running ones (inclusive, in order) the shape.
WEFT_API Tile sum(const Tile& x, int axis = 1);
WEFT_API Tile prod(const Tile& x, int axis = 1);
WEFT_API Tile max(const Tile& x, int axis = 1);  // NaN propagates
WEFT_API Tile min(const Tile& x, int axis = 1);
WEFT_API Tile any(const Tile& x, int axis = 1);  // of bool
WEFT_API Tile all(const Tile& x, int axis = 1);
WEFT_API Tile cumsum(const Tile& x, int axis = 1);
WEFT_API Tile cumprod(const Tile& x, int axis = 1);
WEFT_API Tile cummax(const Tile& x, int axis = 1);

WEFT_API Tile broadcast(const Tile& x, int rows, int columns);
WEFT_API Tile transpose(const Tile& x);
// [r, k] x [k, c] (+ acc [r, c]): operands are as wide as acc or narrower, and of its kind. Without acc: f32 or i32.
WEFT_API Tile dot(const Tile& a, const Tile& b);
WEFT_API Tile dot(const Tile& a, const Tile& b, const Tile& acc);

// A loop of the kernel: for (Tile k : range(0, n, 32)) ... The body runs once while recording; what changes from one
// iteration to the next is a Var. Not to be left by break.
class WEFT_API Range {
 public:
  Range(const Tile& lo, const Tile& hi, const Tile& step);
  Range(const Range&) = delete;
  ~Range();
  struct End {};
  class WEFT_API Iterator {
   public:
    explicit Iterator(Range& range) : range_(&range) {}
    Tile operator*() const;
    Iterator& operator++();
    bool operator!=(End) const;

   private:
    Range* range_;
  };
  Iterator begin();
  End end() const { return {}; }

 private:
  friend class Recorder;
  Tile lo_, hi_, step_;
  std::int32_t counter_ = -1;  // the value in recording
  std::int64_t at_ = 0;        // in debug()
  bool open_ = false, more_ = false;
};
inline Range range(const Tile& lo, const Tile& hi, const Tile& step = 1) { return Range(lo, hi, step); }

// A branch on a scalar; what it changes are Vars.
WEFT_API void when(const Tile& condition, const std::function<void()>& then,
                   const std::function<void()>& otherwise = {});

WEFT_API void check(const Tile& condition, const std::string& message);  // the run fails with it where one is false
WEFT_API void print(const std::string& label, const Tile& x);            // of every program, after the run, on stderr

// What run() takes for a parameter: a tensor for memory (written: one over memory that may be), a number for an Int.
class Argument {
 public:
  Argument(const Tensor& tensor) : tensor_(tensor) {}
  template <class N, class = std::enable_if_t<std::is_integral_v<N>>>
  Argument(N number) : number_(static_cast<std::int64_t>(number)), is_number_(true) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Argument(std::span<T> x)
      : tensor_(view(dtype_of<std::remove_const_t<T>>(), x.data(), static_cast<std::int64_t>(x.size()))) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Argument(std::vector<T>& x) : Argument(std::span<T>(x)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Argument(const std::vector<T>& x) : Argument(std::span<const T>(x)) {}

  const Tensor& tensor() const { return tensor_; }
  std::int64_t number() const { return number_; }
  bool is_number() const { return is_number_; }

 private:
  static Tensor view(DType t, const void* data, std::int64_t n) { return Tensor::view(t, {n}, data, nullptr); }
  static Tensor view(DType t, void* data, std::int64_t n) { return Tensor::mutable_view(t, {n}, data); }
  Tensor tensor_;
  std::int64_t number_ = 0;
  bool is_number_ = false;
};
using Arguments = std::vector<Argument>;

// Bytes that a run moved between memory and its programs.
struct Traffic {
  std::int64_t loaded = 0, stored = 0;
};

// Machine code, for one target.
class WEFT_API CompiledKernel {
 public:
  // Programs 0 <= id < grid. From many threads at once where the arguments allow it.
  Result<void> run(std::int64_t grid, const Arguments& arguments) const;

  struct State;
  std::shared_ptr<const State> state;
};

class WEFT_API Kernel {
 public:
  const std::string& name() const;
  // Uses the options' target ("cpu", "ref": interpret(), "opencl"), threads and cpu.
  Result<CompiledKernel> compile(const CompileOptions& options = {}) const;
  Result<Traffic> interpret(std::int64_t grid, const Arguments& arguments) const;
  Result<Traffic> debug(std::int64_t grid, const Arguments& arguments) const;
  // "tile", "kernel", "llvm", "asm"; "source" of a target that compiles text.
  Result<std::string> text(const std::string& stage, const CompileOptions& options = {}) const;
  // Ahead of time: writes STEM.o and STEM.h, whose function NAME(parameters..., programs) a C or C++ program calls
  // without Weft. The kernel's name is a C identifier; print() is not for such code. For the options' cpu.
  Result<void> write_object(const std::string& stem, const CompileOptions& options = {}) const;

  struct State;
  std::shared_ptr<const State> state;
};

// An operator of ONNX models that a kernel computes, on the CPU. The kernel's parameters: the inputs (In), the results
// (Out), then numbers. A model that uses it is loaded, run, verified and explained like any other.
struct CustomOp {
  std::string domain, name;  // as the model's nodes state them
  Kernel kernel;
  // Element types and shapes of the results from those of the inputs, whose sizes may be symbols; names do not matter.
  std::function<std::vector<Port>(const std::vector<Port>& inputs)> results;
  struct Launch {
    std::int64_t grid = 0;
    std::vector<std::int64_t> numbers;
  };
  std::function<Launch(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results)> launch;
};
// For the life of the process, before the models that use it are loaded. Errors: the kernel's own; a name that is taken.
WEFT_API Result<void> register_op(const CustomOp& op, const CompileOptions& options = {});

WEFT_API Kernel record(std::string name, std::function<void(Recorder&)> body);

namespace detail {
template <class Body, class... P>
Kernel record_call(std::string name, Body body, void (Body::*)(P...) const) {
  return record(std::move(name), [body](Recorder& r) {
    std::tuple<P...> parameters{P(r)...};
    std::apply(body, parameters);
  });
}
}  // namespace detail

// The body is a lambda or function object whose parameters are In, Out, InOut and Int.
template <class Body>
Kernel kernel(std::string name, Body body) {
  return detail::record_call(std::move(name), std::move(body), &Body::operator());
}
template <class... P>
Kernel kernel(std::string name, void (*body)(P...)) {
  return kernel(std::move(name), [body](P... parameters) { body(parameters...); });
}

}  // namespace weft::tile
