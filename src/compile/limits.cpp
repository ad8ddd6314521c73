#include "compile/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
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
constexpr double kSeconds = 0.3;                     // of each measurement

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

kernel::Function multiplications(int lanes) {
  Builder b("multiplications");
  const int out = output(b);
  const ValueId factor = b.splat(b.constant(DType::F32, 0.999), lanes), term = b.splat(b.constant(DType::F32, 0.001), lanes);
  carry(b, out, 0, kRounds, 1, kAccumulators, lanes,
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

runtime::CacheKey key_of(int threads) {
  const Machine m = host_machine();
  runtime::CacheKey key;
  key.add("limits 1");
  key.add(m.name);
  key.add(fmt::format("{} bits, {} threads of {}", m.vector_bits, threads, m.cores));
  return key;
}

}  // namespace

Result<Limits> measure_limits(int threads) {
  const int lanes = host_machine().f32_lanes();
  const kernel::Function functions[] = {multiplications(lanes), reads(lanes)};
  const codegen::Entry entries[] = {{&functions[0], "multiplications"}, {&functions[1], "reads"}};
  const std::vector<codegen::Object> objects{WEFT_TRY(codegen::compile_object(entries, codegen::target_for(host_machine())))};
  const codegen::LoadedCode code = WEFT_TRY(codegen::LoadedCode::load(objects));
  std::vector<float> memory(kMemory / sizeof(float), 1.0F), sums(4096);
  Limits limits;
  const std::int64_t programs = 8 * threads;  // a few of each thread, so that they end together
  limits.gflops = 1e-9 * best_rate(WEFT_TRY(code.lookup("multiplications")), {sums.data()}, programs, threads,
                                   2.0 * kAccumulators * lanes * static_cast<double>(kRounds * programs));
  limits.gbytes = 1e-9 * best_rate(WEFT_TRY(code.lookup("reads")), {memory.data(), sums.data()},
                                   kMemory / static_cast<std::int64_t>(sizeof(float)) / kPart, threads, static_cast<double>(kMemory));
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

}  // namespace weft::compiler
