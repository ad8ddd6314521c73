// What a kernel's body writes to: while recording, a tile program; in debug(), a program that is run instruction by
// instruction as it grows. The first mistake is kept, and nothing is recorded after it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tile/tile.h"
#include "weft/tile.h"

namespace weft::tile {

struct Parameter {
  bool is_number = false;
  int place = 0;  // among the buffers or the sizes
};

// A print() of the body: each execution writes its number, its program and the tile's elements, as 64-bit words.
struct PrintSite {
  std::string label;
  Type type;
  std::int64_t words() const { return type.elements() + 2; }
};

struct Recorded {
  Function function;
  std::vector<Parameter> parameters;
  std::vector<std::string> checks;  // messages, by code - 1
  std::vector<PrintSite> prints;    // with any, the last two buffers are the count of words and the words
  std::optional<Error> error;
};

// Words that all print()s of one run can hold.
constexpr std::int64_t kPrintWords = std::int64_t{1} << 16;

class Recorder {
 public:
  explicit Recorder(std::string name);
  // In debug(): the program to run. Valid until the body has returned.
  void step_with(Stepper& stepper, std::int64_t program) { stepper_ = &stepper, program_ = program; }
  ~Recorder();

  static Recorder& current();  // of the body that runs now
  Recorded finish();
  const Function& function() { return b_.function(); }
  const std::optional<Error>& error() const { return error_; }

  int add_memory(DType dtype, bool read, bool written);
  ValueId add_number();

  void fail(std::string message);
  bool failed() const { return error_.has_value(); }
  bool debugging() const { return stepper_ != nullptr; }

  // Tiles and values. A number becomes a constant of the type.
  Tile tile(ValueId v);
  ValueId value(const Tile& x, std::optional<DType> number_type = std::nullopt);
  Type type(const Tile& x);
  bool is_number(const Tile& x) const { return x.kind_ != Tile::Kind::Value; }
  Scalar known(const Tile& x, int row, int column);  // in debug()

  Tile scalar(ScalarOp op, const std::vector<const Tile*>& operands);
  Tile cast(const Tile& x, DType dtype, bool bits);
  Tile reduce(const char* what, Combine combine, const Tile& x, int axis);
  Tile scan(const char* what, Combine combine, const Tile& x, int axis);
  Tile dot(const Tile& a, const Tile& b, const Tile* acc);
  Tile program_id();
  Tile iota(int rows, int columns, int axis);
  Tile broadcast(const char* what, const Tile& x, int rows, int columns);
  Tile transpose(const Tile& x);
  Tile load(int buffer, const Tile& index, const Tile& mask);
  void store(int buffer, const Tile& index, const Tile& value, const Tile& mask);
  Tile atomic(Combine combine, int buffer, const Tile& index, const Tile& value, const Tile& mask);
  void check(const Tile& condition, const std::string& message);
  void print(const std::string& label, const Tile& x);

  void begin_loop(Range& range);
  void end_loop(Range& range);
  void branch(const Tile& condition, const std::function<void()>& then, const std::function<void()>& otherwise);

  void add(Var& var, const Tile& initial);
  void remove(Var& var);
  void assign(Var& var, const Tile& x);

 private:
  struct Access {
    ValueId index, mask;
    Type shape;
  };
  std::optional<Access> access(const char* what, const Tile& index, const Tile& mask);
  std::optional<DType> common_type(const char* what, const std::vector<const Tile*>& operands, std::size_t from);
  std::optional<Type> united(const char* what, const std::vector<Type>& types);
  bool is_axis(const char* what, int axis);
  ValueId widened(ValueId v);  // f16 and bf16 to f32
  ValueId into(ValueId v, DType dtype, const char* what);  // what a memory of the type can hold
  Tile zero();
  void run_new();
  void open_scope() { scopes_.push_back(next_scope_++); }
  bool is_open(int scope) const;
  std::vector<ValueId> values_of_vars() const;
  void set_vars(const std::vector<ValueId>& values);

  Builder b_;
  Stepper* stepper_ = nullptr;
  std::int64_t program_ = 0;
  std::size_t run_ = 0;  // instructions that the stepper has run
  std::vector<Var*> vars_;
  std::vector<int> scopes_ = {0}, scope_of_;  // open ones; by value
  int next_scope_ = 1;
  std::vector<Parameter> parameters_;
  std::vector<std::string> checks_;
  std::vector<PrintSite> prints_;
  int buffers_ = 0, print_buffer_ = -1;
  std::optional<Error> error_;
  Recorder* outer_;  // whose body makes this kernel
};

}  // namespace weft::tile
