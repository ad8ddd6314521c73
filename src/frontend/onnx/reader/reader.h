// Reads ONNX files with protozero: no generated code, no 2 GB limit. Weights stay in the mapped file.
//
// On any input: no crash, nesting bounded by Limits, and memory bounded by Limits::memory_base + memory_factor * file
// size (external data is mapped, not read, and not counted). What is read is well-formed (every tensor has exactly as
// many bytes as its shape asks for); `validate` checks that it makes sense as a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "frontend/onnx/model.h"

namespace weft::onnx {

struct Limits {
  int nesting = 64;                           // graphs in attributes, types in types, sequences in sequences
  std::size_t nodes = 10'000'000;             // in all graphs and functions together
  std::int64_t elements = std::int64_t{1} << 42;  // of one tensor
  int rank = 64;                              // of one tensor or declared shape
  std::size_t string_bytes = std::size_t{16} << 20;  // of one string
  std::size_t memory_base = std::size_t{64} << 20;   // bytes that reading may take: base + factor * file size
  std::size_t memory_factor = 2;
};

// External data is looked for beside the model, and only there.
Result<Model> read_model_file(const std::string& path, const Limits& limits = {});

// From memory. `owner` keeps the bytes alive for the tensors that view them (null: the caller does). An empty
// base_dir means that external data is refused.
Result<Model> read_model_bytes(std::span<const std::byte> bytes, const std::string& base_dir = {},
                               const Limits& limits = {}, std::shared_ptr<const void> owner = nullptr);

// Test data (input_N.pb, output_N.pb): a TensorProto, SequenceProto or OptionalProto. The file does not say which, so
// the caller does, from the type of the graph's input or output.
struct DataValue;
using DataValues = std::vector<DataValue>;
struct DataValue {
  std::string name;
  // A tensor; a sequence; an optional: empty (monostate), or one value (the wrapping is not kept).
  std::variant<std::monostate, weft::Tensor, DataValues> value;
};

Result<DataValue> read_data_file(const std::string& path, const Type& type, const Limits& limits = {});
Result<DataValue> read_data_bytes(std::span<const std::byte> bytes, const Type& type, const Limits& limits = {},
                                  std::shared_ptr<const void> owner = nullptr);

}  // namespace weft::onnx
