// A plan as text, for people: slots, then steps in order; the plans of branches and bodies stand inside.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/residency.h"

namespace weft::runtime {

namespace {

const char* kind_name(Slot::Kind kind) {
  switch (kind) {
    case Slot::Kind::Input: return "input";
    case Slot::Kind::Output: return "output";
    case Slot::Kind::Constant: return "constant";
    case Slot::Kind::Temp: return "temp";
    case Slot::Kind::Dynamic: return "dynamic";
    case Slot::Kind::Alias: return "alias of";
  }
  return "";
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const Dim& d : shape) text += (text.empty() ? "" : ", ") + d.str();
  return text;
}

std::string list(const std::vector<SlotId>& slots) {
  std::string text;
  for (SlotId s : slots) text += fmt::format("{}s{}", text.empty() ? "" : ", ", s);
  return "(" + text + ")";
}

class Printer {
 public:
  explicit Printer(int depth) : indent_(static_cast<std::size_t>(depth) * 2, ' ') {}

  std::string plan(const Plan& p, bool stays = false) {
    line(fmt::format("plan @{} {{", p.name));
    indent_ += "  ";
    for (std::size_t i = 0; i < p.slots.size(); ++i) slot(i, p.slots[i]);
    const std::vector<Transfer> copies = transfers(p, stays);
    auto copy = copies.begin();
    const auto copies_before = [&](std::size_t step) {
      for (; copy != copies.end() && copy->step == step; ++copy) line(fmt::format("{} s{}", copy->to_device ? "upload" : "download", copy->slot));
    };
    for (std::size_t k = 0; k < p.steps.size(); ++k) {
      copies_before(k);
      std::visit([&](const auto& s) { this->step(p, s); }, p.steps[k]);
    }
    copies_before(p.steps.size());
    if (!p.placement.empty()) line("# " + p.placement);
    for (const Requirement& r : p.requirements) line(fmt::format("require {} == {}", r.left.str(), r.right.str()));
    line("return " + list(p.outputs));
    indent_.resize(indent_.size() - 2);
    line("}");
    return std::move(text_);
  }

 private:
  void line(const std::string& s) { text_ += indent_ + s + "\n"; }

  void slot(std::size_t number, const Slot& s) {
    const bool numbered = s.kind != Slot::Kind::Temp && s.kind != Slot::Kind::Dynamic;
    std::string text = fmt::format("s{} {}", number, kind_name(s.kind));
    if (numbered) text += fmt::format(" {}{}", s.kind == Slot::Kind::Alias ? "s" : "", s.index);
    if (!s.name.empty()) text += fmt::format(" \"{}\"", s.name);
    text += fmt::format(" : {}[{}]", weft::name(s.dtype), shape_text(s.shape));
    if (s.padded_elements > 0) text += fmt::format(" in {} elements", s.padded_elements);
    line(text);
  }

  void step(const Plan& p, const Launch& l) {
    std::string origins;
    if (l.info >= 0 && !p.infos[l.info].place.empty()) line(fmt::format("# {}: {}", p.infos[l.info].place, p.infos[l.info].place_why));
    if (l.info >= 0) origins = fmt::format("  # {}: {}", p.infos[l.info].name, fmt::join(p.infos[l.info].origins, ", "));
    line((l.on_device ? "launch on device " : "launch ") + list(l.buffers) + origins);
    for (const LaunchVariant& v : l.variants) {
      std::string text = v.guarded ? fmt::format("  when {} in {}..{}: ", v.guard.str(), v.lo, v.hi) : "  ";
      const KernelEntry& kernel = p.kernel(l, v);
      line(fmt::format("{}{} grid {} sizes ({}){}{}", text, kernel.symbol, v.grid.str(), shape_text(v.sizes),
                       kernel.spread.empty() ? "" : ", ", kernel.spread));
    }
  }

  void step(const Plan&, const HostCall& h) {
    line(fmt::format("host {} {} -> {}{}", h.op, list(h.inputs), list(h.outputs), h.origin.empty() ? "" : "  # " + h.origin));
  }

  void step(const Plan&, const BranchStep& b) {
    line(fmt::format("if s{} {} -> {}", b.condition, list(b.inputs), list(b.outputs)));
    inside(b.then_plan);
    inside(b.else_plan);
  }

  void step(const Plan&, const LoopStep& l) {
    line(fmt::format("loop trips s{} while s{} carried {} captures {} -> {} stacked {}", l.trip_count, l.condition,
                     list(l.carried), list(l.captures), list(l.carried_out), list(l.stacked_out)));
    inside(l.body);
  }

  void step(const Plan&, const ScanStep& s) {
    line(fmt::format("scan {} times carried {} xs {} captures {} -> {} ys {}", s.length.str(), list(s.carried), list(s.xs),
                     list(s.captures), list(s.carried_out), list(s.ys)));
    inside(s.body, staying(s).has_value());
  }

  void step(const Plan&, const CopyStep& c) { line(fmt::format("copy s{} -> s{}", c.from, c.to)); }

  void inside(const std::shared_ptr<const Plan>& p, bool stays = false) {
    if (p) text_ += Printer(static_cast<int>(indent_.size()) / 2 + 1).plan(*p, stays);
  }

  std::string indent_;
  std::string text_;
};

}  // namespace

std::string print(const Plan& plan) { return Printer(0).plan(plan); }

}  // namespace weft::runtime
