// Elements that memory holds in less than kernels compute with: floats of at most 8 bits become f32, integers of 2 and
// 4 bits become integers of 8. Their codes are bytes in loads and stores, and bit arithmetic in between. Private to
// loop/lower.
#pragma once

#include "loop/group.h"

namespace weft::loop {

bool is_narrow(DType t);
inline bool is_packed(DType t) { return bits(t) > 0 && bits(t) < 8; }  // several elements to a byte
inline bool pointwise_only(DType t) { return is_packed(t) || is_complex(t); }  // only such kernels store them
// Floats narrower than f32: f32; integers narrower than 8 bits: of 8 bits; complex numbers: that of their parts.
DType compute_dtype(DType t);
DType storage_dtype(DType t);  // what a parameter holds: u8 for what is narrow, the parts of what is complex

// The value (compute dtype) of a code (u8), and back. `value` may be any number where t is a float.
ExprId decode_narrow(Group& g, DType t, ExprId code);
ExprId encode_narrow(Group& g, DType t, ExprId value, bool saturate);

// What an arithmetic result in the compute dtype is as a t: integers wrap.
ExprId wrap_packed(Group& g, DType t, ExprId value);
// A number of any dtype as a packed integer: floats clamp, integers wrap.
ExprId to_packed(Group& g, DType t, ExprId value);

// Bytes of packed elements, and where an element is: its byte, and its part of it (the lowest bits first). Where the
// last axis fills whole bytes the other axes stay as they are; otherwise the bytes are one axis.
Shape packed_shape(DType t, const Shape& shape);
struct PackedPlace {
  std::vector<ExprId> at;
  ExprId part;
};
PackedPlace packed_place(Group& g, DType t, const Shape& shape, const std::vector<ExprId>& at);

}  // namespace weft::loop
