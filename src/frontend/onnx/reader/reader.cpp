#include "frontend/onnx/reader/reader.h"

#include <filesystem>
#include <new>

#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {
namespace {

Error no_memory() { return user_error("out-of-memory", "there is no memory left to read the file"); }

Result<Model> read_model(std::string_view bytes, const std::string& base_dir, const Limits& limits,
                         std::shared_ptr<const void> owner) try {
  ExternalData external(base_dir);
  Decoder decoder(bytes, std::move(owner), limits, base_dir.empty() ? nullptr : &external);
  Result<Model> read = decoder.model(bytes);
  if (read.ok()) read->has_external_data = external.is_used();
  return read;
} catch (const std::bad_alloc&) {
  return no_memory();
}

Result<DataValue> read_data(std::string_view bytes, const Type& type, const Limits& limits,
                            std::shared_ptr<const void> owner) try {
  Decoder decoder(bytes, std::move(owner), limits, nullptr);
  switch (type.kind) {
    case Type::Kind::Unset:
    case Type::Kind::Tensor: return decoder.data_tensor(bytes);
    case Type::Kind::Sequence: return decoder.data_sequence(bytes, 1);
    case Type::Kind::Optional: return decoder.data_optional(bytes, 1);
    case Type::Kind::SparseTensor:
    case Type::Kind::Map: break;
  }
  return unsupported("test-data-unsupported", "test data of maps and sparse tensors is not supported");
} catch (const std::bad_alloc&) {
  return no_memory();
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<Model> read_model_file(const std::string& path, const Limits& limits) {
  const std::shared_ptr<const MappedFile> file = WEFT_TRY(MappedFile::open(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  Result<Model> read = read_model(file->text(), folder.empty() ? "." : folder, limits, file);
  if (!read && read.error().where().empty()) return within(read.error(), path);
  return read;
}

Result<Model> read_model_bytes(std::span<const std::byte> bytes, const std::string& base_dir, const Limits& limits,
                               std::shared_ptr<const void> owner) {
  return read_model(as_text(bytes), base_dir, limits, std::move(owner));
}

Result<DataValue> read_data_file(const std::string& path, const Type& type, const Limits& limits) {
  const std::shared_ptr<const MappedFile> file = WEFT_TRY(MappedFile::open(path));
  Result<DataValue> read = read_data(file->text(), type, limits, file);
  if (!read && read.error().where().empty()) return within(read.error(), path);
  return read;
}

Result<DataValue> read_data_bytes(std::span<const std::byte> bytes, const Type& type, const Limits& limits,
                                  std::shared_ptr<const void> owner) {
  return read_data(as_text(bytes), type, limits, std::move(owner));
}

}  // namespace weft::onnx
