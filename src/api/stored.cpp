#include "api/stored.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <condition_variable>
#include <thread>

#include "compile/code.h"
#include "compile/tuned.h"
#include "runtime/archive.h"
#include "runtime/cache.h"
#include "runtime/file_hash.h"
#include "runtime/plan_file.h"
#include "runtime/pool.h"

namespace weft {

namespace {

using runtime::ArchiveReader;
using runtime::ArchiveWriter;
using runtime::CacheKey;

CacheKey key_of(const Model::State& model, const char* kind) {
  CacheKey key;
  key.add(kind);
  key.add(model.content);
  for (const auto& [name, range] : model.how.ranges) {
    key.add(fmt::format("{}:{}..{} by {}", name, range.lo, range.hi, range.multiple_of));
  }
  for (const auto& [name, size] : model.how.fixed) key.add(fmt::format("{}={}", name, size));
  for (const std::string& name : model.how.given) key.add("given " + name);
  for (const auto& [name, value] : model.how.known) key.add(fmt::format("{} is {:x}", name, value.content_hash()));
  return key;
}

std::string text_of(const Machine& m) {
  const Rates& r = m.rates;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", m.name, m.arch, m.vector_bits, m.vector_registers, m.cores, m.cache_line,
                     m.l1_bytes, m.l2_bytes, m.l3_bytes,
                     fmt::join({r.ghz, r.fmas, r.dot2s, r.l1_gbytes, r.l2_gbytes, r.l3_gbytes, r.memory_gbytes, r.all_gbytes, r.dispatch_us}, " "),
                     fmt::join(m.features, ","));
}

CacheKey key_of(const Model::State& model, const compiler::Options& how) {
  CacheKey key = key_of(model, "program");
  key.add(codegen::version());
  key.add(text_of(how.machine));
  key.add(how.tuned ? compiler::tuned_state() : "");
  key.add(fmt::format("{} {} {} {} {}", static_cast<int>(how.passes.precision), static_cast<int>(how.passes.weights),
                      how.passes.limit, how.passes.fold_bytes, fmt::join(how.passes.off, ",")));
  return key;
}

bool may_store(const Program::State& program, const CompileOptions& options, const compiler::Options& how) {
  return options.cache && !how.target && how.code && !how.dump && !program.model->content.empty();
}

void write(ArchiveWriter& out, const std::vector<Port>& ports) {
  out.list(ports, [&](const Port& port) {
    out.text(port.name);
    out.integer(static_cast<std::int64_t>(port.dtype));
    out.list(port.shape, [&](const Dim& d) { out.dim(d); });
  });
}

Result<std::vector<Port>> read_ports(ArchiveReader& in) {
  return in.list([&]() -> Result<Port> {
    Port port;
    port.name = WEFT_TRY(in.text());
    const std::int64_t dtype = WEFT_TRY(in.integer());
    if (dtype < 0 || dtype >= dtype_count()) return ArchiveReader::bad();
    port.dtype = static_cast<DType>(dtype);
    port.shape = WEFT_TRY(in.list([&] { return in.dim(); }));
    return port;
  });
}

ByteSpan span_of(const std::vector<char>& bytes) { return std::as_bytes(std::span(bytes.data(), bytes.size())); }

Result<void> read_model(ByteSpan bytes, Model::State& model) {
  ArchiveReader in(bytes);
  auto inputs = WEFT_TRY(read_ports(in));
  auto outputs = WEFT_TRY(read_ports(in));
  model.facts = WEFT_TRY(in.facts());
  model.inputs = std::move(inputs);
  model.outputs = std::move(outputs);
  return {};
}

// Whether sizes that may or may not be equal decide if the model takes some inputs.
bool needs_graph(const graph::Graph& g) {
  for (const graph::Node& node : g.nodes()) {
    if (node.op != graph::Op::Reshape) continue;
    if (!g.facts.known_equal(product(g.type(node.operands[0]).shape), product(g.type(node.results[0]).shape))) return true;
  }
  return false;
}

// Kernels that every run takes: one batch.
std::vector<std::int32_t> made_kernels(const runtime::Plan& plan) {
  std::vector<std::int32_t> kernels;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.kernels[k].fn != nullptr) kernels.push_back(static_cast<std::int32_t>(k));
  }
  return kernels;
}

std::vector<std::int64_t> numbers_of(const CompileStats& s) {
  return {s.nodes, s.prims, s.loops, s.kernels, s.unique_kernels, s.host_steps};
}

std::vector<char> head_of(const Program::State& program, const runtime::PlanBytes& plan) {
  ArchiveWriter out;
  for (std::int64_t v : numbers_of(program.stats)) out.integer(v);
  out.text(program.compiled.code->key());
  out.list(made_kernels(*program.compiled.plan), [&](std::int32_t k) { out.integer(k); });
  out.text({plan.plan.data(), plan.plan.size()});
  return out.bytes();
}

struct Head {
  CompileStats stats;
  std::string code_key;
  std::vector<std::int32_t> made;
  std::string plan;
};

Result<Head> read_head(ByteSpan bytes) {
  ArchiveReader in(bytes);
  Head head;
  CompileStats& s = head.stats;
  for (int* to : {&s.nodes, &s.prims, &s.loops, &s.kernels, &s.unique_kernels, &s.host_steps}) {
    *to = WEFT_TRY(in.number<int>());
  }
  head.code_key = WEFT_TRY(in.text());
  head.made = WEFT_TRY(in.list([&] { return in.number<std::int32_t>(); }));
  head.plan = WEFT_TRY(in.text());
  return head;
}

// Tile programs are not stored: the model is compiled again as far as them when a run needs a kernel that was never made.
std::function<Result<std::shared_ptr<const compiler::Tiles>>()> tiles_of(std::shared_ptr<const Model::State> model,
                                                                         compiler::Options how, std::string key) {
  how.code = false;
  return [model = std::move(model), how = std::move(how), key = std::move(key)]() -> Result<std::shared_ptr<const compiler::Tiles>> {
    const compiler::Compiled again = WEFT_TRY(compiler::compile(*model->graph(), how));
    if (again.code->key() != key) return internal_error("a model compiled to other kernels than before");
    return again.code->tiles();
  };
}

Result<void> read_program(const runtime::Cache::Mapped& entry, const compiler::Options& how, Program::State& program) {
  Head head = WEFT_TRY(read_head(entry.head));
  const auto plan = WEFT_TRY(runtime::decode_plan(std::as_bytes(std::span(head.plan.data(), head.plan.size())), entry.bulk, entry.owner));
  compiler::Code::Setup setup;
  for (const runtime::KernelEntry& kernel : plan->kernels) setup.symbols.push_back(kernel.symbol);
  for (std::int32_t k : head.made) {
    if (k < 0 || static_cast<std::size_t>(k) >= setup.symbols.size()) return ArchiveReader::bad();
  }
  setup.key = head.code_key;
  setup.machine = how.machine;
  setup.jobs = how.jobs > 0 ? how.jobs : runtime::decide_threads().threads;
  setup.tiles = tiles_of(program.model, how, head.code_key);
  auto code = std::make_shared<compiler::Code>(std::move(setup));
  WEFT_TRY(code->require(head.made));
  runtime::for_each_plan(*plan, [&](runtime::Plan& p) {
    p.code = code;
    for (std::int32_t k : head.made) p.kernels[k].fn = code->function(k);
  });
  program.compiled.plan = plan;
  program.compiled.code = std::move(code);
  program.stats = head.stats;
  program.stats.from_cache = true;
  return {};
}

// Large entries are written beside the runs that follow; the process ends when they are.
class Writers {
 public:
  void start(std::function<void()> write) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (process_ != getpid()) {  // the first, or of a fork: the parent's threads are not here
      process_ = getpid();
      running_ = 0;
    }
    try {
      std::thread([this, write = std::move(write)] {
        write();
        std::lock_guard<std::mutex> done(mutex_);
        --running_;
        changed_.notify_all();
      }).detach();
      ++running_;
    } catch (const std::system_error&) {
      // No thread to be had: the entry is not written.
    }
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (process_ == getpid()) changed_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  pid_t process_ = 0;
  int running_ = 0;
};

Writers& writers() {
  static auto* all = [] {
    auto* made = new Writers;  // never destroyed: its threads may outlive static objects
    std::atexit([] { writers().wait(); });
    return made;
  }();
  return *all;
}

}  // namespace

std::string content_of(const std::string& path) { return runtime::hash_file(path).value_or(""); }

bool find_model(Model::State& model) {
  if (model.content.empty()) return false;
  const auto entry = runtime::Cache().get(key_of(model, "model"));
  return entry && entry->size() == 1 && read_model(span_of(entry->front()), model).ok();
}

void store_model(const Model::State& model) {
  if (model.content.empty() || !model.is_imported() || needs_graph(*model.graph())) return;
  ArchiveWriter out;
  write(out, model.inputs);
  write(out, model.outputs);
  out.facts(model.facts);
  runtime::Cache().put(key_of(model, "model"), {out.bytes()});
}

bool find_program(Program::State& program, const CompileOptions& options, const compiler::Options& how) {
  if (!may_store(program, options, how)) return false;
  const auto entry = runtime::Cache().map(key_of(*program.model, how));
  if (!entry || !read_program(*entry, how, program).ok()) return false;
  program.executable = std::make_unique<runtime::Executable>(program.compiled.plan);
  return true;
}

void store_program(const Program::State& program, const CompileOptions& options, const compiler::Options& how) {
  if (!may_store(program, options, how) || !runtime::is_storable(*program.compiled.plan)) return;
  const runtime::Cache cache;
  if (cache.directory().empty()) return;
  store_model(*program.model);
  auto plan = std::make_shared<const runtime::PlanBytes>(runtime::encode_plan(*program.compiled.plan));
  auto write = [cache, plan, head = head_of(program, *plan), key = key_of(*program.model, how), keep = program.compiled.plan] {
    cache.put(key, span_of(head), plan->constants, runtime::kConstantAlignment);
  };
  constexpr std::size_t kLarge = 16 << 20;
  plan->constant_bytes < kLarge ? write() : writers().start(std::move(write));
}

}  // namespace weft
