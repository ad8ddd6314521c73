// libFuzzer target: any bytes as a model that is read, imported (all types inferred) and optimised.
#include <cstdint>

#include "frontend/onnx/import/import.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"
#include "transform/pipeline.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::onnx;
  auto model = read_model_bytes({reinterpret_cast<const std::byte*>(data), size});
  if (!model || !validate(*model)) return 0;
  if (auto imported = import_model(*model)) (void)weft::transform::optimize(imported->graph, {});
  return 0;
}
