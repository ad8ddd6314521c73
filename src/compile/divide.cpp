#include "compile/divide.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/log.h"
#include "compile/placement.h"
#include "cost/cost.h"

namespace weft::compiler {
namespace {

using graph::ValueId;
using loop::Step;

class Divider {
 public:
  Divider(const graph::Graph& g, const loop::Partition& partition, const std::vector<const loop::Group*>& groups, KernelSet& here,
          KernelSet& device, const Options& options)
      : g_(g), partition_(partition), groups_(groups), here_(here), device_(device), options_(options) {}

  Result<Division> run() {
    WEFT_TRY(here_.consider(groups_, g_.facts));
    WEFT_TRY(device_.consider(groups_, g_.facts));
    collect_times();
    collect_values();
    const Placement best = place(times_, values_);
    Division result;
    result.on_device = best.on_device;
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      if (options_.on_device) result.on_device[k] = refusals_[k].empty() && options_.on_device(*groups_[k]);
      result.why.push_back(why(k));
    }
    result.summary = summary(result);
    log("placement", fmt::format("@{}: {}", g_.name, result.summary));
    return result;
  }

 private:
  void collect_times() {
    for (const loop::Group* group : groups_) {
      const auto taken = device_.takes(*group);
      refusals_.push_back(taken.ok() ? "" : taken.error().message());
      times_.push_back({here_.modelled_us(*group), taken.ok() ? device_.modelled_us(*group) : std::numeric_limits<double>::infinity()});
    }
  }

  // ---- what kernels hand on ----

  Handed& value(ValueId v, DType dtype, const Shape& shape) {
    const auto [it, fresh] = numbers_.try_emplace(v, values_.size());
    if (fresh) {
      constexpr double kBitsPerUs = 8e3;  // of one GB/s
      const double bits = cost::estimate(product(shape), g_.facts) * weft::bits(dtype);
      const Machine& machine = device_.machine();
      values_.emplace_back().copy_us = machine.copy_us + bits / (kBitsPerUs * machine.link_gbytes);
    }
    return values_[it->second];
  }

  // Null: a constant, which is copied once and not by every run.
  Handed* value(ValueId v) {
    if (loop::is_scratch(v)) {
      const loop::Scratch& scratch = partition_.scratch[loop::scratch_number(v)];
      return &value(v, scratch.dtype, scratch.shape);
    }
    while (partition_.alias[v] != v) v = partition_.alias[v];
    return g_.constant(v) ? nullptr : &value(v, g_.type(v).dtype, g_.type(v).shape);
  }

  void collect_values() {
    const auto written_here = [&](const std::vector<ValueId>& of) {
      for (ValueId v : of) {
        if (Handed* handed = value(v)) handed->written_here = true;
      }
    };
    const auto read_here = [&](const std::vector<ValueId>& of) {
      for (ValueId v : of) {
        if (Handed* handed = value(v)) handed->read_here = true;
      }
    };
    written_here(g_.inputs());
    int kernel = 0;
    for (const Step& step : partition_.steps) {
      if (step.kind == Step::Kind::Kernel) {
        add_kernel(step, kernel++);
      } else {
        read_here(g_.node(step.node).operands);
        written_here(g_.node(step.node).results);
      }
    }
    read_here(g_.outputs());
  }

  void add_kernel(const Step& step, int kernel) {
    for (std::size_t p = 0; p < step.args.size(); ++p) {
      if (step.args[p] == loop::kOnChip) continue;
      Handed* handed = value(step.args[p]);
      if (!handed) continue;
      const loop::Role role = step.group.params[p].role;
      const bool is_first = handed->writers.empty() && !handed->written_here;
      if (role != loop::Role::Input) handed->writers.push_back(kernel);
      if (role == loop::Role::Input || !is_first) handed->readers.push_back(kernel);
    }
  }

  // ---- for people ----

  std::string why(std::size_t k) const {
    if (!refusals_[k].empty()) return "the device does not take it: " + refusals_[k];
    return fmt::format("modelled {:.1f} us on the device, {:.1f} us on the CPU", times_[k].device, times_[k].here);
  }

  std::string summary(const Division& division) const {
    const auto text = [&](std::vector<bool> on_device) {
      const auto count = std::count(on_device.begin(), on_device.end(), true);
      const Placement p = priced(std::move(on_device), times_, values_);
      return fmt::format("{} of {} kernels on {}, {} copies: modelled {:.1f} us, {:.1f} of them for copies", count, times_.size(),
                         options_.target->machine().name, p.copies, p.us, p.copies_us);
    };
    return fmt::format("{}; all there {:.1f} us; all on the CPU {:.1f} us", text(division.on_device),
                       priced(std::vector<bool>(times_.size(), true), times_, values_).us,
                       priced(std::vector<bool>(times_.size(), false), times_, values_).us);
  }

  const graph::Graph& g_;
  const loop::Partition& partition_;
  const std::vector<const loop::Group*>& groups_;
  KernelSet& here_;
  KernelSet& device_;
  const Options& options_;
  std::vector<KernelTimes> times_;       // by kernel
  std::vector<std::string> refusals_;    // by kernel: why the device does not take it, or ""
  std::map<ValueId, std::size_t> numbers_;
  std::vector<Handed> values_;
};

}  // namespace

Result<Division> divide(const graph::Graph& graph, const loop::Partition& partition, const std::vector<const loop::Group*>& groups,
                        KernelSet& here, KernelSet& device, const Options& options) {
  return Divider(graph, partition, groups, here, device, options).run();
}

}  // namespace weft::compiler
