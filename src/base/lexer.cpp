#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <limits>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kLongestFloat = 64;

bool is_word(char c) { return is_letter(c) || is_digit(c); }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Length of the word at `at`: letters, digits, _, and dots that a letter, digit or _ follows.
std::size_t word_length(std::string_view s, std::size_t at) {
  std::size_t i = at;
  while (i < s.size() && (is_word(s[i]) || (s[i] == '.' && i > at && i + 1 < s.size() && is_word(s[i + 1])))) ++i;
  return i - at;
}

std::string describe(const Token& t) {
  switch (t.kind) {
    case Token::Kind::End: return "the end";
    case Token::Kind::Value: return "'%" + t.text + "'";
    case Token::Kind::Global: return "'@" + t.text + "'";
    case Token::Kind::String: return quote(t.text);
    default: return "'" + t.text + "'";
  }
}

std::optional<std::uint64_t> integer_of(std::string_view text) {
  const bool hex = text.size() > 2 && (text[1] == 'x' || text[1] == 'X');
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Lexer::Lexer(std::string_view source, std::string source_name)
    : source_(source), source_name_(std::move(source_name)) {
  token_ = scan();
  after_ = scan();
}

void Lexer::advance(std::size_t count) {
  for (; count > 0; --count, ++offset_) {
    if (source_[offset_] == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
  }
}

void Lexer::skip_blanks() {
  while (offset_ < source_.size()) {
    const char c = source_[offset_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      advance(1);
    } else if (source_.substr(offset_, 2) == "//") {
      const std::size_t end = source_.find('\n', offset_);
      advance((end == std::string_view::npos ? source_.size() : end) - offset_);
    } else {
      return;
    }
  }
}

Token Lexer::scan() {
  skip_blanks();
  Token t;
  t.line = line_;
  t.column = column_;
  t.begin = offset_;
  if (offset_ == source_.size()) {
    t.end = offset_;
    return t;
  }
  const char c = source_[offset_];
  if (is_letter(c)) {
    t.kind = Token::Kind::Identifier;
    t.text = std::string(source_.substr(offset_, word_length(source_, offset_)));
    advance(t.text.size());
  } else if (is_digit(c)) {
    t = scan_number(std::move(t));
  } else if (c == '"') {
    t = scan_string(std::move(t));
  } else if (c == '%' || c == '@') {
    t = scan_name(std::move(t));
  } else {
    static constexpr std::array<std::string_view, 8> kPairs = {"->", "::", "==", "!=", "<=", ">=", "..", "+:"};
    t.kind = Token::Kind::Punct;
    t.text = std::string(1, c);
    for (const std::string_view pair : kPairs) {
      if (source_.substr(offset_, 2) == pair) t.text = std::string(pair);
    }
    advance(t.text.size());
  }
  t.end = offset_;
  return t;
}

// 12, 0x1f, 1.5, 1., 2e-3; "1..5" is 1, .., 5.
Token Lexer::scan_number(Token t) {
  const auto at = [&](std::size_t i) { return i < source_.size() ? source_[i] : '\0'; };
  std::size_t i = offset_;
  t.kind = Token::Kind::Integer;
  if (at(i) == '0' && (at(i + 1) == 'x' || at(i + 1) == 'X') && hex_digit(at(i + 2)) >= 0) {
    i += 2;
    while (hex_digit(at(i)) >= 0) ++i;
  } else {
    while (is_digit(at(i))) ++i;
    if (at(i) == '.' && at(i + 1) != '.' && !is_letter(at(i + 1))) {
      t.kind = Token::Kind::Float;
      ++i;
      while (is_digit(at(i))) ++i;
    }
    const std::size_t digits = i + (at(i + 1) == '+' || at(i + 1) == '-' ? 2 : 1);
    if ((at(i) == 'e' || at(i) == 'E') && is_digit(at(digits))) {
      t.kind = Token::Kind::Float;
      i = digits;
      while (is_digit(at(i))) ++i;
    }
  }
  t.text = std::string(source_.substr(offset_, i - offset_));
  if (is_letter(at(i))) {
    t.kind = Token::Kind::Bad;
    t.text = fmt::format("a letter follows the number {}", t.text);
  } else if (t.kind == Token::Kind::Float && t.text.size() > kLongestFloat) {
    t.kind = Token::Kind::Bad;
    t.text = "a number of too many digits";
  }
  advance(i - offset_);
  return t;
}

Token Lexer::scan_string(Token t) {
  t.kind = Token::Kind::String;
  const auto bad = [&](const char* why) {
    t.kind = Token::Kind::Bad;
    t.text = why;
    advance(source_.size() - offset_);
    return t;
  };
  std::size_t i = offset_ + 1;
  for (; i < source_.size() && source_[i] != '"'; ++i) {
    if (source_[i] == '\n') return bad("a string without its closing quote");
    if (source_[i] != '\\') {
      t.text += source_[i];
      continue;
    }
    const char c = ++i < source_.size() ? source_[i] : '\0';
    if (c == '"' || c == '\\') {
      t.text += c;
    } else if (c == 'n' || c == 't' || c == 'r') {
      t.text += c == 'n' ? '\n' : c == 't' ? '\t' : '\r';
    } else if (c == 'x' && i + 2 < source_.size() && hex_digit(source_[i + 1]) >= 0 && hex_digit(source_[i + 2]) >= 0) {
      t.text += static_cast<char>(hex_digit(source_[i + 1]) * 16 + hex_digit(source_[i + 2]));
      i += 2;
    } else {
      return bad("an escape that is none of \\\" \\\\ \\n \\t \\r \\xHH");
    }
  }
  if (i >= source_.size()) return bad("a string without its closing quote");
  advance(i + 1 - offset_);
  return t;
}

Token Lexer::scan_name(Token t) {
  const Token::Kind kind = source_[offset_] == '%' ? Token::Kind::Value : Token::Kind::Global;
  const char sign = source_[offset_];
  if (offset_ + 1 < source_.size() && source_[offset_ + 1] == '"') {
    advance(1);
    t = scan_string(std::move(t));
    if (t.kind == Token::Kind::String) t.kind = kind;
    return t;
  }
  const std::size_t length = word_length(source_, offset_ + 1);
  t.kind = length == 0 ? Token::Kind::Punct : kind;
  t.text = length == 0 ? std::string(1, sign) : std::string(source_.substr(offset_ + 1, length));
  advance(length + 1);
  return t;
}

Token Lexer::next() {
  Token t = std::move(token_);
  token_ = std::move(after_);
  after_ = scan();
  return t;
}

bool Lexer::accept(std::string_view punct_or_word) {
  if (!token_.is(punct_or_word)) return false;
  next();
  return true;
}

Error Lexer::error_at(const Token& token, const std::string& message) const {
  Error e = user_error("syntax", token.kind == Token::Kind::Bad ? token.text : message);
  return e.at(fmt::format("{}:{}:{}", source_name_, token.line, token.column));
}

Result<void> Lexer::expect(std::string_view punct_or_word) {
  if (accept(punct_or_word)) return {};
  return error(fmt::format("expected '{}', found {}", punct_or_word, describe(token_)));
}

Result<std::string> Lexer::take(Token::Kind kind, std::string_view what) {
  if (token_.kind != kind) return error(fmt::format("expected {}, found {}", what, describe(token_)));
  return next().text;
}

Result<std::string> Lexer::identifier(std::string_view what) { return take(Token::Kind::Identifier, what); }
Result<std::string> Lexer::value_name(std::string_view what) { return take(Token::Kind::Value, what); }
Result<std::string> Lexer::global_name(std::string_view what) { return take(Token::Kind::Global, what); }
Result<std::string> Lexer::string(std::string_view what) { return take(Token::Kind::String, what); }

Result<std::uint64_t> Lexer::unsigned_integer(std::string_view what) {
  const Token at = token_;
  const auto value = integer_of(WEFT_TRY(take(Token::Kind::Integer, what)));
  if (!value) return error_at(at, fmt::format("{} does not fit in 64 bits", at.text));
  return *value;
}

Result<std::int64_t> Lexer::integer(std::string_view what) {
  const Token at = token_;
  const bool negative = accept("-");
  const std::uint64_t magnitude = WEFT_TRY(unsigned_integer(what));
  const std::uint64_t limit = (std::uint64_t{1} << 63) - (negative ? 0 : 1);
  if (magnitude > limit) return error_at(at, fmt::format("{} does not fit in 64 signed bits", magnitude));
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

Result<double> Lexer::number(std::string_view what) {
  const bool negative = accept("-");
  double value = 0;
  if (accept("inf")) {
    value = std::numeric_limits<double>::infinity();
  } else if (accept("nan")) {
    value = std::bit_cast<double>(0x7ff8000000000000ull);
    if (accept("(")) {
      value = std::bit_cast<double>(WEFT_TRY(unsigned_integer("the bits of a NaN")));
      WEFT_TRY(expect(")"));
    }
  } else if (token_.kind == Token::Kind::Integer) {
    value = static_cast<double>(WEFT_TRY(unsigned_integer(what)));
  } else {
    const Token at = token_;
    const std::string text = WEFT_TRY(take(Token::Kind::Float, what));
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size()) return error_at(at, fmt::format("{} is no number", text));
    if (failure != std::errc()) return error_at(at, fmt::format("{} is out of range", text));
  }
  return negative ? -value : value;
}

Result<void> Lexer::expect_end() {
  if (at_end()) return {};
  return error(fmt::format("unexpected {}", describe(token_)));
}

}  // namespace weft
