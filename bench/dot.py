#!/usr/bin/env python3
"""Products of f32 matrices, constant on the right, through Weft and its peers, alternating in the same minutes.

    python bench/dot.py [--threads 2] [--rounds 3] [--seconds 0.3] [--peers onnxruntime,openvino] [--precision medium]
                         [--weights int8] [MxNxK...]

Prints GFLOP/s of each engine (the best round's median), Weft's share of what fused multiplications on registers reach
here (`weft doctor --measure`), and the ratio to the best peer: above 1 Weft is faster.
"""
import argparse
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import cpu_name, weft_arguments  # noqa: E402
from peers import PEERS, add_form, add_rounds, best_of, geomean, run_peer, run_weft_bench  # noqa: E402

SHAPES = ["128x128x128", "256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048", "128x768x768", "128x3072x768",
          "128x768x3072", "32x3072x768", "8x768x768", "8x3072x768", "1x3072x768", "1x768x3072", "1x16384x2048"]


def model(path, m, n, k, rng):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    weights = numpy_helper.from_array(rng.standard_normal((k, n)).astype(np.float32), "w")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [m, k]), ("y", [m, n]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "dot", ports[:1], ports[1:], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def peak(weft, threads):
    text = subprocess.run([weft, "doctor", "--measure"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^{threads} threads?\s+([0-9.]+) GFLOP/s", text, re.M)
    return float(found.group(1)) if found else float("nan")


def measure(shape, peers, args, folder, rng):
    m, n, k = map(int, shape.split("x"))
    path = folder / f"{shape}.onnx"
    model(path, m, n, k, rng)
    inputs = {"x": rng.standard_normal((m, k)).astype(np.float32)}
    np.savez(folder / "inputs.npz", **inputs)
    arguments = weft_arguments(path, inputs, folder, args.threads)
    how = {"weft": lambda: run_weft_bench(arguments, args)["median_ms"],
           **{p: (lambda p=p: run_peer(p, path, folder / "inputs.npz", args)["ms"]) for p in peers}}
    return {engine: 2e-6 * m * n * k / ms for engine, ms in best_of(args.rounds, how).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=SHAPES)
    add_rounds(parser)
    add_form(parser)
    parser.add_argument("--peers", default="onnxruntime,openvino", help=", ".join(PEERS))
    args = parser.parse_args()
    peers = [p for p in args.peers.split(",") if importlib.util.find_spec(PEERS[p][0].split()[-1])]
    most = peak(args.weft, args.threads)
    print(f"{cpu_name()}, {args.threads} threads, {most:.0f} GFLOP/s at most; GFLOP/s\n")
    print("| M x N x K | weft | of peak | " + " | ".join(peers) + " | ratio |\n|" + "---|" * (4 + len(peers)))
    ratios, rng = [], np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as tmp:
        for shape in args.shapes:
            rate = measure(shape, peers, args, pathlib.Path(tmp), rng)
            ratios.append(rate["weft"] / max(rate[p] for p in peers) if peers else float("nan"))
            print(f"| {shape} | {rate['weft']:.0f} | {100 * rate['weft'] / most:.0f} % | "
                  + " | ".join(f"{rate[p]:.0f}" for p in peers) + f" | {ratios[-1]:.2f} |", flush=True)
    print(f"\ngeometric mean {geomean(ratios):.2f} x the best peer")


if __name__ == "__main__":
    main()
