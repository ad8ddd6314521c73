// Documentation made from the op table.
#pragma once

#include <string>

namespace weft::graph {

std::string op_table_markdown();  // docs/ops.md

}  // namespace weft::graph
