#!/usr/bin/env python3
"""Scaled dot product attention through Weft, torch's fused function and ONNX Runtime, alternating in the same minutes.

    python bench/attention.py [--threads 2] [--rounds 3] [--seconds 0.3] [--write] [CASE...]

A case is KIND:HEADSxROWSxKEYSxSIZE; kinds are plain, causal (an additive mask, an input of the model) and decode (one
query row, keys and values of the past as inputs). The models are written as exporters write them: MatMul, Mul, Add,
Softmax, MatMul. Peers that are not installed are left out. Milliseconds of the best round's median; the ratio is the best
peer's time over Weft's: above 1 Weft is faster. --unfused adds a column with Weft's fusion of attention off.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import weft_arguments  # noqa: E402
from peers import MEASURE, add_rounds, best_of, run_peer  # noqa: E402
from table import Table, cpu_name, geomean, measured, threads_str  # noqa: E402

CASES = [f"{kind}:12x{n}x{n}x{d}" for d in (64, 128) for kind in ("plain", "causal") for n in (128, 512, 2048)] + [
    f"decode:12x1x{n}x{d}" for d in (64, 128) for n in (128, 512, 2048)]

TORCH = ("import torch", """
torch.set_num_threads(threads)
q, k, v = (torch.from_numpy(feed[x]) for x in ("q", "k", "v"))
causal = "mask" in feed
attend = torch.nn.functional.scaled_dot_product_attention
def run():
    with torch.no_grad(): attend(q, k, v, is_causal=causal)
""")


def model(path, kind, heads, rows, keys, size):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    scale = numpy_helper.from_array(np.float32(size ** -0.5), "scale")
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["q", "kt"], ["s0"]),
             helper.make_node("Mul", ["s0", "scale"], ["s1"])]
    last = "s1"
    shapes = {"q": [1, heads, rows, size], "k": [1, heads, keys, size], "v": [1, heads, keys, size]}
    if kind == "causal":
        nodes.append(helper.make_node("Add", ["s1", "mask"], ["s2"]))
        shapes["mask"], last = [1, 1, rows, keys], "s2"
    nodes += [helper.make_node("Softmax", [last], ["p"], axis=-1), helper.make_node("MatMul", ["p", "v"], ["y"])]
    port = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "attention", [port(n, s) for n, s in shapes.items()], [port("y", shapes["q"])], [scale])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    rng = np.random.default_rng(0)
    inputs = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    if kind == "causal":
        inputs["mask"] = np.triu(np.full((rows, keys), -np.inf, np.float32), 1)[None, None]
    return inputs


def run_weft(arguments, args, fused=True):
    env = dict(os.environ) if fused else {**os.environ, "WEFT_FUSION_OFF": "attention"}
    done = subprocess.run([args.weft, "bench", *arguments, "--json", "--no-cache", "--seconds", str(args.seconds)],
                          capture_output=True, text=True, env=env)
    return json.loads(done.stdout)["median_ms"] if done.returncode == 0 else float("nan")


def run_torch(inputs, args):
    imports, load = TORCH
    done = subprocess.run([sys.executable, "-c", MEASURE.format(imports=imports, load=load), "", str(args.threads),
                           str(args.seconds), str(inputs)], capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])["ms"] if done.returncode == 0 else float("nan")


def measure(case, engines, args, folder):
    kind, sizes = case.split(":")
    path = folder / "attention.onnx"
    inputs = model(path, kind, *map(int, sizes.split("x")))
    np.savez(folder / "inputs.npz", **inputs)
    arguments = weft_arguments(path, inputs, folder, args.threads)
    how = {"weft": lambda: run_weft(arguments, args), "unfused": lambda: run_weft(arguments, args, fused=False),
           "torch": lambda: run_torch(folder / "inputs.npz", args),
           "onnxruntime": lambda: run_peer("onnxruntime", path, folder / "inputs.npz", args)["ms"]}
    return best_of(args.rounds, {engine: how[engine] for engine in engines})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    add_rounds(parser)
    parser.add_argument("--unfused", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/kernels.md")
    args = parser.parse_args()
    peers = [p for p in ("torch", "onnxruntime") if importlib.util.find_spec(p)]
    engines = ["weft", *(["unfused"] if args.unfused else []), *peers]
    print(f"{cpu_name()}, {threads_str(args.threads)}; ms\n")
    table, ratios = Table(["case", *engines, *(f"to {p}" for p in peers)]), {p: [] for p in peers}
    with tempfile.TemporaryDirectory() as tmp:
        for case in args.cases:
            ms = measure(case, engines, args, pathlib.Path(tmp))
            for p in peers:
                ratios[p].append(ms[p] / ms["weft"])
            table.add([case, *(f"{ms[e]:.3f}" for e in engines), *(f"{ratios[p][-1]:.2f}" for p in peers)])
    told = "Geometric means: " + ", ".join(f"**{geomean(r):.2f} x {p}**" for p, r in ratios.items()) + "."
    print("\n" + told)
    if args.write:
        table.write("docs/kernels.md", "attention", f"{measured(args)}, milliseconds. {told}")


if __name__ == "__main__":
    main()
