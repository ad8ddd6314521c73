// The check behind WEFT_GUARD: machine code that a kernel was compiled to is not instrumented by any sanitizer, so its
// buffers are moved between pages that nothing may touch. Slow: every launch copies what it reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::runtime {

enum class GuardSide : std::uint8_t {
  Start,  // buffers begin where a page does: what lies before them is caught
  End,    // they end where a page does: what lies behind them is caught
};
std::optional<GuardSide> guard_side();  // as WEFT_GUARD says

// Pages between two that may not be touched.
class GuardedPages {
 public:
  GuardedPages(std::int64_t bytes, GuardSide side);  // throws bad_alloc
  ~GuardedPages();
  GuardedPages(GuardedPages&& other) noexcept;
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  std::byte* data() const { return data_; }
  void make_read_only();

 private:
  std::byte* pages_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
};

struct GuardedBuffer {
  void* at = nullptr;
  std::int64_t bytes = 0;
  bool written = false;
};

// A launch's buffers and the on-chip memory of its workers, for as long as it runs; one launch at a time in the process.
// A touch outside them, or a write to what is only read, ends the process with a message that names the kernel.
class GuardedLaunch {
 public:
  GuardedLaunch(const std::string& kernel, const std::vector<GuardedBuffer>& buffers, std::int64_t scratch, int workers,
                GuardSide side);
  ~GuardedLaunch();  // what was written goes back
  GuardedLaunch(const GuardedLaunch&) = delete;
  GuardedLaunch& operator=(const GuardedLaunch&) = delete;

  void* const* buffers() const { return pointers_.data(); }
  void* scratch(int worker) const { return scratch_[static_cast<std::size_t>(worker)].data(); }

 private:
  struct Region {  // buffers at one place are one
    GuardedBuffer buffer;
    GuardedPages pages;
  };
  std::vector<Region> regions_;
  std::vector<void*> pointers_;
  std::vector<GuardedPages> scratch_;
};

}  // namespace weft::runtime
