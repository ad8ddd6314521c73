#!/usr/bin/env python3
"""Single kernels of f32 through Weft, torch, ONNX Runtime and OpenVINO, alternating in the same minutes.

    python bench/kernels.py [--threads 2] [--rounds 3] [--seconds 0.3] [--precision high] [--weights int8] [--write] [KIND:SIZES...]

dot: MxNxK, a product with weights alone. softmax, layer_norm and gelu: ROWSxCOLUMNS, along the columns. chain: ELEMENTS of
max(x a + b, 0) c, beside torch's copy of as many. linear: MxNxK, a product with weights, a bias and GELU. conv:
CHANNELSxSIDE, 3 x 3 with as many channels and a bias. Milliseconds of the best round's median, and ratios: above 1 Weft is faster. torch calls its own functions on its own
tensors, the others run the ONNX model. "of peak" is the share of what fused multiplications on registers reach here (`weft doctor
--measure`), of kernels that are made of them. --write puts the tables into docs/kernels.md. Attention is in attention.py.
"""
import argparse
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import weft_arguments  # noqa: E402
from peers import MEASURE, PEERS, add_form, add_rounds, best_of, run_peer, run_weft_bench  # noqa: E402
from table import Table, cpu_name, geomean, measured, threads_str  # noqa: E402

PRODUCTS = ["dot:" + sizes for sizes in [
    "128x128x128", "256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048", "128x768x768", "128x3072x768", "128x768x3072",
    "32x3072x768", "8x768x768", "8x3072x768", "1x3072x768", "1x768x3072", "1x16384x2048"]]
CASES = ["softmax:1536x128", "softmax:128x768", "softmax:512x1024", "layer_norm:128x768", "layer_norm:512x768", "gelu:128x768", "gelu:128x3072",
         "chain:16777216", "linear:128x768x768", "linear:128x3072x768", "linear:512x3072x768", "linear:32x3072x768",
         "conv:64x56", "conv:128x28", "conv:256x14", "conv:512x7"]

TORCH = {
    "softmax": "torch.softmax(x, -1)",
    "layer_norm": "F.layer_norm(x, x.shape[-1:], a, b)",
    "gelu": "F.gelu(x)",
    "chain": "torch.relu(x * a + b) * c",
    "dot": "F.linear(x, a)",
    "linear": "F.gelu(F.linear(x, a, b))",
    "conv": "F.conv2d(x, a, b, padding=1)",
}
TORCH_LOAD = """
torch.set_num_threads(threads)
import torch.nn.functional as F
x, a, b, c = (torch.from_numpy(feed[n]) if n in feed else None for n in ("x", "a", "b", "c"))
y = torch.empty_like(x)
def run():
    with torch.inference_mode(): {call}
"""


def arrays(kind, sizes, rng):
    """The input x, and the constants a, b, c, in torch's layouts."""
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    if kind in ("dot", "linear"):
        m, n, k = sizes
        return dict(x=normal(m, k), a=normal(n, k) / np.float32(k ** 0.5), b=normal(n))
    if kind == "conv":
        c, side = sizes
        return dict(x=normal(1, c, side, side), a=normal(c, c, 3, 3) / np.float32(3 * c ** 0.5), b=normal(c))
    if kind == "layer_norm":
        return dict(x=normal(*sizes), a=normal(sizes[1]), b=normal(sizes[1]))
    return dict(x=normal(*sizes), a=np.float32([1.5]), b=np.float32([0.25]), c=np.float32([2]))


def model(path, kind, data):
    from onnx import TensorProto, helper, numpy_helper, save
    node = helper.make_node
    gelu = lambda x: [node("Div", [x, "root"], ["g0"]), node("Erf", ["g0"], ["g1"]), node("Add", ["g1", "one"], ["g2"]),
                      node("Mul", [x, "g2"], ["g3"]), node("Mul", ["g3", "half"], ["y"])]
    nodes = {
        "softmax": lambda: [node("Softmax", ["x"], ["y"], axis=-1)],
        "layer_norm": lambda: [node("LayerNormalization", ["x", "a", "b"], ["y"], axis=-1)],
        "gelu": lambda: gelu("x"),
        "chain": lambda: [node("Mul", ["x", "a"], ["0"]), node("Add", ["0", "b"], ["1"]), node("Relu", ["1"], ["2"]), node("Mul", ["2", "c"], ["y"])],
        "linear": lambda: [node("Gemm", ["x", "a", "b"], ["l"], transB=1), *gelu("l")],
        "dot": lambda: [node("Gemm", ["x", "a"], ["y"], transB=1)],
        "conv": lambda: [node("Conv", ["x", "a", "b"], ["y"], pads=[1, 1, 1, 1])],
    }[kind]()
    used = {name for n in nodes for name in n.input}
    constants = {**{n: v for n, v in data.items() if n != "x"}, "root": np.float32(2 ** 0.5), "one": np.float32(1), "half": np.float32(0.5)}
    shape = [len(data["x"]), len(data["b"])] if kind in ("dot", "linear") else data["x"].shape
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in (("x", data["x"].shape), ("y", shape))]
    weights = [numpy_helper.from_array(v, n) for n, v in constants.items() if n in used]
    graph = helper.make_graph(nodes, kind, ports[:1], ports[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def run_torch(call, inputs, args):
    code = MEASURE.format(imports="import torch", load=TORCH_LOAD.format(call=call))
    done = subprocess.run([sys.executable, "-c", code, "", str(args.threads), str(args.seconds), str(inputs)], capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])["ms"] if done.returncode == 0 else float("nan")


def peak(args):
    """Multiply-adds' operations a second, in GFLOP/s."""
    text = subprocess.run([args.weft, "doctor", "--measure"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^{threads_str(args.threads)}\s+([0-9.]+) GFLOP/s", text, re.M)
    return float(found.group(1)) if found else float("nan")


def operations(kind, sizes):
    """Those of multiplications and their additions, where they are what takes the time."""
    if kind in ("dot", "linear"):
        return 2 * sizes[0] * sizes[1] * sizes[2]
    return 2 * 9 * sizes[0] ** 2 * sizes[1] ** 2 if kind == "conv" else float("nan")


def measure(case, peers, args, folder):
    kind, sizes = case
    data = arrays(kind, sizes, np.random.default_rng(0))
    path, inputs = folder / "kernel.onnx", folder / "inputs.npz"
    model(path, kind, data)
    np.savez(inputs, **data)
    only_x = folder / "x.npz"
    np.savez(only_x, x=data["x"])
    arguments = weft_arguments(path, {"x": data["x"]}, folder, args.threads)
    how = {"weft": lambda: run_weft_bench(arguments, args)["median_ms"],
           "torch": lambda: run_torch(TORCH[kind], inputs, args),
           "copy": lambda: run_torch("y.copy_(x)", inputs, args) if kind == "chain" else float("nan"),
           **{p: (lambda p=p: run_peer(p, path, only_x, args)["ms"]) for p in ("onnxruntime", "openvino")}}
    return best_of(args.rounds, {engine: how[engine] for engine in ["weft", *peers]})


def compare(cases, peers, args, most):
    """The table of some cases, and what it comes to."""
    shown = lambda value, form: form.format(value) if value == value else "-"
    table, ratios = Table(["kernel", "weft", *peers, "of peak", "to torch", "to the best"]), []
    with tempfile.TemporaryDirectory() as tmp:
        for case in cases:
            kind, sizes = case.split(":")
            sizes = [int(s) for s in sizes.split("x")]
            ms = measure((kind, sizes), peers, args, pathlib.Path(tmp))
            ratios.append(min((ms[p] for p in peers if p != "copy" and ms[p] == ms[p]), default=float("nan")) / ms["weft"])
            table.add([case, *(shown(ms[e], "{:.4f}") for e in ["weft", *peers]), shown(1e-4 * operations(kind, sizes) / ms["weft"] / most, "{:.0f} %"),
                       shown(ms.get("torch", float("nan")) / ms["weft"], "{:.2f}"), f"{ratios[-1]:.2f}"])
    told = f"Geometric mean: **{geomean(ratios):.2f} x the best peer**."
    print(f"\n{told}\n", flush=True)
    return table, told


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--write", action="store_true", help="put the tables of all cases into docs/kernels.md")
    add_rounds(parser)
    add_form(parser)
    args = parser.parse_args()
    peers = [p for p in ("torch", "onnxruntime", "openvino") if importlib.util.find_spec(PEERS[p][0].split()[-1])]
    most = peak(args)
    how = f"precision {args.precision}, {most:.0f} GFLOP/s at most, milliseconds."
    print(f"{cpu_name()}, {threads_str(args.threads)}, {how}\n")
    parts = {"": args.cases} if args.cases else {"products": PRODUCTS, "others": CASES}
    for part, cases in parts.items():
        copy = ["copy"] if "torch" in peers and any(case.startswith("chain:") for case in cases) else []
        table, told = compare(cases, peers + copy, args, most)
        if part and args.write:
            table.write("docs/kernels.md", f"{part}, {threads_str(args.threads)}", f"{measured(args)}, {how} {told}")


if __name__ == "__main__":
    main()
