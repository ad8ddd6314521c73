// Models and programs that come from the compile cache.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "api/state.h"
#include "runtime/cache.h"
#include "weft/weft.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

const char* kModel = WEFT_SOURCE_DIR "/test/api/four_rows.onnx";  // the same of 4 rows, with other weights
const char* kOpen = WEFT_SOURCE_DIR "/test/api/rows.onnx";  // x[n, 8] times weights

// The cache's folder is read once: one for the whole program, set before that.
const fs::path kFolder = [] {
  const fs::path folder = fs::temp_directory_path() / ("weft-stored-" + std::to_string(getpid()));
  setenv("WEFT_CACHE_DIR", folder.c_str(), 1);
  return folder;
}();

class Stored : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(kFolder); }
  void TearDown() override { fs::remove_all(kFolder); }
};

std::vector<Tensor> inputs_of(const Program& program, std::int64_t n) {
  std::vector<Tensor> inputs;
  for (const Port& port : program.inputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& d : port.shape) shape.push_back(d.is_const() ? d.value() : n);
    Tensor t = Tensor::zeros(port.dtype, shape).value();
    for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, static_cast<double>(i % 17) * 0.37 - 2);
    inputs.push_back(t);
  }
  return inputs;
}

std::vector<char> bits_of(const std::vector<Tensor>& tensors) {
  std::vector<char> bytes;
  for (const Tensor& t : tensors) {
    const char* data = static_cast<const char*>(t.data());
    bytes.insert(bytes.end(), data, data + t.byte_size());
  }
  return bytes;
}

struct Made {
  Program program;
  std::vector<char> result;
  bool imported = false;  // the file's graph was read
};

Made make(const char* path, std::int64_t n = 4, const CompileOptions& options = {}) {
  const Model model = load(path).value();
  Made made{compile(model, options).value(), {}, false};
  made.result = bits_of(made.program.run(inputs_of(made.program, n)).value());
  made.imported = model.state->is_imported();
  return made;
}

std::vector<fs::path> entries(const std::string& kind) {
  std::vector<fs::path> found;
  for (const auto& file : fs::directory_iterator(kFolder)) {
    if (file.path().extension() == kind) found.push_back(file.path());
  }
  return found;
}

TEST_F(Stored, TheSecondTimeNothingIsReadOrCompiled) {
  const Made first = make(kModel), second = make(kModel);
  EXPECT_FALSE(first.program.stats().from_cache);
  EXPECT_TRUE(first.imported);
  EXPECT_TRUE(second.program.stats().from_cache);
  EXPECT_FALSE(second.imported);
  EXPECT_EQ(second.result, first.result);
  EXPECT_EQ(second.program.inputs().size(), first.program.inputs().size());
  EXPECT_EQ(second.program.inputs()[0].name, first.program.inputs()[0].name);
  EXPECT_EQ(second.program.stats().kernels, first.program.stats().kernels);
  const auto graph = compiled_graph(second.program, compiler_options({}).value());
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph::print(**graph), graph::print(*first.program.state->compiled.graph));
}

TEST_F(Stored, SizesThatWereNeverRunCompileTheirKernels) {
  const Made few = make(kOpen, 1);
  EXPECT_FALSE(few.program.stats().from_cache);
  for (const std::int64_t n : {1, 3, 40, 3}) {
    CompileOptions fresh;
    fresh.cache = false;
    const Made stored = make(kOpen, n), plain = make(kOpen, n, fresh);
    EXPECT_TRUE(stored.program.stats().from_cache);
    EXPECT_FALSE(plain.program.stats().from_cache);
    EXPECT_EQ(stored.result, plain.result) << n;
  }
  EXPECT_FALSE(make(kOpen, 40).imported) << "their code is stored too";
}

TEST_F(Stored, OptionsAndCpusHaveProgramsOfTheirOwn) {
  make(kModel);
  CompileOptions other;
  other.precision = "medium";
  EXPECT_TRUE(make(kModel, 4, other).imported);
  EXPECT_FALSE(make(kModel, 4, other).imported);
  other.precision = "highest";
  other.passes_off = {"cse"};
  EXPECT_TRUE(make(kModel, 4, other).imported);
  EXPECT_FALSE(make(kModel).imported);
  other = {};
  other.cpu = "x86-64";
  if (!compile(load(kModel).value(), other).ok()) GTEST_SKIP() << "this machine has no such level";
  const Made small = make(kModel, 4, other);
  EXPECT_TRUE(small.program.stats().from_cache);
  EXPECT_NE(small.program.state->compiled.plan->kernels[0].fn, nullptr);
  EXPECT_NE(entries(".map").size(), 1u);
}

TEST_F(Stored, DamagedEntriesAreMisses) {
  const Made first = make(kModel);
  for (const char* kind : {".map", ".o"}) {
    for (const fs::path& entry : entries(kind)) {
      for (const bool cut : {false, true}) {
        std::string bytes(fs::file_size(entry), 0);
        std::ifstream(entry, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        if (cut) bytes.resize(bytes.size() / 2);
        if (!cut) bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 0x40);
        std::ofstream(entry, std::ios::binary) << bytes;
        EXPECT_EQ(make(kModel).result, first.result) << entry;
      }
    }
  }
  for (const fs::path& entry : entries(".o")) fs::remove(entry);
  EXPECT_EQ(make(kModel).result, first.result) << "a plan without its code";
}

TEST_F(Stored, AFileThatChangesIsAnotherModel) {
  const fs::path copy = kFolder.string() + ".onnx";
  fs::copy_file(kModel, copy, fs::copy_options::overwrite_existing);
  make(copy.c_str());
  const Model stored = load(copy.string()).value();
  EXPECT_FALSE(stored.state->is_imported());
  std::ofstream(copy, std::ios::binary | std::ios::app) << std::string("\x3a\x00", 2);  // an empty graph field more
  EXPECT_THROW(stored.state->graph(), Error);
  fs::copy_file(kOpen, copy, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(make(copy.c_str()).program.stats().from_cache);
  fs::remove(copy);
}

TEST_F(Stored, WithoutTheCacheNothingIsWritten) {
  LoadOptions plain;
  plain.cache = false;
  CompileOptions options;
  options.cache = false;
  compile(load(kModel, plain).value(), options).value();
  EXPECT_FALSE(fs::exists(kFolder));
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(Stored, ProcessesShareEntries) {
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool same = true;
      const std::vector<char> wanted = make(kOpen, 5).result;
      for (int k = 0; k < 5; ++k) same = same && make(kOpen, 5).result == wanted;
      _exit(same ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_TRUE(make(kOpen, 5).program.stats().from_cache);
}
#endif

}  // namespace
}  // namespace weft
