#include "cli/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <variant>

#include "runtime/residency.h"

namespace weft::cli {
namespace {

// Names a step; what it did is known from profiles.
StepWork describe(const runtime::Plan& plan, const runtime::PlanStep& step) {
  StepWork work;
  const auto set = [&](const char* kind, std::string name, const std::string& origin, const char* why) {
    work.kind = kind;
    work.name = std::move(name);
    if (!origin.empty()) work.origins = {origin};
    work.why = why;
  };
  if (const auto* launch = std::get_if<runtime::Launch>(&step)) {
    set("kernel", "", "", "");
    if (launch->info < 0) return work;
    const runtime::KernelInfo& info = plan.infos[launch->info];
    work.name = info.name;
    work.origins = info.origins;
    work.why = info.schedule;
    work.place = info.place;
    work.place_why = info.place_why;
  } else if (const auto* host = std::get_if<runtime::HostCall>(&step)) {
    set("host", host->op, host->origin, "a host op: the size of its result depends on data, or its values are no numbers");
  } else if (const auto* branch = std::get_if<runtime::BranchStep>(&step)) {
    set("branch", "if", branch->origin, "it runs one of two plans");
  } else if (const auto* loop = std::get_if<runtime::LoopStep>(&step)) {
    set("loop", loop->body->name, loop->origin, "it runs its body's plan as often as data says");
  } else if (const auto* scan = std::get_if<runtime::ScanStep>(&step)) {
    set("scan", scan->body->name, scan->origin, "it runs its body's plan for every slice");
  } else {
    set("copy", "", "", "an output that no kernel writes itself");
  }
  return work;
}

StepWork describe(const runtime::Plan& plan, const runtime::Transfer& copy, int depth) {
  const runtime::Slot& slot = plan.slots[copy.slot];
  StepWork work;
  work.depth = depth;
  work.kind = copy.to_device ? "upload" : "download";
  work.name = fmt::format("{}{}", name(slot.dtype), str(slot.shape));
  if (!slot.name.empty()) work.origins = {slot.name};
  work.why = "its time is that of the step that waits for it";
  return work;
}

struct Body {
  const char* name;
  const runtime::Plan* plan;
  bool stays = false;  // on the device
};

std::vector<Body> bodies_of(const runtime::PlanStep& step) {
  if (const auto* branch = std::get_if<runtime::BranchStep>(&step)) {
    return {{"then", branch->then_plan.get()}, {"else", branch->else_plan.get()}};
  }
  if (const auto* loop = std::get_if<runtime::LoopStep>(&step)) return {{"body", loop->body.get()}};
  if (const auto* scan = std::get_if<runtime::ScanStep>(&step)) return {{"body", scan->body.get(), runtime::staying(*scan).has_value()}};
  return {};
}

void collect(const Body& from, int depth, const std::vector<runtime::Profile>& profiles, std::vector<StepWork>& into) {
  const runtime::Plan& plan = *from.plan;
  const std::vector<runtime::Transfer> copies = runtime::transfers(plan, from.stays);
  auto copy = copies.begin();
  const auto add_copies = [&](std::size_t before) {
    for (; copy != copies.end() && copy->step == before; ++copy) into.push_back(describe(plan, *copy, depth));
  };
  for (const runtime::PlanStep& step : plan.steps) {
    add_copies(static_cast<std::size_t>(&step - plan.steps.data()));
    StepWork work = describe(plan, step);
    work.depth = depth;
    if (&step == &plan.steps.front()) work.body = from.name;
    std::vector<double> ms;
    for (const runtime::Profile& profile : profiles) {
      const auto it = profile.find(&step);
      if (it == profile.end()) continue;
      const runtime::StepProfile& did = it->second;
      ms.push_back(1e3 * did.seconds);
      work.runs = did.runs;
      work.bytes_compulsory = did.bytes_compulsory;
      work.bytes_moved = did.bytes_moved;
      work.flops = did.flops;
    }
    std::sort(ms.begin(), ms.end());
    if (!ms.empty()) work.ms = ms[ms.size() / 2], work.best_ms = ms.front();
    into.push_back(std::move(work));
    for (const Body& inner : bodies_of(step)) collect(inner, depth + 1, profiles, into);
  }
  add_copies(plan.steps.size());
}

template <class More>
Result<std::vector<StepWork>> profile_while(const runtime::Executable& executable, const std::vector<Tensor>& inputs, int threads,
                                            const More& more) {
  using Clock = std::chrono::steady_clock;
  std::vector<runtime::Profile> profiles;
  std::vector<Tensor> outputs;
  runtime::RunOptions options;
  options.threads = threads;
  WEFT_TRY(executable.run(inputs, outputs, options));
  const auto start = Clock::now();
  while (more(profiles.size(), std::chrono::duration<double>(Clock::now() - start).count())) {
    options.profile = &profiles.emplace_back();
    WEFT_TRY(executable.run(inputs, outputs, options));
  }
  std::vector<StepWork> steps;
  collect({"", &executable.plan()}, 0, profiles, steps);
  return steps;
}

}  // namespace

Result<std::vector<StepWork>> profile(const runtime::Executable& executable, const std::vector<Tensor>& inputs, int threads,
                                      int runs) {
  return profile_while(executable, inputs, threads, [&](std::size_t done, double) { return done < static_cast<std::size_t>(runs); });
}

Result<std::vector<StepWork>> profile_for(const runtime::Executable& executable, const std::vector<Tensor>& inputs, int threads,
                                          double seconds) {
  constexpr std::size_t kLeast = 5, kMost = 1000;
  return profile_while(executable, inputs, threads,
                       [&](std::size_t done, double passed) { return done < kLeast || (done < kMost && passed < seconds); });
}

std::vector<double> kernel_seconds(const runtime::Plan& plan, const runtime::Profile& profile) {
  std::vector<double> seconds;
  for (const runtime::PlanStep& step : plan.steps) {
    const auto it = profile.find(&step);
    if (std::holds_alternative<runtime::Launch>(step)) seconds.push_back(it == profile.end() ? 0 : it->second.seconds);
    for (const Body& inner : bodies_of(step)) {
      const std::vector<double> inside = kernel_seconds(*inner.plan, profile);
      seconds.insert(seconds.end(), inside.begin(), inside.end());
    }
  }
  return seconds;
}

StepWork total_of(const std::vector<StepWork>& steps) {
  StepWork total;
  for (const StepWork& step : steps) {
    total.bytes_compulsory += step.bytes_compulsory;
    total.bytes_moved += step.bytes_moved;
    total.flops += step.flops;
    if (step.depth == 0) total.ms += step.ms;
  }
  return total;
}

double weight_bytes(const runtime::Plan& plan) {
  std::set<const void*> counted;  // bodies share constants with what is around them
  const std::function<double(const runtime::Plan&)> count = [&](const runtime::Plan& p) {
    double bytes = 0;
    for (const Tensor& t : p.constants) bytes += counted.insert(t.data()).second ? static_cast<double>(t.byte_size()) : 0;
    for (const runtime::PlanStep& step : p.steps) {
      for (const Body& body : bodies_of(step)) bytes += count(*body.plan);
    }
    return bytes;
  };
  return count(plan);
}

}  // namespace weft::cli
