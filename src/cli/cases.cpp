#include "cli/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/bytes.h"

namespace weft::cli {
namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

Result<Json> read_json(const fs::path& path) {
  const auto file = WEFT_TRY(MappedFile::open(path.string()));
  Json json = Json::parse(file->text(), nullptr, false);
  if (!json.is_object()) return user_error("json", "this is no JSON object").at(path.string());
  return json;
}

// test_data_set_0, test_data_set_1 ... or answer_1, answer_2 ... in order of their numbers.
std::vector<std::string> numbered_folders(const fs::path& folder, const std::string& prefix, int first) {
  std::vector<std::string> found;
  for (int k = first;; ++k) {
    fs::path path = folder / fmt::format("{}{}", prefix, k);
    if (!fs::is_directory(path)) return found;
    found.push_back(path.string());
  }
}

Result<void> read_case_json(TestCase& test) {
  const fs::path path = fs::path(test.folder) / "case.json";
  if (!fs::exists(path)) return {};
  const Json json = WEFT_TRY(read_json(path));
  const std::string expect = json.value("expect", "values");
  if (expect == "refuse") {
    test.expect = TestCase::Expect::Refuse;
  } else if (expect == "either") {
    test.expect = TestCase::Expect::Either;
  } else if (expect != "values") {
    return user_error("json", "'expect' is values, refuse or either").at(path.string()).found(expect);
  }
  test.tolerance.rtol = json.value("rtol", test.tolerance.rtol);
  test.tolerance.atol = json.value("atol", test.tolerance.atol);
  test.names = json.value("names", std::vector<std::string>{});
  test.refusal_ok = json.value("refusal_ok", false);
  test.any_value = json.value("any_value", false);
  test.answers = numbered_folders(test.folder, "answer_", 1);
  return {};
}

// A `real` case: data.json names a model of the folder light/ beside the suite's kinds; the input is made by formula.
Result<void> read_data_json(TestCase& test) {
  const fs::path path = fs::path(test.folder) / "data.json";
  const Json json = WEFT_TRY(read_json(path));
  const fs::path file = fs::path(json.value("url", "")).filename();
  for (fs::path above = fs::absolute(test.folder).parent_path();; above = above.parent_path()) {
    const fs::path model = above / "light" / file;
    if (!file.empty() && fs::is_regular_file(model)) {
      test.model = model.string();
      test.light_output = (above / "light" / fmt::format("{}_output_0.pb", file.stem().string())).string();
      break;
    }
    if (above == above.parent_path()) {
      return user_error("no-model", "the model is not in a folder light/ above").at(path.string()).found(file.string());
    }
  }
  test.tolerance.rtol = json.value("rtol", test.tolerance.rtol);
  test.tolerance.atol = json.value("atol", test.tolerance.atol);
  return {};
}

Result<void> add_case(const fs::path& folder, const fs::path& root, const Tolerance& tolerance,
                      std::vector<TestCase>& cases) {
  TestCase test;
  test.folder = folder.string();
  test.name = fs::relative(folder, root).string();
  if (test.name == ".") test.name = folder.filename().string();
  test.tolerance = tolerance;
  if (fs::exists(folder / "model.onnx")) {
    test.model = (folder / "model.onnx").string();
    WEFT_TRY(read_case_json(test));
    test.data_sets = numbered_folders(folder, "test_data_set_", 0);
  } else {
    WEFT_TRY(read_data_json(test));
  }
  cases.push_back(std::move(test));
  return {};
}

}  // namespace

Result<std::vector<TestCase>> find_cases(const std::string& folder, const Tolerance& tolerance) {
  std::vector<TestCase> cases;
  std::vector<fs::path> folders{fs::path(folder)};
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  if (error) return user_error("file", error.message()).at(folder);
  std::sort(folders.begin(), folders.end());
  for (const fs::path& path : folders) {
    if (!fs::exists(path / "model.onnx") && !fs::exists(path / "data.json")) continue;
    try {
      WEFT_TRY(add_case(path, folder, tolerance, cases));
    } catch (const Json::exception& e) {
      return user_error("json", e.what()).at(path.string());
    }
  }
  return cases;
}

}  // namespace weft::cli
