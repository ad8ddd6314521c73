#include "compile/dump.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "base/log.h"
#include "base/text.h"

namespace weft::compiler {

namespace {

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) failed("cannot make the folder");
  }

  void add(const std::string& stage, const std::string& name, const std::string& text) {
    const std::string file = file_name(stage, name);
    const bool fresh = written_.insert(file).second;
    std::ofstream out(std::filesystem::path(path_) / file, fresh ? std::ios::trunc : std::ios::app);
    out << text << (text.empty() || text.back() == '\n' ? "" : "\n");
    if (!out.flush()) failed("cannot write " + file);
  }

 private:
  static std::string file_name(const std::string& stage, const std::string& name) {
    const std::string before = std::string(kAllStages).substr(0, std::string(kAllStages).find(stage));
    const auto number = std::count(before.begin(), before.end(), ',');
    std::string safe;
    for (char c : name.substr(0, 100)) safe += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ? c : '_';
    const char* ending = stage == "llvm" ? "ll" : stage == "asm" ? "s" : "txt";
    return fmt::format("{:02}-{}-{}.{}", number, stage, safe, ending);
  }

  void failed(const std::string& what) {
    if (!warned_) warn(fmt::format("WEFT_DUMP={}: {}", path_, what));
    warned_ = true;
  }

  std::string path_;
  std::set<std::string> written_;
  bool warned_ = false;
};

}  // namespace

std::function<void(const std::string&, const std::string&, const std::string&)> dump_to_folder(const std::string& folder) {
  auto shared = std::make_shared<Folder>(folder);
  return [shared](const std::string& stage, const std::string& name, const std::string& text) {
    shared->add(stage, name, text);
  };
}

}  // namespace weft::compiler
