// Attention in Loop IR: found where it is one, and equal to the graph's own meaning in blocks of any size.
#include "loop/attention_graphs.h"

#include "graph/graph.h"
#include "loop/lower/lower.h"
#include "loop/text.h"

namespace weft::loop {
namespace {

using weft::testing::AttentionCase;
using weft::testing::AttentionInputs;
using weft::testing::Mask;

AttentionChooser blocks_of(std::int64_t keys) {
  return [keys](const AttentionShape&) { return AttentionPlan{keys, "asked for"}; };
}

const Step* the_step(const Partition& partition) {
  const Step* found = nullptr;
  for (const Step& step : partition.steps) {
    if (step.group.name == "attention") found = &step;
  }
  return found;
}

void expect_near(const Tensor& got, const Tensor& want, const std::string& about) {
  ASSERT_EQ(got.shape(), want.shape()) << about;
  double largest = 1e-30;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want.f64(i))) largest = std::max(largest, std::fabs(want.f64(i)));
  }
  for (std::int64_t i = 0; i < want.size(); ++i) {
    const double a = got.f64(i), b = want.f64(i);
    const bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-5 * largest;
    ASSERT_TRUE(same) << "element " << i << " is " << a << " instead of " << b << " " << about;
  }
}

void check(const AttentionCase& c, std::int64_t block, const AttentionInputs& in, const AttentionChooser& chooser = {}) {
  const graph::Graph g = weft::testing::attention_graph(c);
  auto partition = lower(g, {chooser ? chooser : blocks_of(block)});
  ASSERT_TRUE(partition.ok());
  ASSERT_EQ(partition->steps.size(), 1u) << graph::print(g);
  const Step* step = the_step(*partition);
  ASSERT_NE(step, nullptr);
  const Group& group = step->group;
  const std::string text = print(group);
  ASSERT_TRUE(verify(group).ok()) << verify(group).error().what() << "\n" << text;
  auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.error().what() << "\n" << text;
  EXPECT_EQ(print(*again), text);
  const auto inputs = weft::testing::attention_inputs(c, in);
  auto want = graph::interpret(g, inputs);
  ASSERT_TRUE(want.ok()) << want.error().what();
  Tensor out = Tensor::zeros(DType::F32, (*want)[0].shape()).value();
  std::vector<BufferView> buffers;
  for (std::size_t p = 0; p < group.params.size(); ++p) {
    if (group.params[p].role == Role::OnChip) {
      buffers.push_back({nullptr, 0});
    } else if (group.params[p].role == Role::Output) {
      buffers.push_back({out.mutable_data(), out.size()});
    } else {
      const Tensor& t = inputs[step->args[p]];
      buffers.push_back({const_cast<void*>(t.data()), t.size()});
    }
  }
  const Bindings bindings{{"b", in.batch}, {"n", in.rows}, {"m", in.keys}};
  auto status = interpret(group, buffers, bindings);
  ASSERT_TRUE(status.ok()) << status.error().what() << "\n" << text;
  expect_near(out, (*want)[0], text);
}

TEST(Attention, BlocksOfAnySize) {
  for (const std::int64_t block : {1, 3, 4, 16}) {
    for (const std::int64_t keys : {0, 1, 3, 7, 12}) {
      AttentionInputs in;
      in.batch = 2, in.keys = keys, in.rows = 4;
      check({"b", "n", "m"}, block, in);
    }
  }
}

TEST(Attention, KnownSizes) {
  AttentionInputs in;
  for (const std::int64_t block : {4, 7, 8}) check({"1", "5", "7"}, block, in);
  in.rows = 1;
  check({"1", "1", "7"}, 4, in);
  in.keys = 1;
  check({"1", "1", "1"}, 4, in);
  in.rows = 0;
  check({"1", "n", "m"}, 4, in);
}

TEST(Attention, MasksHeadsAndCaps) {
  unsigned seed = 1;
  for (const Mask mask : {Mask::Keys, Mask::Full, Mask::Causal}) {
    for (const bool zero : {false, true}) {
      for (const double hidden : {0.3, 1.0}) {
        AttentionInputs in;
        in.hidden = hidden, in.keys = 9, in.seed = seed++;
        AttentionCase c;
        c.mask = mask, c.nan_to_zero = zero, c.heads = 2, c.group = 3, c.softcap = zero, c.value_size = 5;
        check(c, 4, in);
        check(c, 16, in);
      }
    }
  }
}

TEST(Attention, SpecialValues) {
  for (unsigned seed = 1; seed < 30; ++seed) {
    AttentionInputs in;
    in.special = seed % 3 == 0 ? 0.2 : 0.02, in.scale = seed % 2 == 0 ? 1 : 1e4, in.seed = seed, in.keys = 11;
    AttentionCase c;
    c.mask = static_cast<Mask>(seed % 4), c.nan_to_zero = seed % 5 == 0;
    check(c, 4, in);
  }
}

TEST(Attention, PowersOfTwo) {
  for (const Mask mask : {Mask::None, Mask::Keys, Mask::Full, Mask::Causal}) {
    for (const bool cap : {false, true}) {
      AttentionCase c;
      c.mask = mask, c.softcap = cap, c.nan_to_zero = cap;
      AttentionInputs in;
      in.keys = 9, in.special = cap ? 0.02 : 0;
      for (const std::int64_t block : {4, 16}) {
        check(c, block, in, [block](const AttentionShape&) { return AttentionPlan{block, "asked for", false, 0, true}; });
      }
    }
  }
}

// What is needed elsewhere is not hidden in the kernel.
TEST(Attention, NotWhereScoresAreUsed) {
  graph::Graph g = weft::testing::attention_graph({});
  const graph::ValueId y = g.outputs()[0], p = g.def(y)->operands[0];
  g.set_outputs({y, p});
  auto partition = lower(g, {blocks_of(4)});
  ASSERT_TRUE(partition.ok());
  EXPECT_EQ(the_step(*partition), nullptr);
}

TEST(Attention, NotWithoutAPlan) {
  const graph::Graph g = weft::testing::attention_graph({});
  auto partition = lower(g);
  ASSERT_TRUE(partition.ok());
  EXPECT_EQ(the_step(*partition), nullptr);
}

}  // namespace
}  // namespace weft::loop
