#!/usr/bin/env python3
"""Quantised models through Weft and its peers, alternating in the same minutes: agreement and speed, one table.

    python bench/quantised.py [NAME...] [--threads 2] [--rounds 2] [--seconds 1] [--peers onnxruntime,openvino]

The zoo's own quantised models, and QDQ forms of others that onnxruntime.quantization makes first (u8 activations, i8
weights with a scale per channel, calibrated on the zoo's inputs). Under each engine stand its milliseconds and how far
its outputs are from exact ones, in standard deviations of the outputs: exact is Weft without the passes that work on
quantised products, in f32 and with every rounding where the model has it. The ratio is the best agreeing peer's time over
Weft's: above 1 Weft is faster. A peer agrees when it is no further off than --tolerance, or than twice Weft where bytes
that round the other way grow on their way.
"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import arguments, model_path, output_names, safe, weft_arguments, zoo  # noqa: E402
from peers import PEERS, add_form, run_peer, run_weft_bench  # noqa: E402
from table import Table, cpu_name, geomean, measured, threads_str  # noqa: E402

OWN = ["minilm_int8", "ddddocr_int8"]
PASSES = ["quantised", "quantised-bodies", "requantise", "tables"]
MADE = ["resnet50", "mobilenet_v3_large", "bert_base"]

OUTPUTS = """
import sys, numpy as np
path, threads, inputs, to = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
{imports}
feed = dict(np.load(inputs))
{load}
found = run()
np.savez(to, *(list(found.values()) if hasattr(found, "values") else found))
"""


def make_qdq(name, folder):
    """folder/NAME_qdq.onnx, made when it is missing."""
    path = folder / f"{name}_qdq.onnx"
    if path.exists():
        return path
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [zoo.inputs_of(name)]

        def get_next(self):
            return self.left.pop() if self.left else None

    with tempfile.TemporaryDirectory() as tmp:
        prepared = pathlib.Path(tmp) / "prepared.onnx"
        quant_pre_process(str(model_path(name, folder)), str(prepared), skip_symbolic_shape=True)
        quantize_static(str(prepared), str(path), Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return path


def weft_outputs(args, arguments, folder, names, *extra):
    out = folder / "weft"
    out.mkdir(exist_ok=True)
    subprocess.run([args.weft, "run", *arguments, *extra, "--output-dir", str(out)], capture_output=True, text=True, check=True)
    return [np.load(out / f"{safe(name)}.npy") for name in names]


def peer_outputs(peer, path, inputs, folder, args):
    imports, load = PEERS[peer]
    to = folder / f"{peer}.npz"
    subprocess.run([sys.executable, "-c", OUTPUTS.format(imports=imports, load=load), str(path), str(args.threads), str(inputs), str(to)],
                   capture_output=True, text=True, check=True)
    with np.load(to) as saved:
        return [saved[k] for k in saved.files]


def distance(exact, found):
    """The largest difference, in standard deviations of the exact output."""
    worst = 0.0
    for e, f in zip(exact, found):
        if e.shape != f.shape:
            return float("inf")
        if e.size:
            worst = max(worst, float(np.max(np.abs(e.astype(np.float64) - f)) / max(np.std(e.astype(np.float64)), 1e-30)))
    return worst


def measure(name, peers, args):
    made = name in MADE
    path = make_qdq(name, args.models) if made else model_path(name, args.models)
    inputs = zoo.inputs_of(name)
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        np.savez(folder / "inputs.npz", **inputs)
        arguments = weft_arguments(path, inputs, folder, args.threads)
        names = output_names(path)
        exact = weft_outputs(args, arguments, folder, names, *(x for off in PASSES for x in ("--off", off)))
        off = {"weft": distance(exact, weft_outputs(args, arguments, folder, names))}
        best = {}
        for peer in peers:
            off[peer] = distance(exact, peer_outputs(peer, path, folder / "inputs.npz", folder, args))
        for _ in range(args.rounds):
            for engine in ["weft", *peers]:
                if engine == "weft":
                    ms = run_weft_bench(arguments, args)["median_ms"]
                else:
                    ms = run_peer(engine, path, folder / "inputs.npz", args)["ms"]
                best[engine] = min(best.get(engine, ms), ms)
    return best, off


def main():
    parser = arguments(__doc__, OWN + MADE)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2)
    add_form(parser)
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    args = parser.parse_args()
    peers = [p for p in args.peers.split(",") if importlib.util.find_spec(p)]
    print(f"{cpu_name()}, {threads_str(args.threads)}; ms a run (standard deviations from the exact result)\n")
    table, ratios = Table(["model", "weft", *peers, "best peer / weft"]), []
    for name in args.names:
        best, off = measure(name, peers, args)
        agreeing = [best[p] for p in peers if off[p] <= max(args.tolerance, 2 * off["weft"])]
        ratio = min(agreeing) / best["weft"] if agreeing else float("nan")
        ratios.append(ratio)
        cells = [f"{best[e]:.2f} ({off[e]:.1g})" for e in ["weft", *peers]]
        table.add([name + ("_qdq" if name in MADE else ""), *cells, f"{ratio:.2f}"])
    told = f"Geometric mean: **{geomean(ratios):.2f} x the best peer that agrees**."
    print("\n" + told)
    if args.write:
        table.write("docs/performance.md", "quantised", f"{measured(args)}, milliseconds a run (standard deviations from the exact result). {told}")


if __name__ == "__main__":
    main()
