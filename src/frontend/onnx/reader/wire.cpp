#include "frontend/onnx/reader/wire.h"

#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

namespace weft::onnx {

bool decode_varint(const char*& at, const char* end, std::uint64_t& value) {
  try {
    value = protozero::decode_varint(&at, end);
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

bool FieldCursor::fail(const char* what) {
  failure_ = what;
  at_ = end_;
  return false;
}

bool FieldCursor::read_varint(std::uint64_t& value) {
  return decode_varint(at_, end_, value) || fail("a number is cut off or too long");
}

bool FieldCursor::read_fixed(std::size_t size, std::uint64_t& value) {
  if (static_cast<std::size_t>(end_ - at_) < size) return fail("a number is cut off");
  value = 0;
  std::memcpy(&value, at_, size);
  at_ += size;
  return true;
}

bool FieldCursor::next(Field& field) {
  if (at_ == end_ || failure_ != nullptr) return false;
  start_ = at_;
  field = Field{};
  field.start = start_;
  std::uint64_t tag = 0;
  if (!read_varint(tag)) return false;
  if ((tag >> 3) == 0 || tag > UINT32_MAX) return fail("a field has an impossible number");
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  switch (field.type) {
    case WireType::Varint: return read_varint(field.bits);
    case WireType::Fixed64: return read_fixed(8, field.bits);
    case WireType::Fixed32: return read_fixed(4, field.bits);
    case WireType::Bytes: {
      std::uint64_t size = 0;
      if (!read_varint(size)) return false;
      if (size > static_cast<std::uint64_t>(end_ - at_)) return fail("a field is longer than what holds it");
      field.bytes = {at_, static_cast<std::size_t>(size)};
      at_ += size;
      return true;
    }
  }
  return fail("a field has an unknown wire type");
}

}  // namespace weft::onnx
