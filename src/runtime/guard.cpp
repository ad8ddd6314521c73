#include "runtime/guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/knobs.h"
#include "runtime/memory.h"

namespace weft::runtime {

namespace {

std::mutex one_launch;
std::atomic<const char*> running{nullptr};  // the name of the launched kernel

// Only what a signal handler may call. The fault comes again when it returns, and ends the process.
void report(int signal) {
  if (const char* kernel = running) {
    for (const char* part : {"weft: kernel ", kernel, " touched memory outside its buffers, or wrote what it may only read\n"}) {
      if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
    }
  }
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
}

void report_faults() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = report;
    return sigaction(SIGSEGV, &action, nullptr) == 0;
  }();
  (void)installed;
}

}  // namespace

std::optional<GuardSide> guard_side() {
  static const std::optional<GuardSide> side = []() -> std::optional<GuardSide> {
    const std::string& text = knob_text(Knob::Guard);
    if (text == "start") return GuardSide::Start;
    if (text == "end") return GuardSide::End;
    return std::nullopt;
  }();
  return side;
}

GuardedPages::GuardedPages(std::int64_t bytes, GuardSide side) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto size = static_cast<std::size_t>(bytes), inner = (size + page - 1) / page * page;
  void* pages = mmap(nullptr, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  pages_ = static_cast<std::byte*>(pages);
  mapped_ = inner + 2 * page;
  data_ = pages_ + page + (side == GuardSide::End ? inner - size : 0);
  if (inner > 0 && mprotect(pages_ + page, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(pages_, mapped_);
    throw std::bad_alloc();
  }
}

GuardedPages::~GuardedPages() {
  if (pages_ != nullptr) munmap(pages_, mapped_);
}

GuardedPages::GuardedPages(GuardedPages&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)), mapped_(other.mapped_), data_(other.data_) {}

void GuardedPages::make_read_only() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (mapped_ > 2 * page) mprotect(pages_ + page, mapped_ - 2 * page, PROT_READ);
}

GuardedLaunch::GuardedLaunch(const std::string& kernel, const std::vector<GuardedBuffer>& buffers, std::int64_t scratch,
                             int workers, GuardSide side) {
  std::vector<std::size_t> region_of;
  std::vector<GuardedBuffer> places;
  for (const GuardedBuffer& b : buffers) {
    const auto same = std::find_if(places.begin(), places.end(), [&](const GuardedBuffer& p) { return p.at == b.at; });
    region_of.push_back(static_cast<std::size_t>(same - places.begin()));
    if (same == places.end()) {
      places.push_back(b);
    } else {
      same->bytes = std::max(same->bytes, b.bytes);
      same->written = same->written || b.written;
    }
  }
  for (const GuardedBuffer& p : places) {
    regions_.push_back({p, GuardedPages(p.bytes, side)});
    if (p.bytes > 0) std::memcpy(regions_.back().pages.data(), p.at, static_cast<std::size_t>(p.bytes));
    if (!p.written) regions_.back().pages.make_read_only();
  }
  for (const std::size_t r : region_of) pointers_.push_back(regions_[r].pages.data());
  for (int w = 0; w < workers; ++w) scratch_.emplace_back(aligned(scratch), side);
  report_faults();
  one_launch.lock();
  running = kernel.c_str();
}

GuardedLaunch::~GuardedLaunch() {
  running = nullptr;
  one_launch.unlock();
  for (const Region& r : regions_) {
    if (r.buffer.written && r.buffer.bytes > 0) {
      std::memcpy(r.buffer.at, r.pages.data(), static_cast<std::size_t>(r.buffer.bytes));
    }
  }
}

}  // namespace weft::runtime
