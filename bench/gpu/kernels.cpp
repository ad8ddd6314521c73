// The kernels that bench/gpu/kernels.py compares with Triton's, as PTX: FOLDER/NAME.ptx, and a line "NAME milliseconds"
// each, the best of several times from the C++ function to the text.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "flash_attention.h"
#include "half_attention.h"

namespace {

using namespace weft::tile;
using examples::attention;
using examples::attention_f16;

constexpr int kWidth = 1024;

void vector_add(In<float> x, In<float> y, Out<float> z, Int n) {
  const Tile at = program_id() * kWidth + lanes(kWidth), inside = at < n;
  store(z, at, load(x, at, inside) + load(y, at, inside), inside);
}

void softmax(In<float> x, Out<float> y, Int n) {
  const Tile column = lanes(kWidth), inside = column < n, at = program_id() * n + column;
  const Tile v = where(inside, load(x, at, inside), -INFINITY);
  const Tile e = exp(v - max(v));
  store(y, at, e / sum(e), inside);
}

void layer_norm(In<float> x, In<float> scale, In<float> shift, Out<float> y, Int n) {
  const Tile column = lanes(kWidth), inside = column < n, at = program_id() * n + column;
  const auto mean = [&](const Tile& v) { return sum(where(inside, v, 0.0f)) / cast<float>(n); };
  const Tile v = load(x, at, inside);
  const Tile centred = v - mean(v);
  store(y, at, centred * rsqrt(mean(centred * centred) + 1e-5f) * load(scale, column, inside) + load(shift, column, inside), inside);
}

template <int R, int C, int K>
void matmul(In<float> a, In<float> b, Out<float> c, Int m, Int n, Int depth) {
  const Tile across = (n + (C - 1)) / C;
  const Tile i = program_id() / across * R + rows(R), j = program_id() % across * C + lanes(C);
  const Matrix left(a, m, depth), right(b, depth, n), out(c, m, n);
  Var acc = zeros<float>(R, C);
  for (Tile k : range(0, depth, K)) acc = dot(left.load(i, k + lanes(K)), right.load(k + rows(K), j), acc);
  out.store(i, j, acc);
}

// The same on narrower floats, summed in f32; sizes are multiples of 16, and say so.
template <class T, int R, int C, int K>
void matmul_narrow(In<T> a, In<T> b, Out<float> c, Int m, Int n16, Int depth16) {
  const Tile n = n16 * 16, depth = depth16 * 16, across = (n + (C - 1)) / C;
  const Tile i = program_id() / across * R + rows(R), j = program_id() % across * C + lanes(C);
  const Matrix left(a, m, depth), right(b, depth, n), out(c, m, n);
  Var acc = zeros<float>(R, C);
  for (Tile k : range(0, depth, K)) acc = dot(left.load(i, k + lanes(K)), right.load(k + rows(K), j), acc);
  out.store(i, j, acc);
}

// Of floats of 8 bits, whose right matrix lies by columns, as units read it.
template <class T, int R, int C, int K>
void matmul_columns(In<T> a, In<T> b, Out<float> c, Int m, Int n, Int depth16) {
  const Tile depth = depth16 * 16, across = (n + (C - 1)) / C;
  const Tile i = program_id() / across * R + rows(R), first = program_id() % across * C;
  const Matrix left(a, m, depth), right(b, n, depth), out(c, m, n);
  Var acc = zeros<float>(R, C);
  for (Tile k : range(0, depth, K)) acc = dot(left.load(i, k + lanes(K)), transpose(right.load(first + rows(C), k + lanes(K))), acc);
  out.store(i, first + lanes(C), acc);
}

struct Timed {
  std::string name;
  std::function<Kernel()> record;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: weft_bench_gpu_kernels TARGET FOLDER\n");
    return 2;
  }
  weft::CompileOptions options;
  options.target = argv[1];
  const Timed all[] = {{"vector_add", [] { return kernel("vector_add", vector_add); }},
                       {"softmax", [] { return kernel("softmax", softmax); }},
                       {"layer_norm", [] { return kernel("layer_norm", layer_norm); }},
                       {"matmul", [] { return kernel("matmul", matmul<64, 64, 16>); }},
                       {"attention", [] { return kernel("attention", attention<32, 32, 64>); }},
                       {"matmul_f16", [] { return kernel("matmul_f16", matmul_narrow<F16, 64, 64, 32>); }},
                       {"matmul_f16_large", [] { return kernel("matmul_f16_large", matmul_narrow<F16, 128, 128, 32>); }},
                       {"matmul_bf16", [] { return kernel("matmul_bf16", matmul_narrow<BF16, 128, 128, 32>); }},
                       {"matmul_bf16_wide", [] { return kernel("matmul_bf16_wide", matmul_narrow<BF16, 128, 256, 32>); }},
                       {"matmul_f8", [] { return kernel("matmul_f8", matmul_columns<F8E4M3, 128, 128, 64>); }},
                       {"attention_f16", [] { return kernel("attention_f16", attention_f16<64, 64, 64>); }},
                       {"attention_f16_full", [] { return kernel("attention_f16_full", attention_f16<64, 64, 64, false>); }},
                       {"attention_f16_128", [] { return kernel("attention_f16_128", attention_f16<64, 32, 128>); }},
                       {"attention_f16_128_full", [] { return kernel("attention_f16_128_full", attention_f16<64, 32, 128, false>); }}};
  for (const Timed& timed : all) {
    double best = INFINITY;
    std::string text;
    for (int round = 0; round < 3; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      const auto made = timed.record().text("source", options);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      if (!made.ok()) {
        std::fprintf(stderr, "%s: %s\n", timed.name.c_str(), made.error().what());
        break;
      }
      best = std::min(best, took.count());
      text = *made;
    }
    if (text.empty()) continue;
    std::ofstream(std::string(argv[2]) + "/" + timed.name + ".ptx") << text;
    std::printf("%s %.3f\n", timed.name.c_str(), best);
  }
}
