#include "base/error.h"

#include <fmt/format.h>

namespace weft {

Error::Error(ErrorKind kind, std::string code, std::string message)
    : kind_(kind), code_(std::move(code)), message_(std::move(message)) {
  render();
}

Error& Error::at(std::string where) {
  where_ = std::move(where);
  render();
  return *this;
}

Error& Error::expected(std::string what) {
  expected_ = std::move(what);
  render();
  return *this;
}

Error& Error::found(std::string what) {
  found_ = std::move(what);
  render();
  return *this;
}

Error& Error::suggest(std::string what) {
  suggestion_ = std::move(what);
  render();
  return *this;
}

void Error::render() {
  const char* kind = kind_ == ErrorKind::User          ? "error"
                     : kind_ == ErrorKind::Unsupported ? "unsupported"
                                                       : "internal error";
  text_ = fmt::format("{}[{}]", kind, code_);
  if (!where_.empty()) text_ += fmt::format(" at '{}'", where_);
  text_ += ": " + message_;
  if (!expected_.empty() && !found_.empty()) {
    text_ += fmt::format(" (expected {}, found {})", expected_, found_);
  } else if (!expected_.empty()) {
    text_ += fmt::format(" (expected {})", expected_);
  } else if (!found_.empty()) {
    text_ += fmt::format(" (found {})", found_);
  }
  if (!suggestion_.empty()) text_ += "; " + suggestion_;
}

const char* Error::what() const noexcept { return text_.c_str(); }

Error user_error(std::string code, std::string message) {
  return Error(ErrorKind::User, std::move(code), std::move(message));
}

Error unsupported(std::string code, std::string message) {
  return Error(ErrorKind::Unsupported, std::move(code), std::move(message));
}

Error internal_error(std::string message) {
  Error e(ErrorKind::Internal, "internal", std::move(message));
  e.suggest("this is a fault in Weft: please report it with the model");
  return e;
}

void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  throw internal_error(fmt::format("{} ({}:{}: {})", detail, file, line, condition));
}

}  // namespace weft
