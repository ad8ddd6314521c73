#include <weft/weft.h>

#include <cstdio>

int main(int, char** argv) {
  weft::Model model = weft::load(argv[1]).value();        // an ONNX file; value() throws weft::Error
  weft::Program program = weft::compile(model).value();   // machine code for this CPU, any size in range
  std::vector<weft::Tensor> inputs;
  for (const weft::Port& port : program.inputs()) {
    std::vector<std::int64_t> shape;
    for (const weft::Dim& d : port.shape) shape.push_back(d.is_const() ? d.value() : 1);
    inputs.push_back(weft::Tensor::zeros(port.dtype, shape).value());
  }
  for (const weft::Tensor& y : program.run(inputs).value()) std::printf("%s\n", weft::shape_str(y.shape()).c_str());
}
