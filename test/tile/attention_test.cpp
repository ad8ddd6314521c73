// Attention as tile programs, for machines of several widths: equal to the graph's own meaning, within their buffers.
#include "loop/attention_graphs.h"

#include <cstring>

#include "loop/lower/lower.h"
#include "schedule/choices.h"
#include "schedule/schedule.h"
#include "tile/lower.h"

namespace weft::tile {
namespace {

using weft::testing::AttentionCase;
using weft::testing::AttentionInputs;
using weft::testing::Mask;

Machine machine_of(int bits) {
  Machine m;
  m.vector_bits = bits;
  m.vector_registers = bits == 512 ? 32 : 16;
  m.has_fma = bits > 128;
  m.l1_bytes = 1 << 12;  // small, so that blocks are
  return m;
}

// The tile program's result, in a buffer with guards around it.
void run(const loop::Step& step, const schedule::Record& record, const std::vector<Tensor>& inputs, const Bindings& bindings,
         Tensor& out, const std::string& about) {
  auto lowered = lower(step.group, record);
  ASSERT_TRUE(lowered.ok()) << lowered.error().what() << "\n" << about;
  ASSERT_TRUE(verify(lowered->function).ok()) << about;
  const std::string text = ssa::print(lowered->function);
  auto again = ssa::parse(text, op_table());
  ASSERT_TRUE(again.ok()) << again.error().what();
  ASSERT_EQ(ssa::print(*again), text);
  std::vector<BufferView> buffers;
  for (const loop::ParamId p : lowered->buffers) {
    const bool written = step.group.params[p].role == loop::Role::Output;
    Tensor& t = written ? out : const_cast<Tensor&>(inputs[step.args[p]]);
    buffers.push_back({written ? t.mutable_data() : const_cast<void*>(t.data()), t.size()});
  }
  std::vector<std::int64_t> sizes;
  for (const Dim& d : lowered->sizes) sizes.push_back(d.evaluate(bindings).value());
  auto status = interpret(lowered->function, buffers, sizes, lowered->grid.evaluate(bindings).value());
  ASSERT_TRUE(status.ok()) << status.error().what() << "\n" << about;
}

void check(const AttentionCase& c, const AttentionInputs& in) {
  const graph::Graph g = weft::testing::attention_graph(c);
  const auto inputs = weft::testing::attention_inputs(c, in);
  auto want = graph::interpret(g, inputs);
  ASSERT_TRUE(want.ok()) << want.error().what();
  const Bindings bindings{{"b", in.batch}, {"n", in.rows}, {"m", in.keys}};
  for (const int bits : {128, 256, 512}) {
    const Machine machine = machine_of(bits);
    auto partition = loop::lower(g, schedule::lowering_choices(machine));
    ASSERT_TRUE(partition.ok());
    ASSERT_EQ(partition->steps.size(), 1u);
    const loop::Step& step = partition->steps[0];
    const auto schedule = schedule::schedule(step.group, machine, g.facts);
    for (const auto& variant : schedule.variants) {
      const std::string about = schedule::print(variant.record) + "\n" + loop::print(step.group);
      Tensor out = Tensor::zeros(DType::F32, (*want)[0].shape()).value();
      ASSERT_NO_FATAL_FAILURE(run(step, variant.record, inputs, bindings, out, about));
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const double a = out.f64(i), b = (*want)[0].f64(i);
        const bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-5 * std::max(1.0, std::fabs(b));
        ASSERT_TRUE(same) << "element " << i << " is " << a << " instead of " << b << "\n" << about;
      }
    }
  }
}

TEST(Attention, OddSizes) {
  for (const std::int64_t rows : {0, 1, 5, 33}) {
    for (const std::int64_t keys : {0, 1, 31, 70}) {
      AttentionInputs in;
      in.batch = 2, in.rows = rows, in.keys = keys;
      AttentionCase c{"b", "n", "m"};
      c.size = 16, c.value_size = 18;
      check(c, in);
    }
  }
}

TEST(Attention, Masks) {
  unsigned seed = 1;
  for (const Mask mask : {Mask::Keys, Mask::Full, Mask::Causal}) {
    AttentionInputs in;
    in.rows = 19, in.keys = 41, in.seed = seed++;
    AttentionCase c;
    c.mask = mask, c.nan_to_zero = mask == Mask::Keys, c.group = 2;
    check(c, in);
  }
}

TEST(Attention, KnownSizes) {
  AttentionInputs in;
  in.rows = 1, in.keys = 80;
  AttentionCase c{"1", "1", "m"};
  c.size = 32, c.value_size = 16;
  check(c, in);
  in.rows = 49, in.keys = 49;
  check({"1", "49", "49"}, in);
  in.special = 0.02;
  check({"1", "49", "49"}, in);
}

}  // namespace
}  // namespace weft::tile
