// Work that runs beside those who asked for it: what was asked for and not waited for, in groups.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::kernel {

template <class Work>
class WorkQueue {
 public:
  void add(Work work) { asked_.push_back({std::move(work), groups_}); }
  void commit() { ++groups_; }
  // What all but the last `left` groups asked for, in the order of the program; it is done now.
  std::vector<Work> finish(std::int64_t left) {
    const auto end = std::find_if(asked_.begin(), asked_.end(), [&](const Asked& a) { return a.group >= groups_ - left; });
    std::vector<Work> done;
    for (auto it = asked_.begin(); it != end; ++it) done.push_back(std::move(it->work));
    asked_.erase(asked_.begin(), end);
    return done;
  }
  std::size_t pending() const { return asked_.size(); }

 private:
  struct Asked {
    Work work;
    std::int64_t group = 0;
  };
  std::vector<Asked> asked_;
  std::int64_t groups_ = 0;  // that are complete
};

}  // namespace weft::kernel
