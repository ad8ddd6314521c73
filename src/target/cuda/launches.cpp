#include "target/cuda/launches.h"

#include <algorithm>

namespace weft::target::cuda {
namespace {

constexpr std::size_t kWorthGraph = 3;   // launches, below which a graph gains nothing
constexpr std::size_t kMostWaiting = 512;  // so that the device begins before a long sequence is complete
constexpr std::size_t kMostKnown = 32;

std::vector<void*> parameters_of(Launch& launch) {
  std::vector<void*> parameters;
  for (std::uint64_t& v : launch.values) parameters.push_back(&v);
  return parameters;
}

}  // namespace

Failed Launches::add(Launch launch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(std::move(launch));
  return waiting_.size() < kMostWaiting ? Failed() : flush_locked();
}

Failed Launches::flush() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return flush_locked();
}

Failed Launches::flush_locked() {
  std::vector<Launch> launches = std::move(waiting_);
  waiting_.clear();
  if (launches.size() < kWorthGraph) return one_by_one(launches);
  const auto known = std::find_if(known_.begin(), known_.end(), [&](const Sequence& s) { return s.launches == launches; });
  if (known == known_.end()) {
    known_.push_front({launches, nullptr});
    if (known_.size() > kMostKnown) {
      drop(known_.back());
      known_.pop_back();
    }
    return one_by_one(launches);
  }
  known_.splice(known_.begin(), known_, known);
  Sequence& sequence = known_.front();
  if (sequence.graph == nullptr) {
    if (const Failed failed = capture(sequence); failed.call != nullptr) return failed;
  }
  const Status status = driver_.GraphLaunch(sequence.graph, stream_);
  return status == kSuccess ? Failed() : Failed{"cuGraphLaunch", status};
}

Failed Launches::one_by_one(std::vector<Launch>& launches) {
  for (Launch& l : launches) {
    const Status status = driver_.LaunchKernel(l.kernel, l.grid, 1, 1, l.threads, 1, 1, 0, stream_, parameters_of(l).data(), nullptr);
    if (status != kSuccess) return {"cuLaunchKernel", status};
  }
  return {};
}

// Nodes one after the other: arena offsets are shared by values that are not alive at the same time.
Failed Launches::capture(Sequence& sequence) {
  Graph* graph = nullptr;
  if (const Status status = driver_.GraphCreate(&graph, 0); status != kSuccess) return {"cuGraphCreate", status};
  GraphNode* before = nullptr;
  Failed failed;
  for (Launch& l : sequence.launches) {
    std::vector<void*> parameters = parameters_of(l);
    const KernelNode node{l.kernel, l.grid, 1, 1, l.threads, 1, 1, 0, parameters.data(), nullptr, nullptr, nullptr};
    GraphNode* added = nullptr;
    const Status status = driver_.GraphAddKernelNode(&added, graph, before ? &before : nullptr, before ? 1 : 0, &node);
    if (status != kSuccess) {
      failed = {"cuGraphAddKernelNode", status};
      break;
    }
    before = added;
  }
  if (failed.call == nullptr) {
    const Status status = driver_.GraphInstantiate(&sequence.graph, graph, 0);
    if (status != kSuccess) failed = {"cuGraphInstantiateWithFlags", status}, sequence.graph = nullptr;
  }
  driver_.GraphDestroy(graph);
  return failed;
}

void Launches::drop(Sequence& sequence) {
  if (sequence.graph != nullptr) driver_.GraphExecDestroy(sequence.graph);
  sequence.graph = nullptr;
}

void Launches::forget(std::span<Kernel* const> kernels) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_one = [&](const Launch& l) { return std::find(kernels.begin(), kernels.end(), l.kernel) != kernels.end(); };
  std::erase_if(waiting_, is_one);
  known_.remove_if([&](Sequence& s) {
    const bool uses = std::any_of(s.launches.begin(), s.launches.end(), is_one);
    if (uses) drop(s);
    return uses;
  });
}

void Launches::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Sequence& s : known_) drop(s);
  known_.clear();
  waiting_.clear();
}

}  // namespace weft::target::cuda
