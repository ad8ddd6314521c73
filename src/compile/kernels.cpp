#include "compile/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/knobs.h"
#include "compile/clock.h"
#include "compile/tuned.h"
#include "kernel/simd/lower.h"
#include "runtime/pool.h"
#include "ssa/key.h"

namespace weft::compiler {

namespace {

std::string described(const schedule::Schedule& schedule) {
  std::string text = schedule.why + "\n";
  for (const schedule::Variant& v : schedule.variants) {
    if (v.guard) text += fmt::format("when {} in {}..{}: ", v.guard->size.str(), v.guard->lo, v.guard->hi);
    text += schedule::print(v.record) + "\n";
  }
  return text;
}

Machine without_groups(Machine machine) {
  machine.group_threads = 0;
  return machine;
}

}  // namespace

KernelSet::KernelSet(const Options& options, Report& report) : options_(options), machine_(machine_of(options)), report_(report) {
  const codegen::TargetDesc target = codegen::target_for(options_.machine);
  key_.add(codegen::version());
  key_.add(target.triple);
  key_.add(target.cpu);
  key_.add(target.features);
  key_.add(fmt::format("{} {} {}", machine().vector_bits, machine().cuts_f32, fmt::join(machine().features, ",")));
}

bool KernelSet::wants(const char* stage) const {
  return options_.dump && fmt::format(",{},", options_.dump_stages).find(fmt::format(",{},", stage)) != std::string::npos;
}

void KernelSet::dump(const char* stage, const std::string& name, const std::string& text) const {
  if (wants(stage)) options_.dump(stage, name, text);
}

Result<void> KernelSet::consider(const std::vector<const loop::Group*>& groups, const DimFacts& facts) {
  struct Fresh {
    const loop::Group* group;
    std::map<std::string, Made>::value_type& entry;
  };
  std::vector<Fresh> fresh;
  for (const loop::Group* group : groups) {
    std::string key = loop::print_alike(*group);
    if (groups_.count(key) > 0) continue;
    const auto [it, is_new] = considered_.try_emplace(std::move(key));
    if (is_new) fresh.push_back({group, *it});
  }
  std::vector<Job> jobs;
  for (Fresh& f : fresh) jobs.push_back([this, &f, &facts] { return make(*f.group, f.entry.first, facts, f.entry.second); });
  WEFT_TRY(run_jobs(jobs, threads()));
  for (const Fresh& f : fresh) {
    report_.schedule_ms += f.entry.second.schedule_ms;
    report_.tile_ms += f.entry.second.tile_ms;
  }
  return {};
}

const KernelSet::Made& KernelSet::considered(const loop::Group& group) const {
  const auto it = considered_.find(loop::print_alike(group));
  WEFT_CHECK(it != considered_.end(), "a group was not considered");
  return it->second;
}

double KernelSet::modelled_us(const loop::Group& group) const {
  const auto it = groups_.find(loop::print_alike(group));
  return it != groups_.end() ? it->second.schedule.cost.total() : considered(group).schedule.cost.total();
}

Result<void> KernelSet::takes(const loop::Group& group) const {
  if (!options_.target || groups_.count(loop::print_alike(group)) > 0) return {};
  return considered(group).taken;
}

Result<void> KernelSet::target_takes(const loop::Group& group, const Made& made) const {
  for (const tile::Lowered& lowered : made.lowered) {
    WEFT_TRY(options_.target->takes(WEFT_TRY(lower_program(lowered.function, made.alone ? without_groups(machine()) : machine(), group.name))));
  }
  return {};
}

Result<void> KernelSet::add(const std::vector<const loop::Group*>& groups, const DimFacts& facts) {
  WEFT_TRY(consider(groups, facts));
  for (const loop::Group* group : groups) {
    const std::string key = loop::print_alike(*group);
    if (auto made = considered_.extract(key)) enrol(*group, key, std::move(made.mapped()));
    const ReadyGroup& ready = groups_.at(key);
    for (const ReadyGroup::Variant& variant : ready.variants) {
      Use& use = uses_[variant.kernel];
      ++use.launches;
      use.run_us += ready.schedule.few.total();
      use.instructions = std::max(use.instructions, ready.schedule.instructions);
    }
  }
  return {};
}

const ReadyGroup& KernelSet::ready(const loop::Group& group) const {
  const auto it = groups_.find(loop::print_alike(group));
  WEFT_CHECK(it != groups_.end(), "a group was not made ready");
  return it->second;
}

int KernelSet::threads() const { return options_.jobs > 0 ? options_.jobs : runtime::decide_threads().threads; }

Result<void> KernelSet::make(const loop::Group& group, const std::string& key, const DimFacts& facts, Made& into) const {
  {
    Clock clock(into.schedule_ms);
    into.schedule = schedule(group, facts, tuned_choice(options_, key, facts), into.alone);
  }
  Clock clock(into.tile_ms);
  for (const schedule::Variant& variant : into.schedule.variants) {
    into.lowered.push_back(WEFT_TRY(tile::lower(group, variant.record)));
    into.keys.push_back(ssa::key(into.lowered.back().function));
  }
  if (options_.target && options_.cpu_too) into.taken = target_takes(group, into);
  return {};
}

void KernelSet::enrol(const loop::Group& group, const std::string& key, Made made) {
  const std::string name = fmt::format("{}_{}", group.name, groups_.size());
  if (wants("loop")) dump("loop", name, loop::print(group));
  if (wants("schedule")) dump("schedule", name, described(made.schedule));
  ReadyGroup ready;
  ready.schedule = std::move(made.schedule);
  for (std::size_t k = 0; k < made.lowered.size(); ++k) {
    tile::Lowered& lowered = made.lowered[k];
    if (wants("tile")) {
      lowered.function.name = group.name;
      dump("tile", name, ssa::print(lowered.function));
    }
    ReadyGroup::Variant v;
    v.kernel = add_tile(std::move(lowered.function), std::move(made.keys[k]), name, made.alone);
    if (origins_.size() < static_cast<std::size_t>(size())) origins_.push_back(fmt::format("{}", fmt::join(group.origins, " + ")));
    if (ready.schedule.variants.size() == 1) always_[v.kernel] = true;
    v.buffers = std::move(lowered.buffers);
    v.sizes = std::move(lowered.sizes);
    v.grid = lowered.grid;
    ready.variants.push_back(std::move(v));
  }
  if (!options_.target) ready.in_place = in_place_pairs(group);  // devices may count on buffers that are apart
  groups_.emplace(key, std::move(ready));
}

// Of a machine with groups of threads the cheaper of two: a program for a group, or for each thread alone.
schedule::Schedule KernelSet::schedule(const loop::Group& group, const DimFacts& facts, const std::string& choice, bool& alone) const {
  const std::string& how = knob_text(Knob::Groups);
  if (!machine().has_groups() || how == "all") return schedule::schedule(group, machine(), facts, {false, choice});
  schedule::Schedule single = schedule::schedule(group, without_groups(machine()), facts, {false, choice});
  alone = how == "none";
  if (alone) return single;
  schedule::Schedule together = schedule::schedule(group, machine(), facts, {false, choice});
  alone = single.cost.total() < together.cost.total();
  return alone ? single : together;
}

int KernelSet::add_tile(tile::Function function, std::string key, const std::string& name, bool alone) {
  if (alone) key += "alone";
  auto [it, fresh] = numbers_.emplace(std::move(key), size());
  if (!fresh) return it->second;
  runtime::KernelEntry entry;
  entry.symbol = fmt::format("{}_{}", name, size());
  key_.add(it->first);
  key_.add(entry.symbol);
  function.name = entry.symbol;
  for (const ssa::Buffer& buffer : function.buffers) {
    if (buffer.space == ssa::Space::Memory) entry.written.push_back(buffer.written);
  }
  entry.scratch = codegen::scratch_bytes(function.buffers) + codegen::scratch_bytes(kernel::added_buffers(function, machine()));
  entries_.push_back(std::move(entry));
  tiles_->push_back(std::move(function));
  alone_.push_back(alone);
  uses_.emplace_back();
  always_.push_back(knob_text(Knob::Variants) == "all");
  return it->second;
}

Result<kernel::Function> KernelSet::lowered(std::size_t k, std::string* spread) const {
  const tile::Function& tile = (*tiles_)[k];
  return lower_program(tile, alone_[k] ? without_groups(machine()) : machine(), tile.name, spread);
}

Result<std::vector<kernel::Function>> KernelSet::lower_all() {
  std::vector<kernel::Function> functions;
  for (std::size_t k = 0; k < tiles_->size(); ++k) {
    functions.push_back(WEFT_TRY(lowered(k, &entries_[k].spread)));
    dump("kernel", functions.back().name, ssa::print(functions.back()));
  }
  return functions;
}

// What the target lacks, for all kernels at once.
Result<void> KernelSet::check_taken() const {
  std::map<std::string, std::vector<std::string>> missing;  // reason, nodes
  for (std::size_t k = 0; k < tiles_->size(); ++k) {
    const auto function = lowered(k);
    const auto taken = function.ok() ? options_.target->takes(*function) : Result<void>(function.error());
    if (taken.ok()) continue;
    if (taken.error().kind() != ErrorKind::Unsupported) return taken;
    missing[taken.error().message()].push_back(origins_[k]);
  }
  if (missing.empty()) return {};
  constexpr std::size_t kNamed = 3;
  std::string list;
  for (const auto& [reason, nodes] : missing) {
    const std::span<const std::string> named(nodes.data(), std::min(nodes.size(), kNamed));
    list += fmt::format("\n  {}: {} kernel{} ({}{})", reason, nodes.size(), nodes.size() == 1 ? "" : "s", fmt::join(named, ", "),
                        named.size() < nodes.size() ? ", ..." : "");
  }
  return unsupported("unsupported-by-target", "the target lacks what kernels need:" + list).suggest("add '+cpu' to the target: they run there then");
}

Result<void> KernelSet::build_for_target() {
  auto functions = [&] {
    Clock clock(report_.kernel_ms);
    return lower_all();
  }();
  Clock clock(report_.llvm_ms);
  const auto explained = [&](const Error& error) -> Result<void> {
    if (error.kind() == ErrorKind::Unsupported) WEFT_TRY(check_taken());
    return error;
  };
  if (!functions.ok()) return explained(functions.error());
  if (wants("source") || !options_.code) {
    const auto text = options_.target->print(*functions);
    if (!text.ok()) return explained(text.error());
    dump("source", "module", *text);
  }
  if (!options_.code) return check_taken();
  auto built = options_.target->build(*functions);
  if (!built.ok()) return explained(built.error());
  device_code_ = std::move(*built);
  return {};
}

Result<void> KernelSet::dump_code() {
  if (!wants("kernel") && !wants("llvm") && !wants("asm") && !wants("object")) return {};
  const std::vector<kernel::Function> functions = WEFT_TRY(lower_all());
  std::vector<codegen::Entry> listed;
  for (const auto& function : functions) listed.push_back({&function, function.name});
  const codegen::TargetDesc target = codegen::target_for(options_.machine);
  if (wants("llvm")) dump("llvm", "module", WEFT_TRY(codegen::emit_llvm_ir(listed, target)));
  if (wants("asm")) dump("asm", "module", WEFT_TRY(codegen::emit_assembly(listed, target)));
  if (wants("object")) {
    const codegen::Object object = WEFT_TRY(codegen::compile_object(listed, target));
    dump("object", "module", std::string(object.begin(), object.end()));
  }
  return {};
}

std::vector<std::int32_t> KernelSet::made_quickly() const {
  constexpr std::int32_t kRuns = 4;  // what was asked for so often will be asked for again
  std::vector<std::int32_t> quick(entries_.size(), 0);
  const std::string& how = knob_text(Knob::FirstCode);
  const bool kept = options_.cache && !runtime::Cache().directory().empty();
  if (kept || !options_.load || how == "best") return quick;  // entries of the cache are for many runs
  for (std::size_t k = 0; k < quick.size(); ++k) {
    const Use& use = uses_[k];
    // Who asked for one thread gets no second one, which would make the code well while the first runs it.
    const bool sooner = threads() > 1 && schedule::first_code(use.run_us, use.instructions, threads()).quick();
    if (sooner || how == "quick") quick[k] = kRuns * std::max(1, use.launches);
  }
  return quick;
}

Result<void> KernelSet::prepare(std::vector<Job>& jobs, const std::vector<std::int32_t>& first) {
  if (options_.target) return tiles_->empty() ? Result<void>() : build_for_target();
  WEFT_TRY(dump_code());
  Code::Setup setup;
  for (const auto& entry : entries_) setup.symbols.push_back(entry.symbol);
  setup.key = key_.hex();
  setup.machine = options_.machine;
  setup.jobs = threads();
  setup.cache = options_.cache;
  setup.load = options_.load;
  setup.quick = made_quickly();
  setup.tiles = [tiles = std::shared_ptr<const Tiles>(tiles_)]() -> Result<std::shared_ptr<const Tiles>> { return tiles; };
  code_ = std::make_shared<Code>(std::move(setup));
  std::vector<bool> made = always_;
  for (std::int32_t k : first) made[k] = true;
  for (std::int32_t k = 0; k < size(); ++k) {
    if (made[k] && options_.code) batch_.kernels.push_back(k);
  }
  return code_->begin(batch_, jobs);
}

Result<void> KernelSet::finish() {
  if (!code_) return {};
  WEFT_TRY(code_->finish(batch_));
  for (std::int32_t k : batch_.kernels) {
    if (!code_->is_quick(k)) entries_[k].fn = code_->function(k);
  }
  const CodeTimes times = code_->times();
  report_.kernel_ms += times.kernel_ms;
  report_.emit_ms += times.emit_ms;
  report_.llvm_ms += times.codegen_ms;
  report_.link_ms += times.link_ms;
  report_.compiled_kernels += times.kernels;
  report_.from_cache = batch_.from_cache;
  return {};
}

}  // namespace weft::compiler
