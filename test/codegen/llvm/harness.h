// Builds kernels instruction by instruction, without a builder that would fold or move anything, and runs them.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/llvm/codegen.h"

namespace weft::codegen::test {

using kernel::Op;
using ssa::Type;
using ssa::ValueId;

// A buffer of raw bytes between two guard zones.
class Guarded {
 public:
  Guarded(DType dtype, std::int64_t elements)
      : dtype_(dtype), elements_(elements), bytes_(guard * 2 + elements * bits(dtype) / 8, pattern) {}
  void* data() { return bytes_.data() + guard; }
  const void* data() const { return bytes_.data() + guard; }
  std::int64_t elements() const { return elements_; }
  DType dtype() const { return dtype_; }
  Scalar at(std::int64_t i) const { return load_scalar(dtype_, data(), i); }
  void set(std::int64_t i, Scalar v) { store_scalar(dtype_, data(), i, v); }
  bool intact() const {
    for (int i = 0; i < guard; ++i) {
      if (bytes_[i] != pattern || bytes_[bytes_.size() - 1 - i] != pattern) return false;
    }
    return true;
  }
  bool untouched(std::int64_t i) const {
    const int size = bits(dtype_) / 8;
    for (int k = 0; k < size; ++k) {
      if (bytes_[guard + i * size + k] != pattern) return false;
    }
    return true;
  }

 private:
  static constexpr int guard = 256;
  static constexpr unsigned char pattern = 0xA5;
  DType dtype_;
  std::int64_t elements_;
  std::vector<unsigned char> bytes_;
};

class Maker : public ssa::FunctionBuilder {
 public:
  explicit Maker(std::string name = "k") : FunctionBuilder(kernel::op_table(), std::move(name)) {}
  int in(DType t) { return add_buffer({t, ssa::Space::Memory, true, false, 0}); }
  int out(DType t) { return add_buffer({t, ssa::Space::Memory, true, true, 0}); }
  int on_chip(DType t, std::int64_t n) { return add_buffer({t, ssa::Space::OnChip, true, true, n}); }
  ValueId i64(std::int64_t v) { return append1(id(Op::Const), {}, Type::scalar(DType::I64), v); }
  ValueId real(DType t, double v) { return append1(id(Op::Const), {}, Type::scalar(t), 0, v); }
  ValueId size(int n) { return append1(id(Op::Size), {}, Type::scalar(DType::I64), n); }
  ValueId pid() { return append1(id(Op::ProgramId), {}, Type::scalar(DType::I64)); }
  ValueId splat(ValueId x, int lanes) {
    return lanes == 0 ? x : append1(id(Op::Splat), {x}, Type::vector(type(x).dtype, lanes));
  }
  ValueId iota(DType t, int lanes) { return append1(id(Op::Iota), {}, Type::vector(t, lanes)); }
  ValueId op(ScalarOp o, std::vector<ValueId> x, DType to) {
    const Type result = type(x.back()).with(to);
    return append1(id(kernel::from_scalar(o)), std::move(x), result);
  }
  ValueId add(ValueId a, ValueId b) { return op(ScalarOp::Add, {a, b}, type(a).dtype); }
  ValueId mul(ValueId a, ValueId b) { return op(ScalarOp::Mul, {a, b}, type(a).dtype); }
  ValueId lt(ValueId a, ValueId b) { return op(ScalarOp::Lt, {a, b}, DType::Bool); }
  ValueId load(int buffer, ValueId index, int lanes, ValueId mask = -1) {
    const DType t = function().buffers[buffer].dtype;
    auto x = mask < 0 ? std::vector<ValueId>{index} : std::vector<ValueId>{index, mask};
    return append1(id(Op::Load), x, lanes == 0 ? Type::scalar(t) : Type::vector(t, lanes), buffer);
  }
  void store(int buffer, ValueId v, ValueId index, ValueId mask = -1) {
    auto x = mask < 0 ? std::vector<ValueId>{v, index} : std::vector<ValueId>{v, index, mask};
    append(id(Op::Store), x, {}, buffer);
  }
  ValueId gather(int buffer, ValueId index, ValueId mask = -1) {
    auto x = mask < 0 ? std::vector<ValueId>{index} : std::vector<ValueId>{index, mask};
    return append1(id(Op::Gather), x, type(index).with(function().buffers[buffer].dtype), buffer);
  }
  void scatter(int buffer, ValueId v, ValueId index, ValueId mask = -1) {
    auto x = mask < 0 ? std::vector<ValueId>{v, index} : std::vector<ValueId>{v, index, mask};
    append(id(Op::Scatter), x, {}, buffer);
  }
  ValueId reduce(Op o, ValueId x) { return append1(id(o), {x}, Type::scalar(type(x).dtype)); }
  Loop loop(ValueId lo, ValueId hi, ValueId step, std::vector<ValueId> inits) {
    return begin_for(id(Op::For), lo, hi, step, std::move(inits));
  }
  static std::uint16_t id(Op o) { return static_cast<std::uint16_t>(o); }
};

struct Compiled {
  LoadedCode code;
  std::int64_t scratch = 0;

  std::int64_t run(std::vector<Guarded*> buffers, std::vector<std::int64_t> sizes = {}, std::int64_t begin = 0,
                   std::int64_t end = 1) const {
    std::vector<void*> pointers;
    for (Guarded* b : buffers) pointers.push_back(b->data());
    std::vector<char> memory(scratch + 64);
    const auto at = (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64;
    std::int64_t status = 0;
    code.lookup("k").value()(pointers.data(), sizes.data(), begin, end, reinterpret_cast<void*>(at), &status);
    return status;
  }
};

inline Compiled build(const ssa::Function& function, const TargetDesc& target = host_target()) {
  const Entry entry{&function, "k"};
  Options options;
  options.verify = true;
  const std::vector<Object> objects = {compile_object({&entry, 1}, target, options).value()};
  return {LoadedCode::load(objects).value(), scratch_bytes(function)};
}

}  // namespace weft::codegen::test
