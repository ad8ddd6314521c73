// weft run: runs a model once, says what came out, and writes it.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "base/npy.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/table.h"

namespace weft::cli {
namespace {

struct RunArguments : ModelArguments {
  std::string output_dir;
};

struct Summary {
  double min = INFINITY, max = -INFINITY, sum = 0;
  std::int64_t count = 0, nans = 0;
};

Summary summarise(const Tensor& t) {
  Summary s;
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const double x = is_float(t.dtype()) ? t.f64(i) : static_cast<double>(t.i64(i));
    if (std::isnan(x)) {
      ++s.nans;
      continue;
    }
    s.min = std::min(s.min, x);
    s.max = std::max(s.max, x);
    s.sum += x;
    ++s.count;
  }
  return s;
}

std::vector<std::string> row_of(const std::string& name, const Tensor& t) {
  std::vector<std::string> row{name, weft::name(t.dtype()), shape_str(t.shape())};
  if (is_string(t.dtype()) || is_complex(t.dtype())) {
    row.insert(row.end(), {"-", "-", "-", "-"});
    return row;
  }
  const Summary s = summarise(t);
  if (s.count == 0) {
    row.insert(row.end(), {"-", "-", "-"});
  } else {
    row.insert(row.end(), {number_text(s.min), number_text(s.sum / s.count), number_text(s.max)});
  }
  row.push_back(std::to_string(s.nans));
  return row;
}

// Characters that are safe in file names everywhere; names that become equal get numbers.
class FileNames {
 public:
  std::string of(const std::string& name) {
    std::string safe;
    for (const char c : name) {
      const bool keep = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
      safe += keep ? c : '_';
    }
    if (safe.empty() || safe[0] == '.') safe.insert(0, "_");
    if (safe.size() > 200) safe.resize(200);
    std::string unique = safe;
    for (int k = 1; !used_.insert(unique).second; ++k) unique = fmt::format("{}_{}", safe, k);
    return unique + ".npy";
  }

 private:
  std::set<std::string> used_;
};

Result<void> write_outputs(const std::string& folder, const Model& model, const std::vector<Tensor>& outputs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return user_error("file", "cannot make the folder: " + error.message()).at(folder);
  FileNames names;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    WEFT_TRY(write_npy((std::filesystem::path(folder) / names.of(model.outputs()[i].name)).string(), outputs[i]));
  }
  return {};
}

// Is not taken apart when the process ends, which takes milliseconds.
template <class T>
const T& kept(T value) {
  static const T* only = nullptr;
  only = new T(std::move(value));
  return *only;
}

Result<int> run(const RunArguments& arguments) {
  const Model& model = kept(WEFT_TRY(load_model(arguments)));
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  const Program& program = kept(WEFT_TRY(compile_model(model, arguments, inputs)));
  auto progress = std::make_unique<Progress>("running");
  const std::vector<Tensor> outputs = WEFT_TRY(program.run(inputs));
  progress.reset();
  Table table({"output", "dtype", "shape", "min", "mean", "max", "NaN"});
  for (std::size_t i = 0; i < outputs.size(); ++i) table.row(row_of(model.outputs()[i].name, outputs[i]));
  print(table);
  if (!arguments.output_dir.empty()) WEFT_TRY(write_outputs(arguments.output_dir, model, outputs));
  return kSuccess;
}

}  // namespace

Action add_run(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  add_run_options(app, *arguments);
  add_target_option(app, arguments->target, arguments->code);
  add_option(app, "--output-dir", arguments->output_dir, "a folder that receives one .npy file per output");
  return [arguments] { return run(*arguments); };
}

}  // namespace weft::cli
