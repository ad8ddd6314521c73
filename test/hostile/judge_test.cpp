#include "hostile/judge.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "api/state.h"

namespace weft::hostile {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // resident memory says nothing, and all takes longer
#else
constexpr bool kSanitized = false;
#endif

// What the child says, in memory that both see.
struct Report {
  std::size_t at, accepted, refused;
  std::size_t peak;      // bytes beyond what was there before
  bool internal, over;   // of file `at`: called our fault; took too much memory
  char text[1024];
};

std::size_t status_bytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::strtoul(line.c_str() + std::strlen(field), nullptr, 10) * 1024;
  }
  return 0;
}

Result<void> load_and_compile(const std::string& path, bool code) {
  return at_the_edge([&]() -> Result<void> {
    const Model model = WEFT_TRY(load(path));
    compiler::Options options;
    options.cache = false;
    options.jobs = 1;
    options.code = code;
    WEFT_TRY(compiler::compile(*model.state->graph(), options));
    return {};
  });
}

// One file; false ends the child, so that the parent takes note of a fault.
bool judge_one(const std::string& path, std::size_t size, const Limits& limits, Report& report) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
  const std::size_t before = status_bytes("VmRSS:");
  const bool code = limits.code_every > 0 && report.at % static_cast<std::size_t>(limits.code_every) == 0;
  const Result<void> done = load_and_compile(path, code);
  if (done.ok()) {
    ++report.accepted;
    return true;
  }
  ++report.refused;
  std::strncpy(report.text, done.error().what(), sizeof report.text - 1);
  const std::size_t peak = status_bytes("VmHWM:");
  report.peak = peak > before ? peak - before : 0;
  report.internal = done.error().kind() == ErrorKind::Internal;
  report.over = limits.memory && !kSanitized && report.peak > 2 * size + (std::size_t{64} << 20);
  return !report.internal && !report.over;
}

std::string fault(int status, const Report& r) {
  std::string text = "file " + std::to_string(r.at) + ": ";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) return text + "takes too long";
  if (r.internal) return text + r.text;
  if (r.over) return text + "refused only after " + std::to_string(r.peak >> 20) + " MiB: " + r.text;
  return text + "ends with status " + std::to_string(status);
}

// Of this process's own time: a busy machine is no fault.
void set_timer(unsigned seconds) {
  const itimerval timer{{0, 0}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft_hostile_XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return (std::filesystem::path(path_) / name).string(); }

 private:
  std::string path_;
};

}  // namespace

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Judged judge(std::size_t count, const std::function<std::string(std::size_t)>& bytes, const Limits& limits) {
  const Folder folder;
  const std::string path = folder.file("model.onnx");
  void* shared = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {};
  Report& report = *new (shared) Report{};
  Judged judged;
  while (report.at < count) {
    const pid_t child = fork();
    if (child == 0) {
      for (; report.at < count; ++report.at) {
        const std::string file = bytes(report.at);
        std::ofstream(path, std::ios::binary).write(file.data(), static_cast<std::streamsize>(file.size())).flush();
        set_timer(kSanitized ? 4 * limits.seconds : limits.seconds);
        if (!judge_one(path, file.size(), limits, report)) _exit(1);
      }
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) break;
    if (report.at == count) break;
    judged.faults.push_back(fault(status, report));
    if (const char* keep = std::getenv("HOSTILE_KEEP")) {  // for a look at what does the harm
      std::filesystem::copy_file(path, keep + ("/" + std::to_string(report.at)) + ".onnx",
                                 std::filesystem::copy_options::overwrite_existing);
    }
    report.internal = report.over = false;
    ++report.at;
  }
  judged.accepted = report.accepted;
  judged.refused = report.refused;
  judged.text = report.text;
  munmap(shared, sizeof(Report));
  return judged;
}

namespace {

TEST(Judge, TellsWhatCrashes) {
  const auto crash = [](std::size_t i) -> std::string {
    if (i == 1) std::abort();
    return "no model";
  };
  const Judged judged = judge(3, crash);
  EXPECT_EQ(judged.refused, 2u);
  ASSERT_EQ(judged.faults.size(), 1u);
  EXPECT_EQ(judged.faults[0].substr(0, 7), "file 1:");
  EXPECT_FALSE(judged.text.empty());
}

}  // namespace
}  // namespace weft::hostile
