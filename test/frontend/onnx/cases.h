#pragma once

#include <filesystem>

namespace weft::onnx {

inline const std::filesystem::path kCases = std::filesystem::path(WEFT_SOURCE_DIR) / "test" / "cases";

}  // namespace weft::onnx
