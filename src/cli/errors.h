// How the command line reports errors: one line on stderr, and an exit code by kind.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace weft::cli {

// A wrong command line: exit code 2.
Error usage_error(std::string message);

int exit_code(const Error& error);
void report(const Error& error);

// A usage error that suggests the nearest name beside it when there is no such file.
Result<void> require_file(const std::string& path);
Result<void> require_directory(const std::string& path);

// A usage error naming the nearest of `names` unless `name` is one of them; `what` is "target", "pass" ...
Result<void> require_one_of(const std::string& what, const std::string& name, const std::vector<std::string>& names);

}  // namespace weft::cli
