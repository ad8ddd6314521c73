// Names come out of files and may hold any bytes: a terminal must not take them for commands.
#pragma once

#include <string>

namespace weft::cli {

std::string printable(std::string text);  // control characters other than line ends and tabs as ?

}  // namespace weft::cli
