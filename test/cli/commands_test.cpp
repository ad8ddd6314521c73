// Runs the `weft` binary as a user does: exit codes, messages, what is printed and written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "base/npy.h"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kCases = WEFT_SOURCE_DIR "/test/cases/";
const std::string kRelu = kCases + "relu_sign_nan/model.onnx";
const std::string kDynamic = kCases + "prelu_slope_right_aligned_dynamic/model.onnx";

struct Ran {
  int code = -1;
  std::string out, err;
};

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Commands : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weft_cli_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Ran weft(const std::string& arguments, const std::string& cache = "off") {
    const std::string line = "WEFT_CACHE_DIR='" + cache + "' '" WEFT_BINARY "' " + arguments + " >'" + (folder_ / "out").string() +
                             "' 2>'" + (folder_ / "err").string() + "' </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(folder_ / "out"), slurp(folder_ / "err")};
  }

  void expect_usage_error(const std::string& arguments, const std::string& message) {
    const Ran ran = weft(arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, HasSubstr(message)) << arguments;
    EXPECT_EQ(ran.err.find('\n'), ran.err.size() - 1) << ran.err;
  }

  fs::path folder_;
};

TEST_F(Commands, CompileWritesObjectsForOtherCpus) {
  const std::string file = (folder_ / "model.o").string();
  for (const char* model : {"attention", "control", "mlp"}) {
    for (const char* cpu : {"x86-64-v2", "x86-64-v4", "cortex-a76", "neoverse-v1", "rv64gcv", "rv64gcv_zvl256b"}) {
      const Ran made = weft(std::string("compile " WEFT_SOURCE_DIR "/test/models/") + model + ".onnx --emit object --cpu " + cpu + " -o " + file);
      ASSERT_EQ(made.code, 0) << model << cpu << made.err;
      const Ran said = weft("info " + file);
      EXPECT_EQ(said.code, 0) << said.err;
      EXPECT_THAT(said.out, HasSubstr(std::string("machine code for ") + cpu));
    }
  }
  EXPECT_THAT(weft("info " + file).out, AllOf(HasSubstr("zvl256b"), HasSubstr("runs here   no"), HasSubstr("dot_")));
  const Ran listed = weft("compile " + kRelu + " --emit asm --cpu neoverse-v1 -o " + file);
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(slurp(file), HasSubstr("ptrue"));
  EXPECT_EQ(weft("compile " + kRelu + " --cpu rv64gcv").code, 0);
  expect_usage_error("compile " + kRelu + " --emit object", "-o FILE");
  expect_usage_error("compile " + kRelu + " -o " + file, "--emit object");
  expect_usage_error("compile " + kRelu + " --cpu cortex-a77", "cortex-a76");
  const Ran refused = weft("run " + kRelu + " --cpu cortex-a76");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("wrong-cpu"), HasSubstr("aarch64")));
}

TEST_F(Commands, UsageErrorsAreOneLineWithASuggestion) {
  expect_usage_error("", "'weft help'");
  expect_usage_error("rnu x", "did you mean 'run'?");
  expect_usage_error("help rnu", "did you mean 'run'?");
  expect_usage_error("run", "model");
  expect_usage_error("run --traget ref " + kRelu, "did you mean '--target'?");
  expect_usage_error("run " + kRelu + "x", "did you mean '" + kRelu + "'?");
  expect_usage_error("run " + kCases, "a folder");
  expect_usage_error("run " + kRelu + " --target gpu", "there is no such target");
  expect_usage_error("run " + kRelu + " --target cpu+", "a target has no name");
  expect_usage_error("run " + kRelu + " --target sim:opencl+gpu", "there is no such target");
  expect_usage_error("run " + kRelu + " --input y=zeros", "there is no such input");
  expect_usage_error("run " + kRelu + " --input x=nonsense", "range:LO:HI");
  expect_usage_error("run " + kRelu + " --input x=missing.npy", "there is no such file");
  expect_usage_error("run " + kDynamic + " --dim nosuch=3", "there is no such named dimension");
  expect_usage_error("run " + kDynamic + " --dim x", "NAME=SIZE");
  expect_usage_error("run " + kRelu + " --off simplyfy", "did you mean 'simplify'?");
  expect_usage_error("compile " + kRelu + " --emit krenel", "did you mean 'kernel'?");
  expect_usage_error("conformance nosuchfolder", "there is no such folder");
  expect_usage_error("conformance " + kCases + "relu_sign_nan --filter nosuchcase", "no case's name contains this");
  expect_usage_error("conformance --sweep --filter nosuchcase", "no case's name contains this");
}

TEST_F(Commands, TheInterpreterGoesWithNothing) {
  const auto refused = [&](const std::string& options) {
    const Ran ran = weft("run " + kRelu + options);
    EXPECT_EQ(ran.code, 1) << options;
    return ran.err;
  };
  EXPECT_THAT(refused(" --target ref+cpu"), HasSubstr("error[target]: the interpreter"));
  EXPECT_THAT(refused(" --target ref --code text"), HasSubstr("error[unknown-code]"));
}

TEST_F(Commands, HelpAndVersion) {
  EXPECT_EQ(weft("help --help").out, weft("help").out);
  EXPECT_THAT(weft("--version").out, ContainsRegex("weft [0-9]+\\.[0-9]+"));
  const Ran help = weft("help");
  EXPECT_EQ(help.code, 0);
  for (const char* command : {"run", "verify", "check", "info", "bench", "explain", "compile", "opt", "conformance", "doctor"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Ran one = weft(std::string("help ") + command);
    EXPECT_EQ(one.code, 0) << command;
    EXPECT_THAT(one.out, HasSubstr("--help")) << command;
  }
}

TEST_F(Commands, NamesFromFilesReachNoTerminalAsCommands) {
  std::string model = slurp(kRelu);
  const std::size_t at = model.find("Relu");
  ASSERT_NE(at, std::string::npos);
  std::ofstream(folder_ / "evil.onnx", std::ios::binary) << model.replace(at, 4, "\x1b[2J");
  const Ran ran = weft("check " + (folder_ / "evil.onnx").string());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out + ran.err, AllOf(HasSubstr("?[2J"), testing::Not(HasSubstr("\x1b"))));
}

TEST_F(Commands, ModelErrorsEndWithOne) {
  std::ofstream(folder_ / "bad.onnx") << "this is no model";
  const Ran ran = weft("run " + (folder_ / "bad.onnx").string());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("weft: error["));
}

TEST_F(Commands, RunPrintsATableAndWritesOutputs) {
  for (const char* target : {"ref", "cpu"}) {
    const Ran ran = weft("run " + kRelu + " --target " + target + " --output-dir " + (folder_ / target).string());
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("dtype"), HasSubstr("f32")));
  }
  const auto ref = weft::read_npy((folder_ / "ref" / "y.npy").string());
  const auto cpu = weft::read_npy((folder_ / "cpu" / "y.npy").string());
  ASSERT_TRUE(ref.ok() && cpu.ok());
  EXPECT_EQ(ref->shape(), cpu->shape());
  EXPECT_EQ(ref->content_hash(), cpu->content_hash());
}

TEST_F(Commands, InputsComeFromFiles) {
  ASSERT_EQ(weft("run " + kRelu + " --target ref --input x=ones --output-dir " + folder_.string()).code, 0);
  const Ran again = weft("run " + kRelu + " --target ref --input x=" + (folder_ / "y.npy").string());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, ContainsRegex(" 1 +1 +1 +0"));
}

TEST_F(Commands, ReportsOfAModel) {
  EXPECT_THAT(weft("check " + kRelu).out, HasSubstr("nothing is missing"));
  EXPECT_THAT(weft("info " + kRelu).out, AllOf(HasSubstr("opsets"), HasSubstr("Relu"), HasSubstr("FLOPs")));
  EXPECT_THAT(weft("verify " + kRelu).out, HasSubstr("ok"));
  EXPECT_THAT(weft("bench " + kRelu + " --seconds 0 --json").out, AllOf(HasSubstr("\"median_ms\""), HasSubstr("\"arena_bytes\"")));
  EXPECT_THAT(weft("explain " + kRelu).out, AllOf(HasSubstr("kernel"), HasSubstr("Relu")));
  EXPECT_THAT(weft("opt --list").out, HasSubstr("simplify"));
  EXPECT_THAT(weft("opt " + kRelu).out, HasSubstr("graph @"));
  EXPECT_THAT(weft("doctor").out, AllOf(HasSubstr("LLVM"), HasSubstr("threads"), HasSubstr("WEFT_CACHE_DIR")));
  for (const char* stage : {"graph", "loop", "tile", "kernel", "llvm", "asm"}) {
    const Ran ran = weft("compile " + kRelu + " --emit " + stage);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_GT(ran.out.size(), 20u) << stage;
  }
}

TEST_F(Commands, ExplainLooksIntoBodies) {
  const std::string loop = kCases + "loop_ends_by_condition/model.onnx";
  EXPECT_THAT(weft("explain " + loop).out, AllOf(HasSubstr("loop"), HasSubstr("body:"), HasSubstr("no kernel: loop")));
  EXPECT_THAT(weft("explain " + loop + " --json").out, AllOf(HasSubstr("\"body\": \"body\""), HasSubstr("\"runs\"")));
  EXPECT_THAT(weft("explain " + kRelu + " --schedule").out, AllOf(HasSubstr("loops"), HasSubstr("modelled"), HasSubstr("any size"), HasSubstr("compute"), HasSubstr("chosen")));
  EXPECT_THAT(weft("explain " + kRelu + " --schedule --json").out, HasSubstr("\"modelled_us\""));
}

TEST_F(Commands, AnInputIsANumber) {
  EXPECT_THAT(weft("run " + kRelu + " --input x=2.5").out, ContainsRegex(" 2.5 +2.5 +2.5 +0"));
}

// Without a limit of address space, which AddressSanitizer would pass by itself.
TEST_F(Commands, ConformanceCounts) {
  const Ran good = weft("conformance " + kCases + " --memory 0 --filter relu_sign_nan --csv " + (folder_ / "all.csv").string());
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  EXPECT_THAT(good.out, ContainsRegex("[0-9]+ passed, 0 failed, [0-9]+ skipped\n$"));
  EXPECT_THAT(slurp(folder_ / "all.csv"), HasSubstr("\"relu_sign_nan\",passed,"));

  const fs::path wrong = folder_ / "suite" / "wrong";
  fs::create_directories(fs::path(wrong).parent_path());
  fs::copy(kCases + "relu_sign_nan", wrong, fs::copy_options::recursive);
  fs::copy(wrong / "test_data_set_0" / "input_0.pb", wrong / "test_data_set_0" / "output_0.pb",
           fs::copy_options::overwrite_existing);
  const Ran bad = weft("conformance --memory 0 " + (folder_ / "suite").string());
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.out, AllOf(HasSubstr("wrong: output 'y'"), HasSubstr("0 passed, 1 failed, 0 skipped\n")));
}

// No tolerance at all makes any rounding a difference.
TEST_F(Commands, DiffWritesACaseThatFailsByItself) {
  const std::string none = " --rtol 0 --atol 0 --output-dir " + (folder_ / "part").string();
  EXPECT_EQ(weft("diff " + kRelu + none).code, 0);
  EXPECT_FALSE(fs::exists(folder_ / "part"));
  for (const char* name : {"matmul_broadcast_and_vectors", "conv_same_dilated"}) {
    SCOPED_TRACE(name);
    const Ran diff = weft("diff " + kCases + name + "/model.onnx" + none);
    EXPECT_EQ(diff.code, 1) << diff.err;
    EXPECT_THAT(diff.out, AllOf(HasSubstr("first wrong value"), ContainsRegex("reproducer in .*: 1 of [0-9]+ nodes")));
    const std::string part = (folder_ / "part" / "model.onnx").string();
    EXPECT_EQ(weft("check " + part).code, 0);
    EXPECT_THAT(weft("conformance " + (folder_ / "part").string()).out, HasSubstr("0 passed, 1 failed, 0 skipped\n"));
    EXPECT_EQ(weft("verify " + part).code, 0);
    fs::remove_all(folder_ / "part");
  }
}

TEST_F(Commands, KernelsAreTimedBesideTheModel) {
  EXPECT_THAT(weft("bench --kernels --seconds 0.1 " + kRelu).out, AllOf(HasSubstr("modelled"), HasSubstr("pointwise")));
  EXPECT_THAT(weft("bench --kernels --json --seconds 0.1 " + kRelu).out,
              AllOf(HasSubstr("\"modelled_us\""), HasSubstr("\"best_us\""), HasSubstr("\"dispatch\"")));
}

TEST_F(Commands, TuneNeedsAPlaceForWhatItFinds) {
  expect_usage_error("tune " + kRelu, "there is no place to keep what is found");
  expect_usage_error("tune --seconds 0 " + kRelu, "--seconds");
  expect_usage_error("tune " + kRelu + "x", "did you mean '" + kRelu + "'?");
}

TEST_F(Commands, TunedSchedulesGoOnAndDamagedOnesAreAsNone) {
  const std::string cache = (folder_ / "cache").string(), model = kCases + "matmul_broadcast_and_vectors_dynamic/model.onnx";
  const Ran first = weft("tune --seconds 1 " + model, cache);
  EXPECT_EQ(first.code, 0) << first.err;
  const auto tried = [](const std::string& out) {
    std::smatch found;
    return std::regex_search(out, found, std::regex("([0-9]+) candidates tried")) ? std::stoi(found[1]) : -1;
  };
  EXPECT_GT(tried(first.out), 0) << first.out;
  EXPECT_GE(tried(weft("tune --seconds 1 " + model, cache).out), tried(first.out));
  const auto files = [&] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(fs::path(cache) / "tuned")) found.push_back(entry.path());
    return found;
  }();
  EXPECT_FALSE(files.empty());
  for (const fs::path& file : files) std::ofstream(file, std::ios::binary | std::ios::trunc) << "no entry";
  EXPECT_EQ(weft("explain --schedule " + model, cache).code, 0);
  EXPECT_EQ(weft("run --no-tuned " + model, cache).code, 0);
  EXPECT_THAT(weft("tune --seconds 1 " + model, cache).out, HasSubstr("candidates tried"));
}

}  // namespace
