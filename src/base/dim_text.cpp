// Printing and parsing of sizes.
//   sum    = ["-"] term { ("+" | "-") term }
//   term   = factor { "*" factor }
//   factor = integer | name | "quoted name" | "(" sum ")" | "-" factor
//          | ("floordiv" | "ceildiv" | "mod" | "max" | "min") "(" sum { "," sum } ")" | "overflow()"
#include <fmt/format.h>

#include <algorithm>

#include "base/dim_poly.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr int kMaxNesting = 200;

using DimFunction = Dim (*)(const Dim&, const Dim&);
struct Function {
  const char* name;
  DimFunction combine;
  bool any_count;  // two or more arguments, else just two
};
constexpr Function kFunctions[] = {{"floordiv", floor_div, false},
                                   {"ceildiv", ceil_div, false},
                                   {"mod", mod, false},
                                   {"max", max, true},
                                   {"min", min, true}};

const Function* function_named(std::string_view name) {
  for (const Function& f : kFunctions) {
    if (name == f.name) return &f;
  }
  return nullptr;
}

std::string atom_text(const DimAtom& atom) {
  std::string out;
  switch (atom.kind) {
    case DimAtomKind::Overflow: return "overflow()";
    case DimAtomKind::Symbol: {
      const bool plain = is_identifier(atom.name) && function_named(atom.name) == nullptr && atom.name != "overflow";
      return plain ? atom.name : quote(atom.name);
    }
    case DimAtomKind::FloorDiv: out = "floordiv"; break;
    case DimAtomKind::Max: out = "max"; break;
    case DimAtomKind::Min: out = "min"; break;
  }
  const char* separator = "(";
  for (const Dim& arg : atom.args) {
    out += separator + arg.str();
    separator = ", ";
  }
  return out + ")";
}

class Parser {
 public:
  explicit Parser(Lexer& lexer) : lexer_(lexer) {}

  Result<Dim> sum() {
    if (++depth_ > kMaxNesting) return lexer_.error("a size expression nested too deeply");
    Dim total = WEFT_TRY(term());
    for (;;) {
      if (lexer_.accept("+")) {
        total = total + WEFT_TRY(term());
      } else if (lexer_.accept("-")) {
        total = total - WEFT_TRY(term());
      } else {
        break;
      }
    }
    --depth_;
    return total;
  }

 private:
  Result<Dim> term() {
    Dim product = WEFT_TRY(factor());
    while (lexer_.accept("*")) product = product * WEFT_TRY(factor());
    return product;
  }

  Result<Dim> factor() {
    bool negative = false;
    while (lexer_.peek().is("-") && lexer_.peek2().kind != Token::Kind::Integer) {
      lexer_.next();
      negative = !negative;
    }
    Dim value = WEFT_TRY(primary());
    return negative ? -value : value;
  }

  Result<Dim> primary() {
    const Token token = lexer_.peek();
    if (token.kind == Token::Kind::Integer || token.is("-")) return Dim(WEFT_TRY(lexer_.integer()));
    if (token.kind == Token::Kind::String) return Dim::symbol(lexer_.next().text);
    if (lexer_.accept("(")) {
      Dim inner = WEFT_TRY(sum());
      WEFT_TRY(lexer_.expect(")"));
      return inner;
    }
    const std::string name = WEFT_TRY(lexer_.identifier("a size"));
    const Function* function = function_named(name);
    if (function != nullptr) return call(*function);
    if (name != "overflow") return Dim::symbol(name);
    WEFT_TRY(lexer_.expect("("));
    WEFT_TRY(lexer_.expect(")"));
    return dim_overflow();
  }

  Result<Dim> call(const Function& function) {
    WEFT_TRY(lexer_.expect("("));
    Dim value = WEFT_TRY(sum());
    int count = 1;
    while (lexer_.accept(",")) {
      if (++count > 2 && !function.any_count) {
        return lexer_.error(fmt::format("{} takes two arguments", function.name));
      }
      value = function.combine(value, WEFT_TRY(sum()));
    }
    if (count < 2) return lexer_.error(fmt::format("{} takes two arguments", function.name));
    WEFT_TRY(lexer_.expect(")"));
    return value;
  }

  Lexer& lexer_;
  int depth_ = 0;
};

}  // namespace

std::string Dim::str() const {
  if (is_const()) return std::to_string(value_);
  std::string out;
  const auto append_sign = [&](bool negative) {
    out += out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
  };
  for (const DimTerm& t : dim_terms(*this)) {
    append_sign(t.coefficient < 0);
    const char* separator = "";
    for (const DimFactor& f : t.factors) {
      const std::string text = atom_text(*f.atom);
      for (int i = 0; i < f.power; ++i) {
        out += separator + text;
        separator = "*";
      }
    }
    const std::int64_t magnitude = t.coefficient < 0 ? -t.coefficient : t.coefficient;
    if (magnitude != 1) out += fmt::format("*{}", magnitude);
  }
  const std::int64_t constant = dim_constant(*this);
  if (constant != 0) {
    append_sign(constant < 0);
    out += std::to_string(constant < 0 ? -constant : constant);
  }
  return out;
}

std::string str(const Shape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i == 0 ? "" : ", ") + shape[i].str();
  return out + "]";
}

Result<Dim> parse_dim(Lexer& lexer) { return Parser(lexer).sum(); }

Result<Dim> Dim::parse(std::string_view text) {
  Lexer lexer(text, "size");
  Dim d = WEFT_TRY(parse_dim(lexer));
  WEFT_TRY(lexer.expect_end());
  return d;
}

}  // namespace weft
