#include "kernel/interpret/copies.h"

#include <algorithm>

namespace weft::kernel {

std::vector<CopyQueues::Copy> CopyQueues::finish(int thread, std::int64_t left) {
  Queue& queue = of(thread);
  const auto end = std::find_if(queue.copies.begin(), queue.copies.end(), [&](const Asked& a) { return a.group >= queue.groups - left; });
  std::vector<Copy> done;
  for (auto it = queue.copies.begin(); it != end; ++it) done.push_back(it->copy);
  queue.copies.erase(queue.copies.begin(), end);
  return done;
}

int CopyQueues::pending() const {
  std::size_t n = 0;
  for (const Queue& queue : queues_) n += queue.copies.size();
  return static_cast<int>(n);
}

}  // namespace weft::kernel
