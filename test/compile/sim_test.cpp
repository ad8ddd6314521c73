// Graphs on simulated machines of groups of threads: what is wrong with a kernel is said at the node.
#include <gmock/gmock.h>

#include "compile/support.h"
#include "target/target.h"

namespace weft::compiler::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const char* kRows = R"(graph @rows(%0 "x": f32[n, 300]) -> (f32[n, 300]) where n in 0..64 {
  %1 = reduce_sum %0 {axes=[1]} : f32[n]
  %2 = broadcast %1 {shape=[n, 300], axes=[0]} : f32[n, 300]
  %3 = div %0, %2 : f32[n, 300]
  return %3
})";

std::shared_ptr<const target::Target> simulated() { return target::open("sim:opencl").value(); }

// Builds something else than it is given, as a fault in the lowering would.
class Broken final : public target::Target {
 public:
  using Fault = void (*)(kernel::Function& function, ssa::Block& block);
  explicit Broken(Fault fault) : sim_(simulated()), fault_(fault) {}
  const Machine& machine() const override { return sim_->machine(); }
  std::shared_ptr<runtime::Device> device() const override { return sim_->device(); }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override { return sim_->print(kernels); }
  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    std::vector<kernel::Function> broken(kernels.begin(), kernels.end());
    for (kernel::Function& f : broken) damage(f, f.body);
    return sim_->build(broken);
  }

 private:
  void damage(kernel::Function& f, ssa::Block& block) const {
    fault_(f, block);
    for (ssa::Inst& inst : block.insts) {
      for (ssa::Block& region : inst.regions) damage(f, region);
    }
  }
  std::shared_ptr<const target::Target> sim_;
  Fault fault_;
};

bool is(const ssa::Inst& inst, kernel::Op op) { return inst.op == static_cast<std::uint16_t>(op); }

// On a row for several programs, none of whose threads is idle.
std::string error_with(Broken::Fault fault) {
  const auto exe = executable(parsed(kRows), std::make_shared<Broken>(fault));
  if (!exe) return "not compiled";
  Tensors outputs;
  const auto status = exe->run({Tensor::zeros(DType::F32, {5, 300}).value()}, outputs);
  return status.ok() ? "" : status.error().what();
}

TEST(Sim, SizesOfAllKinds) {
  const auto exe = executable(parsed(kRows), simulated());
  std::mt19937 random(1);
  for (const std::int64_t n : {0, 1, 7, 64}) {
    const Tensors inputs{random_tensor(DType::F32, {n, 300}, random)};
    expect_same(run(*exe, inputs), graph::interpret(parsed(kRows), inputs).value());
  }
}

TEST(Sim, ScattersCombineNarrowFloats) {
  const graph::Graph graph = parsed(R"(graph @t(%0 "x": f16[n, 3], %1 "at": i64[4, 1], %2 "y": f16[4, 3]) -> (f16[n, 3], f16[n, 3]) where n in 0..64 {
    %3 = scatter_nd %0, %1, %2 {combine="add"} : f16[n, 3]
    %4 = scatter_nd %0, %1, %2 {combine="max"} : f16[n, 3]
    return %3, %4
  })");
  const auto exe = executable(graph, simulated());
  std::mt19937 random(1);
  const Tensors inputs{random_tensor(DType::F16, {5, 3}, random), i64({4, 1}, {0, -1, 0, 2}), random_tensor(DType::F16, {4, 3}, random)};
  expect_same(run(*exe, inputs), graph::interpret(graph, inputs).value());
}

TEST(Sim, NothingIsWrongWithWhatIsNotBroken) {
  EXPECT_EQ(error_with([](kernel::Function&, ssa::Block&) {}), "");
}

TEST(Sim, MissingBarriersAreRacesAtTheNode) {
  const std::string error = error_with([](kernel::Function&, ssa::Block& block) {
    std::erase_if(block.insts, [](const ssa::Inst& inst) { return is(inst, kernel::Op::Barrier); });
  });
  EXPECT_THAT(error, AllOf(HasSubstr("a race"), HasSubstr("without a barrier between"), HasSubstr("rows_0")));
}

TEST(Sim, MissingStoresLeaveSharedMemoryUnwritten) {
  const std::string error = error_with([](kernel::Function& f, ssa::Block& block) {
    std::erase_if(block.insts, [&](const ssa::Inst& inst) {
      return is(inst, kernel::Op::Store) && f.buffers[inst.imm].space == ssa::Space::OnChip;
    });
  });
  EXPECT_THAT(error, HasSubstr("on-chip memory that was never written"));
}

TEST(Sim, IndicesPastTheEndAreOutOfBounds) {
  const std::string error = error_with([](kernel::Function& f, ssa::Block& block) {
    for (ssa::Inst& inst : block.insts) {
      if (is(inst, kernel::Op::Const) && f.type(inst.results[0]).dtype == DType::I64 && inst.imm == 300) inst.imm = 304;
    }
  });
  EXPECT_THAT(error, AllOf(HasSubstr("out-of-range"), HasSubstr("of 1500 elements")));
}

TEST(Sim, BarriersInABranchDiverge) {
  const std::string error = error_with([](kernel::Function& f, ssa::Block& block) {
    if (&block != &f.body) return;
    ssa::Inst id, limit, below, branch, barrier;
    const auto value = [&](DType t) { return f.types.push_back(ssa::Type::scalar(t)), static_cast<ssa::ValueId>(f.types.size() - 1); };
    const auto op = [](kernel::Op o) { return static_cast<std::uint16_t>(o); };
    id.op = op(kernel::Op::ThreadId), id.results = {value(DType::I64)};
    limit.op = op(kernel::Op::Const), limit.imm = 3, limit.results = {value(DType::I64)};
    below.op = op(kernel::Op::Lt), below.operands = {id.results[0], limit.results[0]}, below.results = {value(DType::Bool)};
    barrier.op = op(kernel::Op::Barrier);
    branch.op = op(kernel::Op::If), branch.operands = below.results, branch.regions.resize(2);
    branch.regions[0].insts = {barrier};
    block.insts.insert(block.insts.begin(), {id, limit, below, branch});
  });
  EXPECT_THAT(error, AllOf(HasSubstr("divergent-barrier"), HasSubstr("only 3 of")));
}

}  // namespace
}  // namespace weft::compiler::testing
