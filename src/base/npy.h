// NumPy's .npy files. Element types without a descr of their own travel as raw bytes: bf16 as V2, the 8-bit floats as
// V1; a reader that knows better says so with `raw_as`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/tensor.h"

namespace weft {

// `owner` keeps `bytes` alive; C-ordered, suitably aligned little-endian data is not copied when there is one. A void
// descr (V1, V2 ...) becomes `raw_as` of that width, else u8 with a trailing dimension of the width.
Result<Tensor> parse_npy(ByteSpan bytes, std::shared_ptr<const void> owner = nullptr,
                         std::optional<DType> raw_as = std::nullopt, const std::string& name = "npy");
Result<Tensor> read_npy(const std::string& path, std::optional<DType> raw_as = std::nullopt);

// Packed 2- and 4-bit types and strings have no form in .npy: unsupported.
Result<std::string> format_npy(const Tensor& tensor);
Result<void> write_npy(const std::string& path, const Tensor& tensor);

}  // namespace weft
