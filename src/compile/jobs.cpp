#include "compile/jobs.h"

#include <atomic>
#include <optional>

#include "runtime/pool.h"

namespace weft::compiler {

namespace {

struct Queue {
  const std::vector<Job>& jobs;
  std::vector<std::optional<Error>> errors;
  std::atomic<std::size_t> next{0};

  // An invariant that fails must not end the process from a thread without a handler.
  void run_one(std::size_t k) {
    try {
      if (auto done = jobs[k](); !done.ok()) errors[k] = done.error();
    } catch (const Error& error) {
      errors[k] = error;
    } catch (const std::bad_alloc&) {
      errors[k] = user_error("out-of-memory", "not enough memory");
    } catch (const std::exception& error) {
      errors[k] = internal_error(error.what());
    }
  }
};

// The pool hands out ranges; jobs differ too much in size for that, so each thread takes the next one.
void take_jobs(void* context, std::int64_t, std::int64_t, int) {
  auto* queue = static_cast<Queue*>(context);
  while (true) {
    const std::size_t k = queue->next.fetch_add(1);
    if (k >= queue->jobs.size()) return;
    queue->run_one(k);
  }
}

}  // namespace

Result<void> run_jobs(const std::vector<Job>& jobs, int threads) {
  Queue queue{jobs, std::vector<std::optional<Error>>(jobs.size())};
  const auto takers = std::min<std::int64_t>(std::max(1, threads), static_cast<std::int64_t>(jobs.size()));
  runtime::parallel_for(takers, static_cast<int>(takers), take_jobs, &queue);
  for (auto& error : queue.errors) {
    if (error) return *error;
  }
  return {};
}

}  // namespace weft::compiler
