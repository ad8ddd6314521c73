#include "base/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 1 << 20;
constexpr std::size_t kMaxRank = 64;
constexpr std::size_t kAlign = 64;

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

Error malformed(const std::string& what) { return user_error("npy", what); }

// The subset of Python's literals that a header uses: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<Header> parse() {
    Header h;
    bool seen[3] = {};
    WEFT_TRY(expect('{'));
    while (!accept('}')) {
      const std::string key = WEFT_TRY(quoted());
      WEFT_TRY(expect(':'));
      const int field = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (field < 0 || seen[field]) return malformed(fmt::format("the header has the key {}", quote(key)));
      seen[field] = true;
      if (field == 0) h.descr = WEFT_TRY(descr());
      if (field == 1) h.fortran = WEFT_TRY(boolean());
      if (field == 2) h.shape = WEFT_TRY(tuple());
      if (!accept(',')) {
        WEFT_TRY(expect('}'));
        break;
      }
    }
    if (!seen[0] || !seen[1] || !seen[2]) return malformed("the header lacks descr, fortran_order or shape");
    skip();
    if (at_ != text_.size()) return malformed("text follows the header's dictionary");
    return h;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Result<void> expect(char c) {
    if (accept(c)) return {};
    return malformed(fmt::format("the header lacks '{}' at {}", c, at_));
  }
  Result<std::string> quoted() {
    const char mark = accept('\'') ? '\'' : accept('"') ? '"' : '\0';
    const std::size_t end = mark == '\0' ? std::string_view::npos : text_.find(mark, at_);
    if (end == std::string_view::npos) return malformed(fmt::format("the header lacks a string at {}", at_));
    std::string value(text_.substr(at_, end - at_));
    if (value.find('\\') != std::string::npos) return malformed("the header has an escape in a string");
    at_ = end + 1;
    return value;
  }
  Result<std::string> descr() {
    skip();
    if (at_ < text_.size() && text_[at_] == '[') return unsupported("npy-record", "records (structured dtypes) in .npy");
    return quoted();
  }
  Result<bool> boolean() {
    skip();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    return malformed("fortran_order is neither True nor False");
  }
  Result<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> sizes;
    WEFT_TRY(expect('('));
    while (!accept(')')) {
      skip();
      std::int64_t size = 0;
      const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (failure != std::errc() || size < 0) return malformed(fmt::format("the shape has no size at {}", at_));
      at_ = static_cast<std::size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
      if (sizes.size() == kMaxRank) return malformed(fmt::format("the shape has more than {} dimensions", kMaxRank));
      sizes.push_back(size);
      if (!accept(',')) {
        WEFT_TRY(expect(')'));
        break;
      }
    }
    return sizes;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

struct Element {
  DType dtype = DType::U8;
  std::size_t bytes = 1;
  bool swap = false;
  bool trailing = false;  // raw bytes get a dimension of their own
};

Result<std::size_t> raw_width(const std::string& descr) {
  const std::size_t digits = descr.find('V') + 1;
  std::size_t width = 0;
  const auto [end, failure] = std::from_chars(descr.data() + digits, descr.data() + descr.size(), width);
  if (failure != std::errc() || end != descr.data() + descr.size() || width == 0 || width > 4096) {
    return malformed(fmt::format("the descr {} is malformed", quote(descr)));
  }
  return width;
}

Result<Element> element_of(std::string descr, std::optional<DType> raw_as) {
  Element e;
  if (descr.find('O') != std::string::npos) {
    return user_error("npy-object", "an array of Python objects is refused: reading it would run code")
        .suggest("save it with a numeric dtype");
  }
  if (descr.find('V') <= 1) {
    e.bytes = WEFT_TRY(raw_width(descr));
    if (raw_as && static_cast<std::size_t>(bits(*raw_as)) == e.bytes * 8) {
      e.dtype = *raw_as;
      return e;
    }
    if (raw_as) {
      return malformed(fmt::format("elements of {} raw bytes cannot be {}", e.bytes, name(*raw_as)));
    }
    e.trailing = true;
    return e;
  }
  if (!descr.empty() && descr[0] == '>') {
    descr[0] = '<';
    e.swap = true;
  } else if (!descr.empty() && descr[0] == '=') {
    descr[0] = '<';
  }
  if (descr.size() == 3 && descr[2] == '1') descr[0] = '|';
  const auto dtype = dtype_from_npy(descr);
  if (!dtype) return unsupported("npy-dtype", fmt::format("elements of descr {} in .npy", quote(descr)));
  e.dtype = *dtype;
  e.bytes = static_cast<std::size_t>(bits(*dtype)) / 8;
  return e;
}

void swap_bytes(void* data, std::size_t count, DType dtype) {
  const std::size_t parts = is_complex(dtype) ? 2 : 1;
  const std::size_t width = static_cast<std::size_t>(bits(dtype)) / 8 / parts;
  auto* at = static_cast<std::byte*>(data);
  for (std::size_t i = 0; i < count * parts; ++i, at += width) std::reverse(at, at + width);
}

// Column-major to row-major, one element after the other.
void from_fortran(const std::byte* from, std::byte* to, const std::vector<std::int64_t>& shape, std::size_t width) {
  std::vector<std::int64_t> steps(shape.size()), index(shape.size());
  std::int64_t step = 1, count = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    steps[d] = step;
    step *= shape[d];
    count *= shape[d];
  }
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i, to += width) {
    std::memcpy(to, from + static_cast<std::size_t>(offset) * width, width);
    for (std::size_t d = shape.size(); d-- > 0;) {
      offset += steps[d];
      if (++index[d] < shape[d]) break;
      offset -= steps[d] * shape[d];
      index[d] = 0;
    }
  }
}

Result<Header> read_header(ByteReader& reader) {
  const std::string_view magic = WEFT_TRY(reader.text(kMagic.size()));
  if (magic != kMagic) return malformed("this is no .npy file");
  const auto major = WEFT_TRY(reader.read<std::uint8_t>());
  WEFT_TRY(reader.read<std::uint8_t>());
  if (major < 1 || major > 3) return unsupported("npy-version", fmt::format("version {} of .npy", major));
  const std::size_t length = major == 1 ? WEFT_TRY(reader.read<std::uint16_t>()) : WEFT_TRY(reader.read<std::uint32_t>());
  if (length > kMaxHeader) return malformed(fmt::format("a header of {} bytes", length));
  return HeaderParser(WEFT_TRY(reader.text(length))).parse();
}

Result<Tensor> parse(ByteSpan bytes, std::shared_ptr<const void> owner, std::optional<DType> raw_as) {
  ByteReader reader(bytes, "the file");
  Header h = WEFT_TRY(read_header(reader));
  const Element e = WEFT_TRY(element_of(h.descr, raw_as));
  std::vector<std::int64_t> shape = h.shape;
  if (e.trailing) shape.push_back(static_cast<std::int64_t>(e.bytes));
  std::int64_t total = static_cast<std::int64_t>(e.bytes);
  const bool empty = std::find(h.shape.begin(), h.shape.end(), 0) != h.shape.end();
  for (const std::int64_t d : h.shape) {
    if (d != 0 && __builtin_mul_overflow(total, d, &total)) return malformed("the shape " + shape_str(h.shape) + " overflows");
  }
  if (empty) total = 0;
  const ByteSpan data = WEFT_TRY(reader.bytes(static_cast<std::uint64_t>(total)));
  if (!reader.at_end()) return malformed(fmt::format("{} bytes follow the data", reader.remaining()));
  const bool fortran = h.fortran && h.shape.size() > 1;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data.data()) % kAlign == 0;
  if (owner != nullptr && !fortran && !e.swap && aligned && total > 0) {
    return Tensor::view(e.dtype, std::move(shape), data.data(), std::move(owner));
  }
  Tensor t = WEFT_TRY(Tensor::empty(e.dtype, std::move(shape)));
  auto* to = static_cast<std::byte*>(t.mutable_data());
  if (fortran && total > 0) {
    from_fortran(data.data(), to, h.shape, e.bytes);
  } else if (total > 0) {
    std::memcpy(to, data.data(), data.size());
  }
  if (e.swap) swap_bytes(to, static_cast<std::size_t>(t.size()), e.dtype);
  return t;
}

}  // namespace

Result<Tensor> parse_npy(ByteSpan bytes, std::shared_ptr<const void> owner, std::optional<DType> raw_as,
                         const std::string& name) {
  Result<Tensor> t = parse(bytes, std::move(owner), raw_as);
  if (t.ok()) return t;
  Error e = t.error();
  return e.at(name);
}

Result<Tensor> read_npy(const std::string& path, std::optional<DType> raw_as) {
  const auto file = WEFT_TRY(MappedFile::open(path));
  return parse_npy(file->bytes(), file, raw_as, path);
}

Result<std::string> format_npy(const Tensor& tensor) {
  const DType t = tensor.dtype();
  if (bits(t) < 8) {
    return unsupported("npy-dtype", fmt::format("tensors of {} in .npy", name(t))).suggest("cast the value first");
  }
  const std::string descr = *info(t).npy != '\0' ? info(t).npy : fmt::format("|V{}", bits(t) / 8);
  std::string shape = "(";
  for (const std::int64_t d : tensor.shape()) shape += fmt::format("{}, ", d);
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.resize(shape.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}), }}", descr, shape);
  const std::size_t fixed = kMagic.size() + 2 + 2;
  header.append(kAlign - (fixed + header.size() + 1) % kAlign, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  if (tensor.size() > 0) out.append(static_cast<const char*>(tensor.data()), tensor.byte_size());
  return out;
}

Result<void> write_npy(const std::string& path, const Tensor& tensor) {
  return write_file(path, WEFT_TRY(format_npy(tensor)));
}

}  // namespace weft
