// How a command declares its options. CLI11 parses them; its headers, which take seconds to compile, are read only in
// options.cpp and main.cpp.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

template <typename T>
struct Range {
  T low, high;  // both allowed
};

// `name` is "--x", or "x" for an argument without a name. A value that is a text or positive is printed as the default.
void add_flag(CLI::App& app, const char* name, bool& value, const char* doc);
void add_option(CLI::App& app, const char* name, std::string& value, const char* doc);
void add_option(CLI::App& app, const char* name, std::vector<std::string>& values, const char* doc);  // given again for more
void add_option(CLI::App& app, const char* name, double& value, const char* doc,
                Range<double> range = {0, std::numeric_limits<double>::max()});
void add_option(CLI::App& app, const char* name, int& value, const char* doc, Range<int> range);

void add_argument(CLI::App& app, const char* name, std::string& value, const char* doc, bool required = true);
void add_arguments(CLI::App& app, const char* name, std::vector<std::string>& values, const char* doc,
                   bool required = true);  // one or more

}  // namespace weft::cli
