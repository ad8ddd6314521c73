// Stages as files, for who looks for where something went wrong.
#pragma once

#include <functional>
#include <string>

namespace weft::compiler {

// In the order in which a model passes through them.
inline constexpr const char* kAllStages = "graph,loop,schedule,tile,kernel,llvm,asm,source,plan";

// A receiver for Options::dump that writes files such as 03-tile-dot_2.txt into the folder, which is made; what follows
// under the same stage and name goes into the same file. A folder that cannot be written is one warning.
std::function<void(const std::string& stage, const std::string& name, const std::string& text)> dump_to_folder(
    const std::string& folder);

}  // namespace weft::compiler
