// Every case under test/cases: those of kind SEC that must be refused are, by name, and those that have
// values are accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"
#include "frontend/onnx/cases.h"

namespace weft::onnx {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> cases() {
  std::vector<fs::path> out;
  if (!fs::exists(kCases)) return out;
  for (const auto& entry : fs::directory_iterator(kCases)) {
    if (fs::exists(entry.path() / "case.json")) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string verdict(const fs::path& folder) {
  auto read = read_model_file((folder / "model.onnx").string());
  if (!read) return read.error().what();
  auto valid = validate(*read);
  return valid ? "" : valid.error().what();
}

void check_data(const fs::path& folder, const Model& model) {
  const auto check = [&](const char* kind, const std::vector<ValueInfo>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const fs::path file = folder / "test_data_set_0" / (kind + std::to_string(i) + ".pb");
      if (!fs::exists(file)) continue;
      auto data = read_data_file(file.string(), values[i].type);
      EXPECT_TRUE(data) << data.error().what();
    }
  };
  check("input_", model.graph->inputs);
  check("output_", model.graph->outputs);
}

TEST(Cases, AreReadOrRefused) {
  const std::vector<fs::path> all = cases();
  if (all.empty()) FAIL() << "no cases in " << kCases;
  for (const fs::path& folder : all) {
    SCOPED_TRACE(folder.filename().string());
    const auto about = nlohmann::json::parse(std::ifstream(folder / "case.json"));
    const std::string expect = about.at("expect");
    const std::string said = verdict(folder);
    if (expect == "values") {
      EXPECT_EQ(said, "");
      check_data(folder, *read_model_file((folder / "model.onnx").string()));
    } else if (expect == "refuse" && about.at("kind") == "SEC") {
      EXPECT_NE(said, "");
      bool named = !about.contains("names");
      for (const auto& name : about.value("names", nlohmann::json::array())) {
        named = named || said.find(name.get<std::string>()) != std::string::npos;
      }
      EXPECT_TRUE(named) << said;
    }
  }
}

// Cases of other kinds whose fault the reader and validator can see.
TEST(Cases, WrongVersionsAndDomainsAreRefused) {
  const std::map<std::string, std::string> cases{
      {"ir_version_1000", "1000"},      {"ir_version_missing", "IR version"}, {"opset_1000", "1000"},
      {"opset_zero", "opset 0"},        {"opset_negative", "opset -"},        {"opset_import_missing", "opset_import"},
      {"unknown_domain", "example.org"}};
  for (const auto& [name, word] : cases) {
    if (!fs::exists(kCases / name)) FAIL() << "no cases in " << kCases;
    EXPECT_THAT(verdict(kCases / name), testing::HasSubstr(word)) << name;
  }
}

}  // namespace
}  // namespace weft::onnx
