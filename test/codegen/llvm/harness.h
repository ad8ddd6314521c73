// Builds kernels instruction by instruction, without a builder that would fold or move anything, and runs them: here, or
// on the emulated CPU that WEFT_CROSS names (cross/server.h).
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/llvm/codegen.h"
#include "codegen/llvm/cross/server.h"

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
  std::vector<unsigned char>& bytes() { return bytes_; }  // guards included
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

  static constexpr int guard = 256;

 private:
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

inline std::shared_ptr<cross::Server> emulated_cpu() {  // null: kernels run here
  static const std::shared_ptr<cross::Server> server = []() -> std::shared_ptr<cross::Server> {
    const char* wanted = std::getenv("WEFT_CROSS");
    if (wanted == nullptr) return nullptr;
    for (const cross::Emulated& e : cross::emulated()) {
      if (std::string(wanted) == e.name) return cross::Server::start(e).value();
    }
    throw std::runtime_error(std::string("no emulated CPU ") + wanted);
  }();
  return server;
}

inline TargetDesc tested_target() { return emulated_cpu() ? target_for(emulated_cpu()->machine()) : host_target(); }

struct Compiled {
  std::optional<LoadedCode> code;
  std::int64_t emulated = 0;  // the kernel's place
  std::int64_t scratch = 0;
  bool runs = true;  // false: the emulator would die of it (cross/old-qemu.md)

  std::int64_t run(std::vector<Guarded*> buffers, std::vector<std::int64_t> sizes = {}, std::int64_t begin = 0,
                   std::int64_t end = 1) const {
    if (!code) return run_emulated(buffers, sizes, begin, end);
    std::vector<void*> pointers;
    for (Guarded* b : buffers) pointers.push_back(b->data());
    std::vector<char> memory(scratch + 64);
    const auto at = (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64;
    std::int64_t status = 0;
    code->lookup("k").value()(pointers.data(), sizes.data(), begin, end, reinterpret_cast<void*>(at), &status);
    return status;
  }

 private:
  // Buffers go there with their guards, and come back.
  std::int64_t run_emulated(const std::vector<Guarded*>& buffers, const std::vector<std::int64_t>& sizes, std::int64_t begin,
                            std::int64_t end) const {
    cross::Server& server = *emulated_cpu();
    std::vector<std::int64_t> places, data;
    for (Guarded* b : buffers) {
      places.push_back(server.allocate(static_cast<std::int64_t>(b->bytes().size())).value());
      data.push_back(places.back() + Guarded::guard);
      std::memcpy(server.at(places.back()), b->bytes().data(), b->bytes().size());
    }
    places.push_back(server.allocate(scratch).value());
    const std::int64_t status = server.run(emulated, data, sizes, begin, end, places.back()).value();
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      std::memcpy(buffers[k]->bytes().data(), server.at(places[k]), buffers[k]->bytes().size());
    }
    for (std::int64_t place : places) server.free(place);
    return status;
  }
};

inline Compiled build(const ssa::Function& function, const TargetDesc& target = tested_target()) {
  const Entry entry{&function, "k"};
  Options options;
  options.verify = true;
  const std::vector<Object> objects = {compile_object({&entry, 1}, target, options).value()};
  Compiled compiled;
  compiled.scratch = scratch_bytes(function);
  if (emulated_cpu()) {
    const std::string symbol = "k";
    const auto places = emulated_cpu()->load(objects[0], {&symbol, 1});
    compiled.runs = places.ok() || places.error().code() != "emulator-fault";
    if (compiled.runs) compiled.emulated = places.value()[0];
  } else {
    compiled.code = LoadedCode::load(objects).value();
  }
  return compiled;
}

}  // namespace weft::codegen::test
