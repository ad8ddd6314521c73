// libFuzzer target: any bytes as a model, and as each kind of test data. Run with -rss_limit_mb=512 -timeout=10.
#include <cstdint>

#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::onnx;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (auto model = read_model_bytes(bytes)) {
    (void)validate(*model);
  }
  for (const Type::Kind kind : {Type::Kind::Tensor, Type::Kind::Sequence, Type::Kind::Optional}) {
    Type type;
    type.kind = kind;
    (void)read_data_bytes(bytes, type);
  }
  return 0;
}
