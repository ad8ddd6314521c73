// Errors: one type, three kinds. A function that can fail returns Result<T>; value() on a failed one throws
// weft::Error, so a caller picks either style. Nothing else throws, except WEFT_CHECK (a broken invariant of ours),
// which the API's edge turns back into a Result.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace weft {

enum class ErrorKind : unsigned char {
  User,         // the caller's file, input or option is wrong: says what, where, and what to do
  Unsupported,  // valid, but Weft cannot do it yet: names what is missing
  Internal,     // our fault: asks for a report
};

// Messages are lower-case, concrete and without a final period.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string code, std::string message);

  // Builder-style additions; each returns *this so that they chain.
  Error& at(std::string where);               // node, value, option or file by name
  Error& expected(std::string what);
  Error& found(std::string what);
  Error& suggest(std::string what);

  ErrorKind kind() const { return kind_; }
  const std::string& code() const { return code_; }        // stable, kebab-case: "shape-mismatch"
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& expected() const { return expected_; }
  const std::string& found() const { return found_; }
  const std::string& suggestion() const { return suggestion_; }

  // "error[code] at 'where': message (expected X, found Y); suggestion"
  const char* what() const noexcept override;

 private:
  void render();
  ErrorKind kind_;
  std::string code_, message_, where_, expected_, found_, suggestion_, text_;
};

Error user_error(std::string code, std::string message);
Error unsupported(std::string code, std::string message);
Error internal_error(std::string message);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return std::get<1>(state_); }

  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  void check() const {
    if (!ok()) throw error();
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }
  void value() const {
    if (error_) throw *error_;
  }

 private:
  std::optional<Error> error_;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& detail);

}  // namespace weft

// auto x = WEFT_TRY(f());  returns the error to the caller, or yields the value. Works for Result<void> too.
#define WEFT_TRY(...)                                            \
  ({                                                             \
    auto&& weft_result_ = (__VA_ARGS__);                         \
    if (!weft_result_.ok()) return ::weft::Error(weft_result_.error()); \
    std::move(weft_result_).value();                             \
  })

// An invariant of Weft's own. Never use it on what a user gave.
#define WEFT_CHECK(condition, detail)                                              \
  do {                                                                             \
    if (!(condition)) ::weft::check_failed(#condition, __FILE__, __LINE__, detail); \
  } while (0)
