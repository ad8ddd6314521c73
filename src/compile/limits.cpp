#include "compile/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <iterator>
#include <vector>

#include "codegen/llvm/codegen.h"
#include "kernel/kernel.h"
#include "runtime/cache.h"
#include "runtime/pool.h"

namespace weft::compiler {

using kernel::Builder;
using ssa::ValueId;

namespace {

constexpr int kAccumulators = 12;                    // enough to hide the latency of a fused multiplication
constexpr std::int64_t kRounds = 1 << 14;            // of one program
constexpr std::int64_t kMemory = std::int64_t{256} << 20;  // bytes, beyond any cache
constexpr std::int64_t kPart = 1 << 20;              // elements that one program reads
constexpr std::int64_t kCached = 1 << 21;            // elements that one program reads from a cache
constexpr double kSeconds = 0.15;                    // of each measurement
constexpr double kLatency = 4;                       // cycles of a fused multiplication

int output(Builder& b) { return b.add_buffer({DType::F32, ssa::Space::Memory, false, true, 0}); }

// A loop that carries `count` vectors, whose sum is stored.
template <class Next>
void carry(Builder& b, int out, std::int64_t lo, std::int64_t hi, std::int64_t step, int count, int lanes, Next next) {
  std::vector<ValueId> inits;
  for (int k = 0; k < count; ++k) inits.push_back(b.splat(b.constant(DType::F32, k), lanes));
  const auto loop = b.begin_for(b.constant_i64(lo), b.constant_i64(hi), b.constant_i64(step), inits);
  std::vector<ValueId> yields;
  for (int k = 0; k < count; ++k) yields.push_back(next(loop.iv, loop.carried[k], k));
  const std::vector<ValueId> results = b.end_for(yields);
  ValueId sum = results[0];
  for (int k = 1; k < count; ++k) sum = b.add(sum, results[k]);
  b.store(out, sum, b.mul(b.program_id(), b.constant_i64(lanes)));
}

kernel::Function multiplications(int lanes, int chains) {
  Builder b("multiplications");
  const int out = output(b);
  const ValueId factor = b.splat(b.constant(DType::F32, 0.999), lanes), term = b.splat(b.constant(DType::F32, 0.001), lanes);
  carry(b, out, 0, kRounds, 1, chains, lanes,
        [&](ValueId, ValueId x, int) { return b.scalar(ScalarOp::Fma, {x, factor, term}); });
  return b.finish();
}

kernel::Function reads(int lanes) {
  Builder b("reads");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0}), out = output(b);
  const ValueId start = b.mul(b.program_id(), b.constant_i64(kPart));
  constexpr int kStreams = 4;
  carry(b, out, 0, kPart, kStreams * lanes, kStreams, lanes, [&](ValueId at, ValueId x, int k) {
    return b.add(x, b.load(in, b.add(b.add(start, at), b.constant_i64(k * lanes)), lanes));
  });
  return b.finish();
}

// Reads the first `elements`, a power of two, again and again.
kernel::Function cached_reads(int lanes, std::int64_t elements) {
  Builder b("cached_reads");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0}), out = output(b);
  constexpr int kStreams = 16;
  carry(b, out, 0, kCached, kStreams * lanes, kStreams, lanes, [&](ValueId at, ValueId x, int k) {
    const ValueId start = b.scalar(ScalarOp::And, {at, b.constant_i64(elements - 1)});
    return b.add(x, b.load(in, b.add(start, b.constant_i64(k * lanes)), lanes));
  });
  return b.finish();
}

struct Context {
  runtime::KernelFn fn;
  void* const* buffers;
};

// The most that one run of `grid` programs did a second, over some time.
double best_rate(runtime::KernelFn fn, std::vector<void*> buffers, std::int64_t grid, int threads, double work) {
  Context context{fn, buffers.data()};
  const auto body = [](void* c, std::int64_t begin, std::int64_t end, int) {
    const auto& x = *static_cast<Context*>(c);
    std::int64_t status = 0;
    x.fn(x.buffers, nullptr, begin, end, nullptr, &status);
  };
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  double best = 0;
  for (const auto start = Clock::now(); best == 0 || seconds(Clock::now() - start) < kSeconds;) {
    const auto before = Clock::now();
    runtime::parallel_for(grid, threads, body, &context);
    best = std::max(best, work / seconds(Clock::now() - before));
  }
  return best;
}

double dispatch_us(int threads) {
  if (threads <= 1) return 0;
  constexpr int kCalls = 200;
  const auto nothing = [](void*, std::int64_t, std::int64_t, int) {};
  using Clock = std::chrono::steady_clock;
  double best = 1e3;
  for (int k = 0; k < kCalls; ++k) {
    const auto before = Clock::now();
    runtime::parallel_for(threads, threads, nothing, nullptr);
    if (k > 0) best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  }
  return best;
}

// A power of two of elements that fills about half a cache.
std::int64_t half_of(std::int64_t bytes) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes / 2, 4096)) / sizeof(float)));
}

runtime::CacheKey key_of(int threads) {
  const Machine m = host_machine();
  runtime::CacheKey key(runtime::CacheKey::Of::Machine);
  key.add("limits 3");
  key.add(m.name);
  key.add(fmt::format("{} bits, {} threads of {}", m.vector_bits, threads, m.cores));
  return key;
}

// Others that use the machine make it look slower than it is, never faster.
void keep_best(Limits& now, const Limits& before) {
  for (double Limits::* rate : {&Limits::gflops, &Limits::gbytes, &Limits::ghz, &Limits::l1_gbytes, &Limits::l2_gbytes, &Limits::l3_gbytes}) {
    now.*rate = std::max(now.*rate, before.*rate);
  }
  now.dispatch_us = std::min(now.dispatch_us, before.dispatch_us);
}

}  // namespace

Result<Limits> measure_limits(int threads) {
  const Machine m = host_machine();
  const int lanes = m.f32_lanes();
  const std::int64_t third = m.l3_bytes > 0 ? std::clamp<std::int64_t>(m.l3_bytes / 2, 2 * m.l2_bytes, 16 << 20) : m.l2_bytes;
  const kernel::Function functions[] = {multiplications(lanes, kAccumulators),          reads(lanes),
                                        multiplications(lanes, 1),                      cached_reads(lanes, half_of(m.l1_bytes)),
                                        cached_reads(lanes, half_of(m.l2_bytes)), cached_reads(lanes, half_of(third))};
  const char* const names[] = {"multiplications", "reads", "latency", "l1", "l2", "l3"};
  std::vector<codegen::Entry> entries;
  for (std::size_t k = 0; k < std::size(names); ++k) entries.push_back({&functions[k], names[k]});
  const std::vector<codegen::Object> objects{WEFT_TRY(codegen::compile_object(entries, codegen::target_for(host_machine())))};
  const codegen::LoadedCode code = WEFT_TRY(codegen::LoadedCode::load(objects));
  std::vector<float> memory(kMemory / sizeof(float), 1.0F), sums(4096);
  Limits limits;
  const std::int64_t programs = 8 * threads;  // a few of each thread, so that they end together
  const auto multiplied = [&](int chains, std::int64_t grid) { return 2.0 * chains * lanes * static_cast<double>(kRounds * grid); };
  limits.gflops = 1e-9 * best_rate(WEFT_TRY(code.lookup("multiplications")), {sums.data()}, programs, threads,
                                   multiplied(kAccumulators, programs));
  limits.gbytes = 1e-9 * best_rate(WEFT_TRY(code.lookup("reads")), {memory.data(), sums.data()},
                                   kMemory / static_cast<std::int64_t>(sizeof(float)) / kPart, threads, static_cast<double>(kMemory));
  limits.ghz = 1e-9 * kLatency * best_rate(WEFT_TRY(code.lookup("latency")), {sums.data()}, 1, 1, static_cast<double>(kRounds));
  const auto cached = [&](const char* name) -> Result<double> {
    const auto fn = WEFT_TRY(code.lookup(name));
    return 1e-9 * best_rate(fn, {memory.data(), sums.data()}, 1, 1, static_cast<double>(kCached) * sizeof(float));
  };
  limits.l1_gbytes = WEFT_TRY(cached("l1"));
  limits.l2_gbytes = WEFT_TRY(cached("l2"));
  limits.l3_gbytes = WEFT_TRY(cached("l3"));
  limits.dispatch_us = dispatch_us(threads);
  if (const auto before = known_limits(threads)) keep_best(limits, *before);
  std::vector<char> blob(sizeof limits);
  std::memcpy(blob.data(), &limits, sizeof limits);
  runtime::Cache().put(key_of(threads), {blob});
  return limits;
}

std::optional<Limits> known_limits(int threads) {
  const auto found = runtime::Cache().get(key_of(threads));
  if (!found || found->size() != 1 || (*found)[0].size() != sizeof(Limits)) return std::nullopt;
  Limits limits;
  std::memcpy(&limits, (*found)[0].data(), sizeof limits);
  return limits;
}

void apply_measured_rates(Machine& machine) {
  struct Known {
    std::optional<Limits> one, all;
  };
  static const Known known = {known_limits(1), known_limits(runtime::decide_threads().threads)};
  const Machine measured = host_machine();
  machine.rates = {};
  if (!known.one || machine.arch != measured.arch || machine.vector_bits != measured.vector_bits) return;
  const Limits& one = *known.one;
  Rates& r = machine.rates;
  r.ghz = one.ghz;
  r.fmas = one.gflops / (2 * machine.f32_lanes() * one.ghz);
  r.l1_gbytes = one.l1_gbytes;
  r.l2_gbytes = one.l2_gbytes;
  r.l3_gbytes = one.l3_gbytes;
  r.memory_gbytes = one.gbytes;
  if (known.all) r.all_gbytes = known.all->gbytes, r.dispatch_us = std::max(known.all->dispatch_us, 0.1);
  const bool sane = r.ghz > 0.1 && r.fmas > 0.1 && r.l1_gbytes > 0.1 && r.l2_gbytes > 0.1 && r.l3_gbytes > 0.1 && r.memory_gbytes > 0.1;
  if (!sane) r = {};
}

}  // namespace weft::compiler
