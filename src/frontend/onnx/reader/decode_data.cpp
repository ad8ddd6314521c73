// SequenceProto and OptionalProto: the values of test data, which models never hold.
#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {
namespace {

// The fields that both messages have; OptionalProto's optional_value and SequenceProto's optional_values are 7.
enum : std::uint32_t { kName = 1, kElemType = 2, kTensor = 3, kSparseTensor = 4, kSequence = 5, kMap = 6, kOptional = 7 };

Error no_data(const char* what) {
  return unsupported("test-data-unsupported", std::string("test data holds ") + what);
}

}  // namespace

Result<DataValue> Decoder::data_tensor(std::string_view message) {
  NamedTensor read = WEFT_TRY(tensor(message));
  return DataValue{std::move(read.name), std::move(read.tensor)};
}

Result<DataValue> Decoder::data_sequence(std::string_view message, int depth) {
  WEFT_TRY(check_depth(depth, "sequences"));
  DataValue out;
  DataValues items;
  WEFT_TRY(each(message, "SequenceProto", [&](const Field& f) -> Result<void> {
    switch (f.number) {
      case kName: return text_into(f, "name", out.name);
      case kTensor: return push(items, WEFT_TRY(data_tensor(WEFT_TRY(view(f, "tensor_values")))));
      case kSequence: return push(items, WEFT_TRY(data_sequence(WEFT_TRY(view(f, "sequence_values")), depth + 1)));
      case kOptional: return push(items, WEFT_TRY(data_optional(WEFT_TRY(view(f, "optional_values")), depth + 1)));
      case kSparseTensor: return no_data("sparse tensors");
      case kMap: return no_data("maps");
      default: return {};
    }
  }));
  out.value = std::move(items);
  return out;
}

Result<DataValue> Decoder::data_optional(std::string_view message, int depth) {
  WEFT_TRY(check_depth(depth, "optionals"));
  DataValue out;
  WEFT_TRY(each(message, "OptionalProto", [&](const Field& f) -> Result<void> {
    switch (f.number) {
      case kName: return text_into(f, "name", out.name);
      case kTensor: out.value = WEFT_TRY(data_tensor(WEFT_TRY(view(f, "tensor_value")))).value; return {};
      case kSequence: out.value = WEFT_TRY(data_sequence(WEFT_TRY(view(f, "sequence_value")), depth + 1)).value; return {};
      case kOptional: out.value = WEFT_TRY(data_optional(WEFT_TRY(view(f, "optional_value")), depth + 1)).value; return {};
      case kSparseTensor: return no_data("a sparse tensor");
      case kMap: return no_data("a map");
      default: return {};
    }
  }));
  return out;
}

}  // namespace weft::onnx
