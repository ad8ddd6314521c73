// What a C-like language spells differently from another. The walker (emit.cpp) does the rest: a
// new language is a table of spellings and one implementation of Dialect.
#pragma once

#include <span>
#include <string>

#include "kernel/kernel.h"

namespace weft::codegen::text {

// How a scalar op reads, by the class of its operands; null: this language has no such op on them.
// In a template
//   $0 $1 $2  operands            $u0 $u1 $u2  the same seen as unsigned integers
//   $T $U     their type, and the unsigned one of equal width     $W  the width in bits
// A template that starts with @ is a helper of the prelude that works lane by lane: "@div" is
// weft_div_i32(a, b). Comparisons give what the language's own do; the dialect's from_comparison
// makes that a bool.
struct Spelling {
  const char* real;
  const char* signed_int;
  const char* unsigned_int;
  const char* logical;
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual int max_width() const = 0;                        // lanes of the widest vector; 1: none
  virtual std::span<const Spelling> spellings() const = 0;  // by ScalarOp
  virtual bool supports(DType t) const = 0;

  // Values: bool lanes have a type of the dialect's choice, narrow floats travel as their bits.
  virtual std::string type(DType t, int width) const = 0;
  virtual std::string unsigned_type(DType t, int width) const = 0;
  virtual std::string literal(DType t, Scalar value) const = 0;
  virtual bool has_literals() const { return false; }  // that may stand for a value wherever it is used
  virtual std::string splat(DType t, int width, const std::string& scalar) const = 0;
  virtual std::string lane(DType t, int width, const std::string& x,
                           int lane) const = 0;  // as a scalar value
  virtual std::string set_lane(DType t, int width, const std::string& x, int lane,
                               const std::string& scalar) const = 0;
  virtual std::string build(DType t, int width, std::span<const std::string> lanes) const = 0;
  virtual std::string from_comparison(DType operands, int width, const std::string& x) const = 0;
  virtual std::string select(DType t, int width, const std::string& c, const std::string& a,
                             const std::string& b) const = 0;
  virtual std::string cast(DType from, DType to, int width, const std::string& x) const = 0;
  virtual std::string bitcast(DType from, DType to, int width, const std::string& x) const = 0;
  virtual std::string ldexp(DType t, int width, const std::string& x,
                            const std::string& n) const = 0;
  virtual std::string all(int width,
                          const std::string& x) const = 0;  // of bool lanes, as a condition

  // A statement that names a value; no value: it is assigned later.
  virtual std::string declare(const std::string& type, const std::string& name, const std::string& value, bool /*changes*/) const {
    return value.empty() ? type + " " + name + ";" : type + " " + name + " = " + value + ";";
  }
  // An integer result as its type holds it, where types of a few bits are computed in wider ones.
  virtual std::string narrow(DType, int /*width*/, const std::string& x) const { return x; }
  // x, but so that no compiler sees what it is made of: for languages whose compilers reassociate sums of floats.
  virtual std::string opaque(DType, int /*width*/, const std::string& x) const { return x; }
  // Narrow elements taken for i32, the first ones low; empty: not in this language, or they fill none.
  virtual std::string words(DType, int /*width*/, const std::string& /*x*/) const { return {}; }
  // The template of $2 and the products of the bytes of $0, unsigned, by those of $1, signed; of i32. Null: none.
  virtual const char* dot4() const { return nullptr; }
  // The same of $2, f32, and the products of the bf16 of $0 by those of $1, the high ones first.
  virtual const char* dot2() const { return nullptr; }

  // Memory: `width` elements from `index` on.
  virtual std::string load(DType t, int width, const std::string& buffer,
                           const std::string& index) const = 0;
  virtual std::string store(DType t, int width, const std::string& buffer, const std::string& index,
                            const std::string& value) const = 0;

  // An expression that combines `value` into one element and is what was there; empty: the language has none.
  virtual std::string atomic(Combine, DType, const std::string& /*buffer*/, const std::string& /*index*/,
                             const std::string& /*value*/) const {
    return {};
  }

  virtual std::string prelude() const = 0;
  virtual std::string signature(const kernel::Function& f) const = 0;
  virtual std::string start(const kernel::Function&) const { return {}; }  // first lines of the body
  virtual std::string on_chip(const ssa::Buffer& buffer, const std::string& name) const = 0;
  virtual std::string program_id() const = 0;

  // Groups of threads that run one program; a language without them refuses such kernels.
  virtual bool has_groups() const { return false; }
  virtual std::string shared(const ssa::Buffer&, const std::string&) const { return {}; }  // on_chip, for all threads
  virtual std::string thread_id() const { return {}; }
  virtual std::string barrier() const { return {}; }
  virtual std::string shuffle(DType, const std::string&, const std::string&) const { return {}; }  // empty: none
  virtual std::string fail(std::int64_t code) const = 0;
};

// Prints an expanded function, without the prelude.
Result<std::string> emit(const kernel::Function& function, const Dialect& dialect);

}  // namespace weft::codegen::text
