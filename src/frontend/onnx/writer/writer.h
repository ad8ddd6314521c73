// Writes ONNX files with protozero: what reader/ reads back is the same model. Weights go into the file.
#pragma once

#include <string>

#include "frontend/onnx/model.h"

namespace weft::onnx {

// A ModelProto. One whose weights take 2 GB or more is refused: other readers do not take such a file.
Result<std::string> write_model(const Model& model);

// A TensorProto, as test data (input_N.pb, output_N.pb) holds it.
std::string write_tensor(const std::string& name, const weft::Tensor& tensor);

}  // namespace weft::onnx
