#include "codegen/llvm/note.h"

#include <algorithm>
#include <charconv>

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Module.h>
#include <llvm/Object/ELFObjectFile.h>

#include "codegen/llvm/codegen.h"

namespace weft::codegen {

namespace {

constexpr llvm::StringLiteral kSection = ".note.weft";
constexpr std::uint32_t kType = 1;
constexpr llvm::StringRef kOwner("Weft\0\0\0", 8);  // 5 bytes with its end, padded to a multiple of 4
constexpr std::uint32_t kOwnerBytes = 5;
constexpr std::size_t kHead = 12;  // sizes and type

// Lines of a word and its value.
std::string described(const Machine& machine) {
  std::string text = "cpu " + machine.name + "\narch " + machine.arch + "\nvector-bits " + std::to_string(machine.vector_bits) + "\nfeatures";
  for (const std::string& feature : machine.features) text += " " + feature;
  return text + "\n";
}

Machine parsed(llvm::StringRef text) {
  Machine machine;
  llvm::SmallVector<llvm::StringRef, 8> lines;
  text.split(lines, '\n', -1, false);
  for (llvm::StringRef line : lines) {
    const auto [word, value] = line.split(' ');
    if (word == "cpu") machine.name = value.str();
    if (word == "arch") machine.arch = value.str();
    if (word == "vector-bits") value.getAsInteger(10, machine.vector_bits);
    if (word != "features") continue;
    llvm::SmallVector<llvm::StringRef, 32> features;
    value.split(features, ' ', -1, false);
    for (llvm::StringRef f : features) machine.features.push_back(f.str());
  }
  return machine;
}

Error no_object(const std::string& why) { return user_error("no-object", "this is no object file that Weft wrote").found(why); }

using ObjectPtr = std::unique_ptr<llvm::object::ObjectFile>;

Result<ObjectPtr> open(std::span<const char> bytes) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef({bytes.data(), bytes.size()}, "object"));
  if (!object) return no_object(llvm::toString(object.takeError()));
  return std::move(*object);
}

Result<Machine> read_note(const llvm::object::ObjectFile& object) {
  for (const llvm::object::SectionRef& section : object.sections()) {
    auto name = section.getName();
    if (!name) return no_object(llvm::toString(name.takeError()));
    if (*name != kSection) continue;
    auto contents = section.getContents();
    if (!contents) return no_object(llvm::toString(contents.takeError()));
    const llvm::StringRef head = contents->take_front(kHead), rest = contents->drop_front(std::min(kHead, contents->size()));
    if (head.size() < kHead || !rest.starts_with(kOwner)) return no_object("a damaged note");
    const auto bytes = llvm::support::endian::read32le(head.data() + 4);
    return parsed(rest.drop_front(kOwner.size()).take_front(bytes));
  }
  return no_object("a file without the note " + kSection.str());
}

}  // namespace

void add_note(llvm::Module& module, const Machine& machine) {
  llvm::LLVMContext& context = module.getContext();
  const auto word = [&](std::uint64_t n) { return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), n); };
  std::string text = described(machine);
  const std::size_t bytes = text.size();
  text.resize((bytes + 3) / 4 * 4);
  llvm::Constant* note = llvm::ConstantStruct::getAnon(
      {word(kOwnerBytes), word(bytes), word(kType), llvm::ConstantDataArray::getString(context, kOwner, false),
       llvm::ConstantDataArray::getString(context, text, false)});
  auto* global = new llvm::GlobalVariable(module, note->getType(), true, llvm::GlobalValue::PrivateLinkage, note, "note");
  global->setSection(kSection);
  global->setAlignment(llvm::Align(4));
}

Result<Machine> read_note(std::span<const char> bytes) { return read_note(*WEFT_TRY(open(bytes))); }

Result<ObjectInfo> object_info(std::span<const char> bytes) {
  const ObjectPtr object = WEFT_TRY(open(bytes));
  ObjectInfo info{WEFT_TRY(read_note(*object)), {}};
  for (const auto& symbol : object->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) return no_object("an unreadable symbol");
    constexpr auto kMask = llvm::object::SymbolRef::SF_Global | llvm::object::SymbolRef::SF_Undefined;
    if ((*flags & kMask) == llvm::object::SymbolRef::SF_Global) info.symbols.push_back(name->str());
  }
  return info;
}

}  // namespace weft::codegen
