#include "runtime/object.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <limits>
#include <optional>

namespace weft::runtime {

namespace {

Error bad_object(std::string what) { return user_error("bad-object", "an object cannot be loaded: " + std::move(what)); }

std::size_t aligned(std::size_t at, std::size_t to) { return (at + to - 1) / to * to; }

// A jump to an address anywhere: jmp *[rip + 0], then the address.
constexpr std::size_t kStubBytes = 16;
constexpr unsigned char kJump[] = {0xff, 0x25, 0, 0, 0, 0};

// All that kernels may call.
struct Callee {
  const char* name;
  void* address;
};
const Callee kCallees[] = {
    {"memcpy", reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, std::size_t)>(std::memcpy))},
    {"memset", reinterpret_cast<void*>(static_cast<void* (*)(void*, int, std::size_t)>(std::memset))},
    {"memmove", reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, std::size_t)>(std::memmove))},
};
constexpr std::size_t kStubs = std::size(kCallees) * kStubBytes;

class ObjectFile {
 public:
  static Result<ObjectFile> read(ByteSpan bytes);

  Result<std::size_t> place(std::size_t at);  // gives its sections addresses from `at` on; returns where they end
  void copy(std::byte* memory) const;
  Result<void> relocate(std::byte* memory) const;
  Result<void> export_symbols(std::map<std::string, std::size_t, std::less<>>& into) const;

 private:
  template <class T>
  Result<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return bad_object("it is cut off");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  Result<std::string> name(const Elf64_Sym& symbol) const;
  Result<std::size_t> address(const Elf64_Sym& symbol) const;
  Result<void> apply(const Elf64_Shdr& target, std::size_t base, const Elf64_Rela& rela, std::byte* memory) const;

  ByteSpan bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::optional<std::size_t>> placed_;  // by section
  std::vector<Elf64_Sym> symbols_;
  Elf64_Shdr names_{};  // of symbols
};

Result<ObjectFile> ObjectFile::read(ByteSpan bytes) {
  ObjectFile file;
  file.bytes_ = bytes;
  const auto header = WEFT_TRY(file.at<Elf64_Ehdr>(0));
  const bool known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                     header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_REL && header.e_machine == EM_X86_64;
  if (!known || header.e_shentsize != sizeof(Elf64_Shdr)) return bad_object("it is no relocatable object for x86-64");
  for (std::size_t k = 0; k < header.e_shnum; ++k) {
    const auto section = WEFT_TRY(file.at<Elf64_Shdr>(header.e_shoff + k * sizeof(Elf64_Shdr)));
    const bool has_bytes = section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
    if (has_bytes && (section.sh_offset > bytes.size() || section.sh_size > bytes.size() - section.sh_offset)) {
      return bad_object("a section is outside of it");
    }
    file.sections_.push_back(section);
  }
  for (const Elf64_Shdr& section : file.sections_) {
    if (section.sh_type != SHT_SYMTAB) continue;
    if (section.sh_link >= file.sections_.size()) return bad_object("its symbols have no names");
    file.names_ = file.sections_[section.sh_link];
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      file.symbols_.push_back(WEFT_TRY(file.at<Elf64_Sym>(section.sh_offset + at)));
    }
  }
  return file;
}

Result<std::size_t> ObjectFile::place(std::size_t at) {
  placed_.resize(sections_.size());
  for (std::size_t k = 0; k < sections_.size(); ++k) {
    const Elf64_Shdr& section = sections_[k];
    if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_size == 0) continue;
    if ((section.sh_flags & SHF_WRITE) != 0) return bad_object("it has data that it writes");
    const std::uint64_t alignment = std::max<std::uint64_t>(1, section.sh_addralign);
    if (!std::has_single_bit(alignment) || alignment > 4096) return bad_object("a section has an impossible alignment");
    at = aligned(at, alignment);
    placed_[k] = at;
    if (section.sh_size > std::size_t{1} << 30) return bad_object("it is too large");
    at += section.sh_size;
  }
  return at;
}

void ObjectFile::copy(std::byte* memory) const {
  for (std::size_t k = 0; k < sections_.size(); ++k) {
    if (!placed_[k] || sections_[k].sh_type == SHT_NOBITS) continue;
    std::memcpy(memory + *placed_[k], bytes_.data() + sections_[k].sh_offset, sections_[k].sh_size);
  }
}

Result<std::string> ObjectFile::name(const Elf64_Sym& symbol) const {
  const char* start = reinterpret_cast<const char*>(bytes_.data()) + names_.sh_offset;
  if (names_.sh_type != SHT_STRTAB || symbol.st_name >= names_.sh_size) return bad_object("a symbol has no name");
  return std::string(start + symbol.st_name, strnlen(start + symbol.st_name, names_.sh_size - symbol.st_name));
}

Result<std::size_t> ObjectFile::address(const Elf64_Sym& symbol) const {
  if (symbol.st_shndx == SHN_UNDEF) {
    const std::string wanted = WEFT_TRY(name(symbol));
    for (std::size_t k = 0; k < std::size(kCallees); ++k) {
      if (wanted == kCallees[k].name) return k * kStubBytes;
    }
    return bad_object("it needs '" + wanted + "'");
  }
  if (symbol.st_shndx >= sections_.size() || !placed_[symbol.st_shndx]) return bad_object("a symbol is nowhere");
  if (symbol.st_value > sections_[symbol.st_shndx].sh_size) return bad_object("a symbol is outside of its section");
  return *placed_[symbol.st_shndx] + symbol.st_value;
}

Result<void> ObjectFile::apply(const Elf64_Shdr& target, std::size_t base, const Elf64_Rela& rela, std::byte* memory) const {
  const std::uint32_t type = ELF64_R_TYPE(rela.r_info);
  if (ELF64_R_SYM(rela.r_info) >= symbols_.size()) return bad_object("a relocation names no symbol");
  const std::size_t width = type == R_X86_64_64 ? 8 : 4;
  if (rela.r_offset > target.sh_size || target.sh_size - rela.r_offset < width) {
    return bad_object("a relocation is outside of its section");
  }
  const std::size_t place = base + rela.r_offset;
  const auto symbol = static_cast<std::int64_t>(WEFT_TRY(address(symbols_[ELF64_R_SYM(rela.r_info)])));
  if (rela.r_addend > INT32_MAX || rela.r_addend < INT32_MIN) return bad_object("a relocation reaches too far");
  switch (type) {
    case R_X86_64_PC32:
    case R_X86_64_PLT32: {
      const std::int64_t distance = symbol + rela.r_addend - static_cast<std::int64_t>(place);
      if (distance > INT32_MAX || distance < INT32_MIN) return bad_object("a relocation reaches too far");
      const auto value = static_cast<std::int32_t>(distance);
      std::memcpy(memory + place, &value, sizeof value);
      return {};
    }
    case R_X86_64_64: {
      const std::uint64_t value = reinterpret_cast<std::uintptr_t>(memory) + static_cast<std::uint64_t>(symbol + rela.r_addend);
      std::memcpy(memory + place, &value, sizeof value);
      return {};
    }
    default:
      return bad_object(fmt::format("it has relocations of type {}", type));
  }
}

Result<void> ObjectFile::relocate(std::byte* memory) const {
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type == SHT_REL) return bad_object("it has relocations without addends");
    if (section.sh_type != SHT_RELA || section.sh_info >= sections_.size() || !placed_[section.sh_info]) continue;
    if (sections_[section.sh_info].sh_type == SHT_NOBITS) return bad_object("it has relocations in no bytes");
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= section.sh_size; at += sizeof(Elf64_Rela)) {
      const auto rela = WEFT_TRY(this->at<Elf64_Rela>(section.sh_offset + at));
      WEFT_TRY(apply(sections_[section.sh_info], *placed_[section.sh_info], rela, memory));
    }
  }
  return {};
}

Result<void> ObjectFile::export_symbols(std::map<std::string, std::size_t, std::less<>>& into) const {
  for (const Elf64_Sym& symbol : symbols_) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
    if (symbol.st_shndx == SHN_UNDEF) continue;
    into.emplace(WEFT_TRY(name(symbol)), WEFT_TRY(address(symbol)));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const LoadedObjects>> LoadedObjects::load(std::span<const ByteSpan> objects) {
  std::vector<ObjectFile> files;
  std::size_t end = kStubs;
  for (ByteSpan object : objects) {
    files.push_back(WEFT_TRY(ObjectFile::read(object)));
    end = WEFT_TRY(files.back().place(end));
    if (end > INT32_MAX) return bad_object("there is too much code");
  }
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::shared_ptr<LoadedObjects> loaded(new LoadedObjects);
  loaded->bytes_ = aligned(end, page);
  void* memory = mmap(nullptr, loaded->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return user_error("out-of-memory", "no memory for machine code");
  loaded->memory_ = static_cast<std::byte*>(memory);
  for (std::size_t k = 0; k < std::size(kCallees); ++k) {
    std::byte* stub = loaded->memory_ + k * kStubBytes;
    std::memcpy(stub, kJump, sizeof kJump);
    std::memcpy(stub + sizeof kJump, &kCallees[k].address, sizeof(void*));
  }
  for (const ObjectFile& file : files) {
    file.copy(loaded->memory_);
    WEFT_TRY(file.relocate(loaded->memory_));
    WEFT_TRY(file.export_symbols(loaded->symbols_));
  }
  if (mprotect(memory, loaded->bytes_, PROT_READ | PROT_EXEC) != 0) return bad_object("its memory may not be executed");
  return std::shared_ptr<const LoadedObjects>(std::move(loaded));
}

LoadedObjects::~LoadedObjects() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

KernelFn LoadedObjects::find(std::string_view symbol) const {
  const auto it = symbols_.find(symbol);
  return it == symbols_.end() ? nullptr : reinterpret_cast<KernelFn>(memory_ + it->second);
}

}  // namespace weft::runtime
