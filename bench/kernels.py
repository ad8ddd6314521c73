#!/usr/bin/env python3
"""Matrix products of Weft, ONNX Runtime and numpy, alternating in the same minutes, with their share of the machine's
fp32 multiply-add peak, which a register-only loop measures in the same run.

    python bench/kernels.py --weft build/release/weft [--threads 1] [--seconds 0.3] [--rounds 3] [MxNxK...]

The right operand is constant, as weights are; `--dynamic` makes it an input. Of every engine the best of the rounds'
10th percentiles counts: other processes only ever add time.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

import numpy as np

SHAPES = ["128x128x128", "256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048", "128x768x768", "128x3072x768",
          "128x768x3072", "1x3072x768", "8x3072x768", "32x768x768", "3136x64x256", "196x1024x256", "49x2048x512"]

PEAK = r"""
#include <chrono>
#include <cstdio>
#ifdef __AVX512F__
typedef float V __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef float V __attribute__((vector_size(32)));
#else
typedef float V __attribute__((vector_size(16)));
#endif
int main() {
  constexpr int kSums = 12, kSteps = 2000, lanes = sizeof(V) / 4;
  V sums[kSums], x = V{} + 0.999f, y = V{} + 1e-3f;
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = V{} + static_cast<float>(i);
  double best = 0;
  for (int round = 0; round < 4000; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < kSteps; ++k) {
#pragma GCC unroll 12
      for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * x + y;
      __asm__ volatile("" ::"r"(k));
    }
    double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    double rate = 2.0 * kSums * kSteps * lanes / ns;
    best = rate > best ? rate : best;
  }
  float sum = 0;
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sum += sums[i][0];
  std::printf("%.2f %g\n", best, sum);
}
"""


def measured_peak(folder):
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        return None
    (folder / "peak.cpp").write_text(PEAK)
    subprocess.run([compiler, "-O2", "-march=native", "-ffp-contract=fast", "-o", folder / "peak", folder / "peak.cpp"],
                   check=True)
    done = subprocess.run([folder / "peak"], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def model(shape, dynamic, folder):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    m, n, k = shape
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [m, k])]
    if dynamic:
        inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [k, n]))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "dot", inputs,
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [m, n])],
                              [] if dynamic else [numpy_helper.from_array(w, "w")])
    path = folder / "dot.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path, x, w


def tenth(run, seconds):
    run()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[len(times) // 10]


def weft_ms(weft, path, threads, seconds):
    done = subprocess.run([weft, "bench", path, "--threads", str(threads), "--json", "--seconds", str(seconds)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["p10_ms"]


def measure(shape, args, folder):
    import onnxruntime as ort
    path, x, w = model(shape, args.dynamic, folder)
    options = ort.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {"x": x, "w": w} if args.dynamic else {"x": x}
    engines = {"weft": lambda: weft_ms(args.weft, path, args.threads, args.seconds),
               "ort": lambda: tenth(lambda: session.run(None, feed), args.seconds),
               "numpy": lambda: tenth(lambda: x @ w, args.seconds)}
    return {name: min(run() for _ in range(args.rounds)) for name, run in engines.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=SHAPES)
    parser.add_argument("--weft", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dynamic", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        peak = measured_peak(folder)
        print(f"multiply-add peak of one core: {peak} GFLOP/s; {args.threads} threads; numpy uses its own")
        print("| M x N x K | Weft ms | GFLOP/s | of the peak | ORT ms | numpy ms | ORT / Weft |\n|---|---|---|---|---|---|---|")
        for text in args.shapes:
            shape = tuple(int(s) for s in text.split("x"))
            ms = measure(shape, args, folder)
            rate = 2e-6 * np.prod(shape, dtype=float) / ms["weft"]
            share = f"{100 * rate / (peak * args.threads):.0f} %" if peak else "-"
            print(f"| {text} | {ms['weft']:.3f} | {rate:.1f} | {share} | {ms['ort']:.3f} | {ms['numpy']:.3f} "
                  f"| {ms['ort'] / ms['weft']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
