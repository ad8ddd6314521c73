// Tensors by value, and one op evaluated through a graph of its own.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/wide.h"
#include "graph/graph.h"

namespace weft::graph::testing {

using Tensors = std::vector<Tensor>;
using Sizes = std::vector<std::int64_t>;
using Regions = std::vector<std::shared_ptr<const Graph>>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

inline Tensor of(DType t, Sizes shape, const std::vector<double>& values) {
  Tensor x = result_tensor(t, std::move(shape)).value();
  EXPECT_EQ(x.size(), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (is_float(t)) {
      x.set_f64(at, values[i]);
    } else {
      x.set_i64(at, static_cast<std::int64_t>(values[i]));
    }
  }
  return x;
}

inline Tensor ints(DType t, Sizes shape, const std::vector<std::int64_t>& values) {
  Tensor x = result_tensor(t, std::move(shape)).value();
  for (std::size_t i = 0; i < values.size(); ++i) x.set_i64(static_cast<std::int64_t>(i), values[i]);
  return x;
}

inline Tensor vec(DType t, const std::vector<double>& values) {
  return of(t, {static_cast<std::int64_t>(values.size())}, values);
}
inline Tensor f32(const std::vector<double>& values) { return vec(DType::F32, values); }
inline Tensor i64(const std::vector<double>& values) { return vec(DType::I64, values); }
inline Tensor i32(const std::vector<double>& values) { return vec(DType::I32, values); }
inline Tensor b8(const std::vector<double>& values) { return vec(DType::Bool, values); }
inline Tensor strs(std::vector<std::string> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return Tensor::strings({n}, std::move(values));
}

inline AttrValue num(std::int64_t v) { return AttrValue(std::in_place_type<std::int64_t>, v); }
inline AttrValue flag(bool v) { return AttrValue(std::in_place_type<bool>, v); }
inline AttrValue text(const char* v) { return AttrValue(std::in_place_type<std::string>, v); }
inline AttrValue list(Sizes v) { return AttrValue(std::in_place_type<Sizes>, std::move(v)); }
inline AttrValue dims(Shape v) { return AttrValue(std::in_place_type<Shape>, std::move(v)); }
inline AttrValue type(DType v) { return AttrValue(std::in_place_type<DType>, v); }

inline Attrs attrs(std::vector<std::pair<Attr, AttrValue>> items) {
  Attrs a;
  for (auto& [key, value] : items) a.set(key, std::move(value));
  return a;
}

inline Type type_of(const Tensor& t) { return {t.dtype(), Shape(t.shape().begin(), t.shape().end())}; }

// The op on known operands; node "case" is its origin.
inline Result<Tensors> run(Op op, const Tensors& operands, Attrs a = {}, Regions regions = {}) {
  Graph g;
  std::vector<ValueId> in;
  for (const Tensor& t : operands) in.push_back(g.add_input(type_of(t)));
  const auto origin = std::make_shared<Origin>(Origin{"case", "Case"});
  const NodeId node = WEFT_TRY(g.add_node(op, in, std::move(a), std::move(regions), origin));
  g.set_outputs(g.node(node).results);
  return interpret(g, operands);
}

inline std::string show(const Tensor& t) {
  std::string s = std::string(name(t.dtype())) + shape_str(t.shape()) + " {";
  for (std::int64_t i = 0; i < t.size(); ++i) {
    if (i > 0) s += ", ";
    if (is_string(t.dtype())) {
      s += "'" + t.string_values()[i] + "'";
    } else if (is_complex(t.dtype())) {
      WideComplex v;
      load_wide(t, i, 1, &v);
      s += std::to_string(v.real()) + "+" + std::to_string(v.imag()) + "i";
    } else if (is_float(t.dtype())) {
      char buffer[40];
      std::snprintf(buffer, sizeof buffer, "%.17g", t.f64(i));
      s += std::isnan(t.f64(i)) ? "nan" : buffer;
    } else {
      s += t.dtype() == DType::U64 ? std::to_string(static_cast<std::uint64_t>(t.i64(i))) : std::to_string(t.i64(i));
    }
  }
  return s + "}";
}

inline void expect_results(const Result<Tensors>& got, const Tensors& want) {
  ASSERT_TRUE(got.ok()) << got.error().what();
  ASSERT_EQ(got->size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(show((*got)[i]), show(want[i])) << "result " << i;
}

inline void expect_error(const Result<Tensors>& got, const char* code, const char* part = "") {
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), code) << got.error().what();
  EXPECT_EQ(got.error().where().substr(0, 4), "case");
  EXPECT_NE(got.error().message().find(part), std::string::npos) << got.error().what();
}

}  // namespace weft::graph::testing
