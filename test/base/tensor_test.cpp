#include "base/tensor.h"

#include <gtest/gtest.h>

#include <cstring>

namespace weft {
namespace {

TEST(Tensor, EmptyIsAlignedAndSized) {
  Tensor t = Tensor::empty(DType::F32, {2, 3}).value();
  EXPECT_EQ(t.size(), 6);
  EXPECT_EQ(t.byte_size(), 24u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data()) % 64, 0u);
  Tensor none = Tensor::zeros(DType::F32, {0, 5, INT64_MAX / 8}).value();
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(none.defined());
}

TEST(Tensor, ImpossibleShapesAreErrors) {
  EXPECT_FALSE(Tensor::empty(DType::F32, {-1}).ok());
  EXPECT_FALSE(Tensor::empty(DType::F32, {INT64_MAX, 2}).ok());
  EXPECT_FALSE(Tensor::empty(DType::F64, {INT64_MAX / 2}).ok());
  EXPECT_FALSE(Tensor::empty(DType::F64, {std::int64_t{1} << 58}).ok());
  EXPECT_FALSE(Tensor::empty(DType::Str, {std::int64_t{1} << 60}).ok());
  EXPECT_EQ(Tensor::empty(DType::F32, {-1}).error().code(), "tensor-too-large");
}

TEST(Tensor, Scalars) {
  EXPECT_EQ(Tensor::scalar(DType::F16, 1.5).f64(0), 1.5);
  EXPECT_EQ(Tensor::scalar(DType::I8, -3).i64(0), -3);
  EXPECT_EQ(Tensor::scalar_i64(DType::F32, 7).f64(0), 7);
  EXPECT_EQ(Tensor::scalar_i64(DType::I4, -8).i64(0), -8);
  EXPECT_EQ(Tensor::of({4, 5}).i64(1), 5);
  EXPECT_EQ(Tensor::of({}).size(), 0);
  EXPECT_EQ(Tensor::scalar(DType::F32, 0).rank(), 0);
}

TEST(Tensor, ViewsAndReshapesShareBytesAndAreReadOnly) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  Tensor v = Tensor::view(DType::F32, {2, 3}, values, nullptr);
  EXPECT_EQ(v.f64(4), 5);
  EXPECT_THROW(v.mutable_data(), Error);
  Tensor r = v.reshaped({3, 2});
  EXPECT_EQ(r.data(), v.data());
  EXPECT_THROW(v.reshaped({4}), Error);
}

TEST(Tensor, Strings) {
  Tensor t = Tensor::strings({2}, {"a", "bc"});
  EXPECT_EQ(t.string_values()[1], "bc");
  EXPECT_EQ(t.byte_size(), 0u);
  Tensor e = Tensor::empty(DType::Str, {3}).value();
  e.mutable_strings()[2] = "x";
  EXPECT_EQ(e.string_values()[2], "x");
  EXPECT_THROW(t.mutable_data(), Error);
}

TEST(Tensor, HashSeesDtypeShapeAndContent) {
  const Tensor a = Tensor::of({1, 2});
  EXPECT_EQ(a.content_hash(), Tensor::of({1, 2}).content_hash());
  EXPECT_NE(a.content_hash(), Tensor::of({1, 3}).content_hash());
  EXPECT_NE(a.content_hash(), a.reshaped({2, 1}).content_hash());
  EXPECT_NE(Tensor::strings({2}, {"a", "bc"}).content_hash(), Tensor::strings({2}, {"ab", "c"}).content_hash());
}

TEST(Tensor, Helpers) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(shape_str({1, 3}), "[1, 3]");
  EXPECT_EQ(shape_str({}), "[]");
}

TEST(Tensor, BytesThatAreNotAlignedAreCopiedOnceWhenAskedFor) {
  alignas(8) char bytes[4 * 3 + 1] = {};
  const float values[] = {1, 2, 3};
  std::memcpy(bytes + 1, values, sizeof values);
  const Tensor t = Tensor::view_anywhere(DType::F32, {3}, bytes + 1, nullptr);
  const Tensor other = t.reshaped({3, 1});
  EXPECT_NE(t.deferred(), nullptr);
  EXPECT_EQ(t.bytes(), bytes + 1);
  EXPECT_EQ(t.content_hash(), Tensor::view(DType::F32, {3}, values, nullptr).content_hash());
  EXPECT_EQ(t.f64(1), 2);
  EXPECT_EQ(t.as<float>()[2], 3);
  EXPECT_EQ(other.data(), t.data());
  EXPECT_NE(t.data(), t.bytes());
  EXPECT_EQ(Tensor::view_anywhere(DType::F32, {2}, bytes, nullptr).deferred(), nullptr);
}

}  // namespace
}  // namespace weft
