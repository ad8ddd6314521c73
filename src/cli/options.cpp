#include "cli/options.h"

#include <CLI/CLI.hpp>

namespace weft::cli {
namespace {

template <typename T>
void add_number(CLI::App& app, const char* name, T& value, const char* doc, Range<T> range) {
  CLI::Option* option = app.add_option(name, value, doc);
  if (range.high < std::numeric_limits<T>::max()) option->check(CLI::Range(range.low, range.high));
  else option->check(CLI::Validator([](std::string& text) { return text.empty() || text[0] == '-' ? "it must not be negative" : ""; }, "NONNEGATIVE"));
  if (value > T()) option->capture_default_str();
}

}  // namespace

void add_flag(CLI::App& app, const char* name, bool& value, const char* doc) { app.add_flag(name, value, doc); }

void add_option(CLI::App& app, const char* name, std::string& value, const char* doc) {
  CLI::Option* option = app.add_option(name, value, doc);
  if (!value.empty()) option->capture_default_str();
}

void add_option(CLI::App& app, const char* name, std::vector<std::string>& values, const char* doc) {
  app.add_option(name, values, doc)->allow_extra_args(false);
}

void add_option(CLI::App& app, const char* name, double& value, const char* doc, Range<double> range) {
  add_number(app, name, value, doc, range);
}

void add_option(CLI::App& app, const char* name, int& value, const char* doc, Range<int> range) {
  add_number(app, name, value, doc, range);
}

void add_argument(CLI::App& app, const char* name, std::string& value, const char* doc, bool required) {
  app.add_option(name, value, doc)->required(required);
}

void add_arguments(CLI::App& app, const char* name, std::vector<std::string>& values, const char* doc, bool required) {
  app.add_option(name, values, doc)->required(required);
}

}  // namespace weft::cli
