#include <weft/weft.h>

#include <cstdio>

int main(int, char** argv) {
  auto model = weft::load(argv[1]).value();
  auto program = weft::compile(model).value();
  std::vector<float> x(21, -1.5f);
  x[20] = 2;
  auto outputs = program.run({weft::Tensor::view(weft::DType::F32, {21}, x.data(), nullptr)}).value();
  std::printf("%g %g\n", outputs[0].f64(0), outputs[0].f64(20));
}
