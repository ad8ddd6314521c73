// The fields of one protobuf message, in file order. Varints are protozero's; the walk is ours, because
// protozero::pbf_reader has 32-bit lengths (a graph with its weights is one field) and asserts on wire types.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace weft::onnx {

enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  WireType type = WireType::Varint;
  std::uint64_t bits = 0;   // Varint, Fixed64, Fixed32
  std::string_view bytes;   // Bytes: the content; otherwise empty
  const char* start = nullptr;
};

class FieldCursor {
 public:
  explicit FieldCursor(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}
  // False at the end, and on malformed input: then failure() says what is wrong, and position() where.
  bool next(Field& field);
  const char* failure() const { return failure_; }
  const char* position() const { return start_; }

 private:
  bool fail(const char* what);
  bool read_varint(std::uint64_t& value);
  bool read_fixed(std::size_t size, std::uint64_t& value);

  const char* at_;
  const char* end_;
  const char* start_ = nullptr;
  const char* failure_ = nullptr;
};

// Reads one varint of a packed field and moves `at` past it; false if it is cut off or too long.
bool decode_varint(const char*& at, const char* end, std::uint64_t& value);

}  // namespace weft::onnx
