// Writes small ONNX messages for the reader's tests, field by field, right or wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::onnx::test {

class Message {
 public:
  Message& number(std::uint32_t field, std::int64_t v) { return add([&](auto& w) { w.add_int64(field, v); }); }
  Message& bytes(std::uint32_t field, std::string_view v) {
    return add([&](auto& w) { w.add_bytes(field, v.data(), v.size()); });
  }
  Message& message(std::uint32_t field, const Message& m) { return bytes(field, m.data_); }
  Message& f32(std::uint32_t field, float v) { return add([&](auto& w) { w.add_float(field, v); }); }
  Message& f64(std::uint32_t field, double v) { return add([&](auto& w) { w.add_double(field, v); }); }
  Message& numbers(std::uint32_t field, const std::vector<std::int64_t>& v) {  // packed
    return add([&](auto& w) { w.add_packed_int64(field, v.begin(), v.end()); });
  }
  Message& floats(std::uint32_t field, const std::vector<float>& v) {  // packed
    return add([&](auto& w) { w.add_packed_float(field, v.begin(), v.end()); });
  }
  const std::string& data() const { return data_; }

 private:
  template <class F>
  Message& add(F&& f) {
    protozero::pbf_writer writer(data_);
    f(writer);
    return *this;
  }
  std::string data_;
};

template <class T>
std::string raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline Message tensor(std::string_view name, int type, const std::vector<std::int64_t>& dims) {
  return Message().numbers(1, dims).number(2, type).bytes(8, name);
}

inline Message entry(std::string_view key, std::string_view value) { return Message().bytes(1, key).bytes(2, value); }

inline Message value_info(std::string_view name, int type, const std::vector<std::int64_t>& dims = {}) {
  Message shape;
  for (const std::int64_t d : dims) shape.message(1, Message().number(1, d));
  return Message().bytes(1, name).message(2, Message().message(1, Message().number(1, type).message(2, shape)));
}

inline Message node(std::string_view op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                    std::string_view name = {}) {
  Message m;
  for (const std::string& i : inputs) m.bytes(1, i);
  for (const std::string& o : outputs) m.bytes(2, o);
  if (!name.empty()) m.bytes(3, name);
  return m.bytes(4, op);
}

inline Message graph(const std::vector<Message>& nodes, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::vector<Message>& initializers = {}) {
  Message m;
  for (const Message& n : nodes) m.message(1, n);
  m.bytes(2, "g");
  for (const Message& t : initializers) m.message(5, t);
  for (const std::string& i : inputs) m.message(11, value_info(i, 1, {2}));
  for (const std::string& o : outputs) m.message(12, value_info(o, 1, {2}));
  return m;
}

inline Message opset(std::int64_t version, std::string_view domain = {}) {
  Message m;
  if (!domain.empty()) m.bytes(1, domain);
  return m.number(2, version);
}

inline Message model(const Message& graph, std::int64_t opset_version = 21, std::int64_t ir_version = 10) {
  return Message().number(1, ir_version).message(7, graph).message(8, opset(opset_version));
}

inline std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

}  // namespace weft::onnx::test
