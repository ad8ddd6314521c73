#include <weft/tile.h>

#include <cstdio>

int main(int, char** argv) {
  auto model = weft::load(argv[1]).value();
  auto program = weft::compile(model).value();
  std::vector<float> x(21, -1.5f);
  x[20] = 2;
  auto outputs = program.run({weft::Tensor::view(weft::DType::F32, {21}, x.data(), nullptr)}).value();
  std::printf("%g %g\n", outputs[0].f64(0), outputs[0].f64(20));

  using namespace weft::tile;
  const Kernel twice = kernel("twice", [](InOut<float> v) { store(v, program_id(), load(v, program_id()) * 2.0f); });
  twice.compile().value().run(21, {x}).value();
  std::printf("%g\n", x[20]);
}
