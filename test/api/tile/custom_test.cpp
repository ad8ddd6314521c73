// A model with an operator that a kernel of the caller's computes.
#include <gmock/gmock.h>

#include "weft/tile.h"

namespace weft::tile {
namespace {

using testing::HasSubstr;

CustomOp scaled_relu() {
  CustomOp op;
  op.domain = "test.weft";
  op.name = "ScaledRelu";
  op.kernel = kernel("scaled_relu", [](In<float> x, Out<float> y, Int n) {
    const Tile i = program_id() * 16 + lanes(16);
    store(y, i, maximum(load(x, i, i < n), 0.0f) * 3.0f, i < n);
  });
  op.results = [](const std::vector<Port>& inputs) { return std::vector<Port>{inputs.at(0)}; };
  op.launch = [](const std::vector<Tensor>& inputs, const std::vector<Tensor>&) {
    const std::int64_t n = inputs[0].size();
    return CustomOp::Launch{(n + 15) / 16, {n}};
  };
  return op;
}

TEST(TileCustomOp, RunsInAModel) {
  const std::string path = WEFT_SOURCE_DIR "/test/api/tile/custom_op.onnx";
  const auto before = weft::load(path);
  ASSERT_FALSE(before.ok());
  EXPECT_THAT(before.error().what(), HasSubstr("ScaledRelu"));

  CustomOp broken = scaled_relu();
  broken.kernel = kernel("broken", [](In<float> x) { store(x, 0, 1.0f); });
  EXPECT_FALSE(register_op(broken).ok());
  broken = scaled_relu();
  broken.launch = {};
  EXPECT_THAT(register_op(broken).error().what(), HasSubstr("how to launch its kernel"));

  ASSERT_TRUE(register_op(scaled_relu()).ok());
  EXPECT_THAT(register_op(scaled_relu()).error().what(), HasSubstr("error[custom-op-exists] at 'test.weft::ScaledRelu'"));

  const Model model = weft::load(path).value();
  std::vector<float> x(35);
  for (int i = 0; i < 35; ++i) x[i] = static_cast<float>(i - 17);
  for (const std::string target : {"cpu", "ref", "opencl"}) {
    CompileOptions options;
    options.target = target;
    const Program program = compile(model, options).value();
    for (const int rows : {7, 0, 3}) {
      const auto y = program.run({Tensor::view(DType::F32, {rows, 5}, x.data(), nullptr)}).value();
      ASSERT_EQ(y[0].shape(), (std::vector<std::int64_t>{rows, 5})) << target;
      for (int i = 0; i < rows * 5; ++i) EXPECT_EQ(y[0].f64(i), -6 * std::max(x[i], 0.0f)) << target << " " << i;
    }
  }
}

}  // namespace
}  // namespace weft::tile
