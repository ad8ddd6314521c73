#include "runtime/archive.h"

namespace weft::runtime {

namespace {

std::uint64_t zigzag(std::int64_t v) { return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63); }

std::int64_t unzigzag(std::uint64_t v) { return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1); }

// What comes before a size: its number in the table, or one of these.
constexpr std::int64_t kConstant = -1, kNew = -2;

}  // namespace

void ArchiveWriter::integer(std::int64_t v) {
  std::uint64_t left = zigzag(v);
  for (; left >= 0x80; left >>= 7) bytes_.push_back(static_cast<char>(left | 0x80));
  bytes_.push_back(static_cast<char>(left));
}

void ArchiveWriter::text(std::string_view v) {
  integer(static_cast<std::int64_t>(v.size()));
  bytes_.insert(bytes_.end(), v.begin(), v.end());
}

void ArchiveWriter::dim(const Dim& d) {
  if (d.is_const()) {
    integer(kConstant);
    return integer(d.value());
  }
  const auto [it, fresh] = dims_.emplace(d, static_cast<std::int64_t>(dims_.size()));
  if (!fresh) return integer(it->second);
  integer(kNew);
  text(d.str());
}

void ArchiveWriter::facts(const DimFacts& facts) {
  integer(static_cast<std::int64_t>(facts.symbols().size()));
  for (const auto& [symbol, range] : facts.symbols()) {
    text(symbol);
    for (std::int64_t v : {range.lo, range.hi, range.multiple_of}) integer(v);
  }
}

Result<std::int64_t> ArchiveReader::integer() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = WEFT_TRY(in_.read<std::uint8_t>());
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return unzigzag(value);
  }
  return bad();
}

Result<std::string> ArchiveReader::text() {
  const std::int64_t size = WEFT_TRY(integer());
  if (size < 0) return bad();
  return std::string(WEFT_TRY(in_.text(static_cast<std::uint64_t>(size))));
}

Result<Dim> ArchiveReader::dim() {
  const std::int64_t which = WEFT_TRY(integer());
  if (which == kConstant) return Dim(WEFT_TRY(integer()));
  if (which == kNew) {
    dims_.push_back(WEFT_TRY(Dim::parse(WEFT_TRY(text()))));
    return dims_.back();
  }
  if (which < 0 || static_cast<std::size_t>(which) >= dims_.size()) return bad();
  return dims_[static_cast<std::size_t>(which)];
}

Result<DimFacts> ArchiveReader::facts() {
  DimFacts facts;
  for (std::int64_t left = WEFT_TRY(integer()); left > 0; --left) {
    const std::string symbol = WEFT_TRY(text());
    SymbolRange range;
    for (std::int64_t* to : {&range.lo, &range.hi, &range.multiple_of}) *to = WEFT_TRY(integer());
    facts.declare(symbol, range);
  }
  return facts;
}

}  // namespace weft::runtime
