#include "base/npy.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/support.h"

namespace weft {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

std::string code_of(const std::string& bytes) {
  const auto r = parse_npy(span_of(bytes));
  return r.ok() ? "ok" : r.error().code();
}

TEST(Npy, EveryDtypeRoundTrips) {
  for (int i = 0; i < dtype_count(); ++i) {
    const auto t = static_cast<DType>(i);
    Tensor x = Tensor::zeros(t, {2, 3}).value();
    if (bits(t) < 8) {
      EXPECT_FALSE(format_npy(x).ok()) << name(t);
      continue;
    }
    for (std::size_t b = 0; b < x.byte_size(); ++b) x.as_mutable<unsigned char>()[b] = static_cast<unsigned char>(b * 37);
    const std::string bytes = format_npy(x).value();
    EXPECT_EQ((bytes.size() - x.byte_size()) % 64, 0u);
    const auto raw = *info(t).npy == 0 ? std::optional<DType>(t) : std::nullopt;
    const Tensor y = parse_npy(span_of(bytes), nullptr, raw).value();
    EXPECT_EQ(y.content_hash(), x.content_hash()) << name(t);
  }
}

TEST(Npy, ShapesRoundTripThroughAFile) {
  const std::string path = testing::TempDir() + "/weft_test.npy";
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {5}, {0}, {0, 3}, {2, 1, 4}}) {
    Tensor x = Tensor::zeros(DType::F32, shape).value();
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_f64(i, static_cast<double>(i) + 0.5);
    ASSERT_TRUE(write_npy(path, x).ok());
    const Tensor y = read_npy(path).value();
    EXPECT_EQ(y.shape(), shape);
    EXPECT_EQ(y.content_hash(), x.content_hash());
  }
  std::filesystem::remove(path);
}

TEST(Npy, ForeignOrders) {
  const std::string f = file_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", "\x01\x04\x02\x05\x03\x06");
  const Tensor t = parse_npy(span_of(f)).value();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(t.i64(i), i + 1);
  const std::string big = file_of("{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", std::string("\x01\x02\xff\xfe", 4));
  EXPECT_EQ(parse_npy(span_of(big)).value().i64(0), 0x0102);
  EXPECT_EQ(parse_npy(span_of(big)).value().i64(1), -2);
  const std::string raw = file_of("{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", std::string("\x80\x3f", 2));
  EXPECT_EQ(parse_npy(span_of(raw), nullptr, DType::BF16).value().f64(0), 1.0);
  EXPECT_EQ(parse_npy(span_of(raw)).value().shape(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(parse_npy(span_of(raw), nullptr, DType::F32).ok());
}

TEST(Npy, MalformedInputIsAnError) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  EXPECT_EQ(code_of(file_of(good, "abcd")), "ok");
  EXPECT_EQ(code_of(""), "truncated");
  EXPECT_EQ(code_of("PK\x03\x04 and so on"), "npy");
  EXPECT_EQ(code_of(file_of(good, "abc")), "truncated");
  EXPECT_EQ(code_of(file_of(good, "abcde")), "npy");
  EXPECT_EQ(code_of(file_of("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "abcdefgh")), "npy-object");
  EXPECT_EQ(code_of(file_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd")), "npy-record");
  EXPECT_EQ(code_of(file_of("{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}", "abcd")), "npy-dtype");
  for (const char* header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "{'descr': '<f4', 'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "{'other': 3}", "{'descr': '<f4"}) {
    EXPECT_EQ(code_of(file_of(header, "abcd")), "npy") << header;
  }
  EXPECT_EQ(code_of(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}", "abcd")), "truncated");
  const std::string whole = file_of(good, "abcd");
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NE(code_of(whole.substr(0, n)), "ok");
}

}  // namespace
}  // namespace weft
