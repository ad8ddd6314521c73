// Test cases in the layout of the ONNX backend suite, and how one is judged (see test/cases/README.md).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/compare.h"
#include "weft/weft.h"

namespace weft::cli {

struct TestCase {
  std::string name;        // path below the folder given
  std::string folder;
  std::string model;       // path of the model
  std::vector<std::string> data_sets;  // folders with input_N.pb and output_N.pb
  std::vector<std::string> answers;    // folders with output_N.pb that are right as well
  std::string light_output;            // the one expected output of a model whose input is made by formula, or ""
  enum class Expect { Values, Refuse, Either } expect = Expect::Values;
  std::vector<std::string> names;      // an error must hold one of them, unless there are none
  bool refusal_ok = false, any_value = false;
  Tolerance tolerance;
};

// All cases in or below the folder, by name.
Result<std::vector<TestCase>> find_cases(const std::string& folder, const Tolerance& tolerance);

struct Judging {
  std::string target = "cpu";
  std::string code;
  std::string cpu = "native";
  bool optimised = true;
};

CompileOptions compile_options(const Judging& how);

// Runs the case in this process: "" when it passes, else why it does not.
std::string judge(const TestCase& test, const Judging& how);

}  // namespace weft::cli
