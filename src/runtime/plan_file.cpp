#include "runtime/plan_file.h"

#include <algorithm>
#include <map>

#include "runtime/archive.h"

namespace weft::runtime {

namespace {

constexpr int kMostDepth = 64;  // of bodies within bodies

std::size_t padded(std::size_t bytes) { return (bytes + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment; }

std::vector<const Plan*> bodies_of(const PlanStep& step) {
  if (const auto* s = std::get_if<BranchStep>(&step)) return {s->then_plan.get(), s->else_plan.get()};
  if (const auto* s = std::get_if<LoopStep>(&step)) return {s->body.get()};
  if (const auto* s = std::get_if<ScanStep>(&step)) return {s->body.get()};
  return {};
}

class PlanWriter {
 public:
  PlanBytes write(const Plan& plan) {
    kernels(plan.kernels);
    body(plan);
    bytes_.plan = out_.bytes();
    return std::move(bytes_);
  }

 private:
  void body(const Plan& p) {
    out_.text(p.name);
    out_.list(p.slots, [&](const Slot& s) { slot(s); });
    ids(p.inputs);
    ids(p.outputs);
    texts(p.input_names);
    texts(p.output_names);
    out_.list(p.constants, [&](const Tensor& t) { constant(t); });
    out_.list(p.infos, [&](const KernelInfo& i) { info(i); });
    out_.list(p.requirements, [&](const Requirement& r) {
      out_.dim(r.left);
      out_.dim(r.right);
      out_.text(r.origin);
    });
    out_.facts(p.facts);
    out_.list(p.steps, [&](const PlanStep& s) {
      out_.integer(static_cast<std::int64_t>(s.index()));
      std::visit([&](const auto& x) { step(x); }, s);
    });
  }

  void ids(const std::vector<SlotId>& v) {
    out_.list(v, [&](SlotId s) { out_.integer(s); });
  }
  void texts(const std::vector<std::string>& v) {
    out_.list(v, [&](const std::string& s) { out_.text(s); });
  }
  void shape(const Shape& v) {
    out_.list(v, [&](const Dim& d) { out_.dim(d); });
  }

  void slot(const Slot& s) {
    out_.integer(static_cast<std::int64_t>(s.kind));
    out_.integer(s.index);
    out_.integer(static_cast<std::int64_t>(s.dtype));
    shape(s.shape);
    out_.integer(s.padded_elements);
    out_.text(s.name);
  }

  void constant(const Tensor& t) {
    out_.integer(static_cast<std::int64_t>(t.dtype()));
    out_.list(t.shape(), [&](std::int64_t d) { out_.integer(d); });
    if (is_string(t.dtype())) return texts(t.string_values());
    const auto [it, fresh] = places_.emplace(std::pair(t.data(), t.byte_size()), bytes_.constant_bytes);
    if (fresh) {
      bytes_.constants.emplace_back(static_cast<const std::byte*>(t.data()), t.byte_size());
      bytes_.constant_bytes += padded(t.byte_size());
    }
    out_.integer(static_cast<std::int64_t>(it->second));
  }

  void kernels(const std::vector<KernelEntry>& all) {
    out_.list(all, [&](const KernelEntry& k) {
      out_.text(k.symbol);
      out_.integer(k.scratch);
      out_.list(std::vector<int>(k.written.begin(), k.written.end()), [&](int w) { out_.integer(w); });
    });
  }

  void info(const KernelInfo& i) {
    out_.text(i.name);
    texts(i.origins);
    out_.text(i.schedule);
    out_.dim(i.bytes_compulsory);
    out_.dim(i.bytes_moved);
    out_.dim(i.flops);
  }

  void step(const Launch& s) {
    out_.list(s.variants, [&](const LaunchVariant& v) {
      out_.integer(v.kernel);
      out_.integer(v.guarded);
      out_.dim(v.guard);
      out_.integer(v.lo);
      out_.integer(v.hi);
      out_.dim(v.grid);
      shape(v.sizes);
    });
    ids(s.buffers);
    texts(s.checks);
    out_.integer(s.info);
    out_.list(s.in_place, [&](const InPlace& pair) {
      out_.integer(pair.output);
      out_.integer(pair.input);
    });
  }
  void step(const HostCall&) {}  // is_storable() refuses these
  void step(const BranchStep& s) {
    out_.integer(s.condition);
    ids(s.inputs);
    ids(s.outputs);
    out_.text(s.origin);
    body(*s.then_plan);
    body(*s.else_plan);
  }
  void step(const LoopStep& s) {
    out_.integer(s.trip_count);
    out_.integer(s.condition);
    for (const auto* list : {&s.carried, &s.captures, &s.carried_out, &s.stacked_out}) ids(*list);
    out_.text(s.origin);
    body(*s.body);
  }
  void step(const ScanStep& s) {
    for (const auto* list : {&s.carried, &s.xs, &s.captures, &s.carried_out, &s.ys}) ids(*list);
    out_.dim(s.length);
    out_.text(s.origin);
    body(*s.body);
  }
  void step(const CopyStep& s) {
    out_.integer(s.from);
    out_.integer(s.to);
  }

  ArchiveWriter out_;
  PlanBytes bytes_;
  std::map<std::pair<const void*, std::size_t>, std::size_t> places_;
};

class PlanReader {
 public:
  PlanReader(ByteSpan plan, ByteSpan constants, std::shared_ptr<const void> owner)
      : in_(plan), constants_(constants), owner_(std::move(owner)) {}

  Result<std::shared_ptr<Plan>> read() {
    kernels_ = WEFT_TRY(in_.list([&] { return kernel(); }));
    auto plan = WEFT_TRY(body(0));
    if (!in_.at_end()) return ArchiveReader::bad();
    return plan;
  }

 private:
  Result<std::shared_ptr<Plan>> body(int depth) {
    if (depth > kMostDepth) return ArchiveReader::bad();
    auto plan = std::make_shared<Plan>();
    Plan& p = *plan;
    p.kernels = kernels_;
    p.name = WEFT_TRY(in_.text());
    p.slots = WEFT_TRY(in_.list([&] { return slot(); }));
    p.inputs = WEFT_TRY(ids());
    p.outputs = WEFT_TRY(ids());
    p.input_names = WEFT_TRY(texts());
    p.output_names = WEFT_TRY(texts());
    p.constants = WEFT_TRY(in_.list([&] { return constant(); }));
    p.infos = WEFT_TRY(in_.list([&] { return info(); }));
    p.requirements = WEFT_TRY(in_.list([&]() -> Result<Requirement> {
      Requirement r;
      r.left = WEFT_TRY(in_.dim());
      r.right = WEFT_TRY(in_.dim());
      r.origin = WEFT_TRY(in_.text());
      return r;
    }));
    p.facts = WEFT_TRY(in_.facts());
    p.steps = WEFT_TRY(in_.list([&] { return step(depth); }));
    return plan;
  }

  Result<std::vector<SlotId>> ids() {
    return in_.list([&] { return in_.number<SlotId>(); });
  }
  Result<std::vector<std::string>> texts() {
    return in_.list([&] { return in_.text(); });
  }
  Result<Shape> shape() {
    return in_.list([&] { return in_.dim(); });
  }
  Result<DType> dtype() {
    const std::int64_t number = WEFT_TRY(in_.integer());
    if (number < 0 || number >= dtype_count()) return ArchiveReader::bad();
    return static_cast<DType>(number);
  }

  Result<Slot> slot() {
    Slot s;
    const std::int64_t kind = WEFT_TRY(in_.integer());
    if (kind < 0 || kind > static_cast<std::int64_t>(Slot::Kind::Alias)) return ArchiveReader::bad();
    s.kind = static_cast<Slot::Kind>(kind);
    s.index = WEFT_TRY(in_.number<std::int32_t>());
    s.dtype = WEFT_TRY(dtype());
    s.shape = WEFT_TRY(shape());
    s.padded_elements = WEFT_TRY(in_.integer());
    s.name = WEFT_TRY(in_.text());
    return s;
  }

  Result<Tensor> constant() {
    const DType type = WEFT_TRY(dtype());
    auto sizes = WEFT_TRY(in_.list([&] { return in_.integer(); }));
    std::int64_t count = 1;
    for (std::int64_t d : sizes) {
      if (d < 0 || __builtin_mul_overflow(count, d, &count)) return ArchiveReader::bad();
    }
    if (is_string(type)) {
      auto values = WEFT_TRY(texts());
      if (static_cast<std::int64_t>(values.size()) != count) return ArchiveReader::bad();
      return Tensor::strings(std::move(sizes), std::move(values));
    }
    const auto at = static_cast<std::uint64_t>(WEFT_TRY(in_.integer()));
    const auto bytes = storage_bytes(type, count);
    if (!bytes || at > constants_.size() || constants_.size() - at < *bytes || at % kConstantAlignment != 0) {
      return ArchiveReader::bad();
    }
    return Tensor::view(type, std::move(sizes), constants_.data() + at, owner_);
  }

  Result<KernelEntry> kernel() {
    KernelEntry k;
    k.symbol = WEFT_TRY(in_.text());
    k.scratch = WEFT_TRY(in_.integer());
    for (std::int64_t w : WEFT_TRY(in_.list([&] { return in_.integer(); }))) k.written.push_back(w != 0);
    return k;
  }

  Result<KernelInfo> info() {
    KernelInfo i;
    i.name = WEFT_TRY(in_.text());
    i.origins = WEFT_TRY(texts());
    i.schedule = WEFT_TRY(in_.text());
    i.bytes_compulsory = WEFT_TRY(in_.dim());
    i.bytes_moved = WEFT_TRY(in_.dim());
    i.flops = WEFT_TRY(in_.dim());
    return i;
  }

  Result<PlanStep> step(int depth) {
    switch (WEFT_TRY(in_.integer())) {
      case 0: return PlanStep(WEFT_TRY(launch()));
      case 2: return PlanStep(WEFT_TRY(branch(depth)));
      case 3: return PlanStep(WEFT_TRY(loop(depth)));
      case 4: return PlanStep(WEFT_TRY(scan(depth)));
      case 5: {
        CopyStep s{};
        s.from = WEFT_TRY(in_.number<SlotId>());
        s.to = WEFT_TRY(in_.number<SlotId>());
        return PlanStep(s);
      }
      default: return ArchiveReader::bad();
    }
  }

  Result<LaunchVariant> variant() {
    LaunchVariant v;
    v.kernel = WEFT_TRY(in_.number<std::int32_t>());
    if (v.kernel < 0 || static_cast<std::size_t>(v.kernel) >= kernels_.size()) return ArchiveReader::bad();
    v.guarded = WEFT_TRY(in_.integer()) != 0;
    v.guard = WEFT_TRY(in_.dim());
    v.lo = WEFT_TRY(in_.integer());
    v.hi = WEFT_TRY(in_.integer());
    v.grid = WEFT_TRY(in_.dim());
    v.sizes = WEFT_TRY(shape());
    return v;
  }

  Result<Launch> launch() {
    Launch s;
    s.variants = WEFT_TRY(in_.list([&] { return variant(); }));
    s.buffers = WEFT_TRY(ids());
    s.checks = WEFT_TRY(texts());
    s.info = WEFT_TRY(in_.number<std::int32_t>());
    s.in_place = WEFT_TRY(in_.list([&]() -> Result<InPlace> {
      InPlace pair;
      pair.output = WEFT_TRY(in_.number<std::int32_t>());
      pair.input = WEFT_TRY(in_.number<std::int32_t>());
      return pair;
    }));
    return s;
  }

  Result<BranchStep> branch(int depth) {
    BranchStep s{};
    s.condition = WEFT_TRY(in_.number<SlotId>());
    s.inputs = WEFT_TRY(ids());
    s.outputs = WEFT_TRY(ids());
    s.origin = WEFT_TRY(in_.text());
    s.then_plan = WEFT_TRY(body(depth + 1));
    s.else_plan = WEFT_TRY(body(depth + 1));
    return s;
  }

  Result<LoopStep> loop(int depth) {
    LoopStep s{};
    s.trip_count = WEFT_TRY(in_.number<SlotId>());
    s.condition = WEFT_TRY(in_.number<SlotId>());
    for (auto* list : {&s.carried, &s.captures, &s.carried_out, &s.stacked_out}) *list = WEFT_TRY(ids());
    s.origin = WEFT_TRY(in_.text());
    s.body = WEFT_TRY(body(depth + 1));
    return s;
  }

  Result<ScanStep> scan(int depth) {
    ScanStep s{};
    for (auto* list : {&s.carried, &s.xs, &s.captures, &s.carried_out, &s.ys}) *list = WEFT_TRY(ids());
    s.length = WEFT_TRY(in_.dim());
    s.origin = WEFT_TRY(in_.text());
    s.body = WEFT_TRY(body(depth + 1));
    return s;
  }

  ArchiveReader in_;
  ByteSpan constants_;
  std::shared_ptr<const void> owner_;
  std::vector<KernelEntry> kernels_;
};

}  // namespace

bool is_storable(const Plan& plan) {
  if (plan.device) return false;
  return std::all_of(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) {
    const auto bodies = bodies_of(step);
    return !std::holds_alternative<HostCall>(step) &&
           std::all_of(bodies.begin(), bodies.end(), [](const Plan* body) { return is_storable(*body); });
  });
}

PlanBytes encode_plan(const Plan& plan) { return PlanWriter().write(plan); }

Result<std::shared_ptr<Plan>> decode_plan(ByteSpan plan, ByteSpan constants, std::shared_ptr<const void> owner) {
  return PlanReader(plan, constants, std::move(owner)).read();
}

void for_each_plan(Plan& plan, const std::function<void(Plan&)>& visit) {
  visit(plan);
  for (const PlanStep& step : plan.steps) {
    for (const Plan* body : bodies_of(step)) for_each_plan(const_cast<Plan&>(*body), visit);
  }
}

}  // namespace weft::runtime
