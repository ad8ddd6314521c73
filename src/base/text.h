// Small text helpers, and the tokenizer that all of Weft's text formats share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weft {

class Dim;

// The candidate nearest to `word` by edits, when it is near enough to be what was meant.
std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& candidates);
// "did you mean 'x'?", or "" when nothing is near; for Error::suggest.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

bool is_letter(char c);  // of the alphabet, or _
bool is_digit(char c);
bool is_identifier(std::string_view text);  // letter or _, then letters, digits, _ and inner dots
std::string quote(std::string_view text);   // "a\n\"b\"\x01", what the Lexer reads back to the same bytes
std::string name_text(std::string_view text);  // as it is when it reads as a name after % or @, else quoted

// Shortest text that reads back to the same f64, never spelled like an integer: 1.0, 1e+30, inf, -inf, nan; a NaN
// with other bits than the usual one is written as nan(0x7ff4000000000000).
std::string float_text(double value);

struct Token {
  enum class Kind : std::uint8_t {
    End,
    Identifier,  // add, f32, onnx.Relu, inf
    Value,       // %x, %0, %"any text"; `text` is what follows the sign
    Global,      // @x
    Integer,     // 12, 0x7f: without sign
    Float,       // 1.5, 2e-3: without sign
    String,      // "..."; `text` is decoded
    Punct,       // one character, or -> :: == != <= >= .. +:
    Bad,         // `text` says what is wrong
  };
  Kind kind = Kind::End;
  std::string text;
  int line = 1, column = 1;
  std::size_t begin = 0, end = 0;  // offsets into the source

  bool is(std::string_view punct_or_word) const {
    return (kind == Kind::Punct || kind == Kind::Identifier) && text == punct_or_word;
  }
};

// Reads tokens one at a time; `// ...` to the end of the line is a comment. The source must outlive the lexer.
// Errors are user errors of code "syntax" that say line and column.
class Lexer {
 public:
  explicit Lexer(std::string_view source, std::string source_name = "text");

  const Token& peek() const { return token_; }
  const Token& peek2() const { return after_; }  // the one behind it
  Token next();
  bool at_end() const { return token_.kind == Token::Kind::End; }

  bool accept(std::string_view punct_or_word);
  Result<void> expect(std::string_view punct_or_word);
  Result<std::string> identifier(std::string_view what = "a name");
  Result<std::string> value_name(std::string_view what = "a %name");
  Result<std::string> global_name(std::string_view what = "a @name");
  Result<std::string> string(std::string_view what = "a string");
  Result<std::int64_t> integer(std::string_view what = "an integer");  // with sign
  Result<std::uint64_t> unsigned_integer(std::string_view what = "an integer");
  Result<double> number(std::string_view what = "a number");  // integer, float, inf, nan, nan(0x...), with sign
  Result<void> expect_end();

  Error error(const std::string& message) const { return error_at(token_, message); }
  Error error_at(const Token& token, const std::string& message) const;
  std::string_view source() const { return source_; }

 private:
  Token scan();
  void skip_blanks();
  void advance(std::size_t count);
  Token scan_number(Token token);
  Token scan_string(Token token);
  Token scan_name(Token token);
  Result<std::string> take(Token::Kind kind, std::string_view what);

  std::string_view source_;
  std::string source_name_;
  std::size_t offset_ = 0;
  int line_ = 1, column_ = 1;
  Token token_, after_;
};

Result<Dim> parse_dim(Lexer& lexer);  // the longest size expression that starts here

}  // namespace weft
