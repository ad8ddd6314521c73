#include "cli/isolate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace weft::cli {
namespace {

using Time = std::chrono::steady_clock::time_point;

Time now() { return std::chrono::steady_clock::now(); }

// A child's result and its stderr go to files in memory, which never block a writer.
struct Child {
  int item = -1;
  pid_t pid = -1;
  int result = -1, log = -1;
  Time start;
  bool timed_out = false;
};

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

[[noreturn]] void be_child(const Child& child, const Limits& limits, const std::function<std::string(int)>& work) {
  setpgid(0, 0);
  if (limits.memory > 0) {
    const rlimit memory{static_cast<rlim_t>(limits.memory), static_cast<rlim_t>(limits.memory)};
    setrlimit(RLIMIT_AS, &memory);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (const int null = open("/dev/null", O_RDWR); null >= 0) {
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
  }
  dup2(child.log, STDERR_FILENO);
  write_all(child.result, work(child.item));
  _exit(0);
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

Child start(int item, const Limits& limits, const std::function<std::string(int)>& work) {
  Child child;
  child.item = item;
  child.result = memfd_create("result", MFD_CLOEXEC);
  child.log = memfd_create("log", MFD_CLOEXEC);
  child.start = now();
  child.pid = fork();
  if (child.pid == 0) be_child(child, limits, work);
  if (child.pid > 0) setpgid(child.pid, child.pid);  // also here, so that a kill never comes too early
  return child;
}

Outcome finish(const Child& child, int status, const Limits& limits) {
  Outcome outcome;
  outcome.seconds = std::chrono::duration<double>(now() - child.start).count();
  if (child.timed_out) {
    outcome.text = fmt::format("no result after {} s", limits.seconds);
  } else if (WIFSIGNALED(status)) {
    outcome.text = fmt::format("killed by SIG{}", sigabbrev_np(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    outcome.text = fmt::format("ended with exit code {}", WEXITSTATUS(status));
  } else {
    outcome.finished = true;
    outcome.text = read_all(child.result);
  }
  if (!outcome.finished) {
    if (const std::string line = last_line(read_all(child.log)); !line.empty()) outcome.text += ": " + line;
  }
  close(child.result);
  close(child.log);
  return outcome;
}

}  // namespace

void run_isolated(int count, int jobs, const Limits& limits, const std::function<std::string(int)>& work,
                  const std::function<void(int, const Outcome&)>& done) {
  std::vector<Child> running;
  int next = 0;
  while (next < count || !running.empty()) {
    while (next < count && static_cast<int>(running.size()) < jobs) {
      Child child = start(next++, limits, work);
      if (child.pid > 0) {
        running.push_back(child);
        continue;
      }
      close(child.result);
      close(child.log);
      done(child.item, {false, fmt::format("no process could be made: {}", std::strerror(errno)), 0});
    }
    bool ended = false;
    for (std::size_t k = 0; k < running.size();) {
      Child& child = running[k];
      int status = 0;
      if (waitpid(child.pid, &status, WNOHANG) == child.pid) {
        done(child.item, finish(child, status, limits));
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(k));
        ended = true;
        continue;
      }
      if (!child.timed_out && now() - child.start > std::chrono::seconds(limits.seconds)) {
        child.timed_out = true;
        kill(-child.pid, SIGKILL);
      }
      ++k;
    }
    if (!ended && !running.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace weft::cli
