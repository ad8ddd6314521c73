// Values as bytes and back: small integers are short, sizes (Dims) are written once. What is read is checked.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/dim.h"

namespace weft::runtime {

class ArchiveWriter {
 public:
  void integer(std::int64_t v);
  void text(std::string_view v);
  void dim(const Dim& d);
  void facts(const DimFacts& facts);
  template <class T, class F>
  void list(const std::vector<T>& values, F&& each) {
    integer(static_cast<std::int64_t>(values.size()));
    for (const T& v : values) each(v);
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
  std::map<Dim, std::int64_t> dims_;
};

class ArchiveReader {
 public:
  explicit ArchiveReader(ByteSpan bytes) : in_(bytes, "plan") {}
  Result<std::int64_t> integer();
  Result<std::string> text();
  Result<Dim> dim();
  Result<DimFacts> facts();
  template <class T>
  Result<T> number() {  // of a narrower type
    const std::int64_t v = WEFT_TRY(integer());
    if (static_cast<std::int64_t>(static_cast<T>(v)) != v) return bad();
    return static_cast<T>(v);
  }
  template <class F>
  auto list(F&& each) -> Result<std::vector<std::decay_t<decltype(*each())>>> {
    const std::int64_t count = WEFT_TRY(integer());
    if (count < 0 || static_cast<std::uint64_t>(count) > in_.remaining()) return bad();
    std::vector<std::decay_t<decltype(*each())>> values;
    values.reserve(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < count; ++k) values.push_back(WEFT_TRY(each()));
    return values;
  }
  bool at_end() const { return in_.at_end(); }
  static Error bad() { return user_error("bad-cache-entry", "a stored plan is damaged"); }

 private:
  ByteReader in_;
  std::vector<Dim> dims_;
};

}  // namespace weft::runtime
