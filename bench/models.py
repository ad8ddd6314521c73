#!/usr/bin/env python3
"""Every model of the zoo through Weft and ONNX Runtime in the same run: agreement, speed, memory, one table.

    python bench/models.py --weft build/release/weft --models .deps/zoo [NAME...] [--threads 2] [--seconds 1] [--write]

Models that are missing are made or fetched first (zoo/zoo.py). Weft and ONNX Runtime run alternately, each in a process
of its own, on the zoo's deterministic inputs. --write puts the table into docs/models.md, and its summary into
README.md too. Exit 1 when an output
disagrees beyond rtol 1e-3 and atol 1e-4 of the output's largest magnitude (or 4 x the recorded `noise`), to which a
model's recorded `peer_error` is added: how far ONNX Runtime's own output is off, see zoo/README.md. Exit 1, too, when what a level
of the compiler prints does not parse back to itself.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from table import ROOT, geomean, measured, replace_part  # noqa: E402

sys.path.insert(0, str(ROOT / "zoo"))
import zoo  # noqa: E402

PEER = """
import json, sys, time, numpy as np, onnxruntime as ort
path, threads, seconds, inputs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
options = ort.SessionOptions(); options.intra_op_num_threads = threads; options.log_severity_level = 4
start = time.perf_counter()
session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
load = time.perf_counter() - start
feed = dict(np.load(inputs))
outputs = session.run(None, feed)
times, begin = [], time.perf_counter()
while len(times) < 5 or time.perf_counter() - begin < seconds:
    t = time.perf_counter(); session.run(None, feed); times.append(time.perf_counter() - t)
np.savez(sys.argv[5], *outputs)
print(json.dumps({"ms": 1e3 * sorted(times)[len(times) // 2], "load_ms": 1e3 * load}))
"""


def model_path(name, folder):
    path = folder / f"{name}.onnx"
    if not path.exists():
        (zoo.make if name in zoo.catalogue() else zoo.fetch)(name, folder)
    return path


def run_peer(path, inputs, threads, seconds, folder):
    np.savez(folder / "inputs.npz", **inputs)
    done = subprocess.run([sys.executable, "-c", PEER, str(path), str(threads), str(seconds), str(folder / "inputs.npz"),
                           str(folder / "outputs.npz")], capture_output=True, text=True, check=True)
    with np.load(folder / "outputs.npz") as saved:
        outputs = [saved[k] for k in saved.files]
    return json.loads(done.stdout.splitlines()[-1]), outputs


def declared_shapes(path):
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    return {i.name: [d.dim_param if d.HasField("dim_param") else d.dim_value if d.HasField("dim_value") else None
                     for d in i.type.tensor_type.shape.dim] for i in graph.input}


def weft_arguments(path, inputs, folder, threads):
    """--input for every array; sizes without a name in the model are named INPUT_AXIS."""
    arguments = [str(path), "--threads", str(threads)]
    for k, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"{k}.npy", value)
        arguments += ["--input", f"{name}={folder / f'{k}.npy'}"]
    return arguments


def run_weft(weft, path, inputs, threads, seconds, folder, target):
    arguments = weft_arguments(path, inputs, folder, threads)
    out = folder / "weft"
    out.mkdir(exist_ok=True)
    subprocess.run([weft, "run", *arguments, "--target", target, "--output-dir", str(out)], capture_output=True, text=True, check=True)
    subprocess.run([weft, "compile", *arguments, "--check-text"], capture_output=True, text=True, check=True)
    bench = [weft, "bench", *arguments, "--target", target, "--json", "--no-cache", "--seconds", str(seconds)]
    time_it = lambda: json.loads(subprocess.run(bench, capture_output=True, text=True, check=True).stdout)
    return time_it, {p.stem: np.load(p) for p in out.glob("*.npy")}


def safe(name):
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def disagreement(name, wanted, found, names):
    """The worst |difference| over what is allowed, over all outputs: at most 1 is agreement."""
    entry = zoo.catalogue().get(name) or zoo.wheel_catalogue()[name]
    noise, peer_error = entry.get("noise", 0), entry.get("peer_error", 0)
    worst = 0.0
    for output, reference in zip(names, wanted):
        mine = found[safe(output)]
        if mine.shape != reference.shape or mine.dtype != reference.dtype:
            return float("inf")
        if not np.issubdtype(reference.dtype, np.floating):
            worst = max(worst, 0.0 if np.array_equal(mine, reference) else float("inf"))
            continue
        a, b = mine.astype(np.float64), reference.astype(np.float64)
        if a.size == 0:
            continue
        allowed = 1e-3 * np.abs(b) + 1e-4 * np.max(np.abs(b))
        allowed = np.maximum(allowed, 4 * noise * np.std(b)) + peer_error
        worst = max(worst, float(np.max(np.abs(a - b) / np.maximum(allowed, 1e-30))))
    return worst


def output_names(path):
    import onnx
    return [o.name for o in onnx.load(path, load_external_data=False).graph.output]


def measure(name, args):
    path = model_path(name, args.models)
    inputs = zoo.inputs_of(name)
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        peer, wanted = run_peer(path, inputs, args.threads, args.seconds, folder)
        try:
            time_it, found = run_weft(args.weft, path, inputs, args.threads, args.seconds, folder, args.target)
            mine = time_it()
        except subprocess.CalledProcessError as e:
            return {"name": name, "error": (e.stderr or e.stdout).strip().splitlines()[0][:200], "ort": peer["ms"]}
        again, _ = run_peer(path, inputs, args.threads, args.seconds, folder)
        mine = min(mine, time_it(), key=lambda m: m["median_ms"])  # by turns, twice each: the machine is not always as fast
    return {"name": name, "ort": min(peer["ms"], again["ms"]), **mine,
            "off": disagreement(name, wanted, found, output_names(path))}


def row(r):
    if "error" in r:
        return f"| {r['name']} | {r['error']} | | | | | | {r['ort']:.2f} | | | |"
    verdict = "yes" if r["off"] <= 1 else f"NO ({r['off']:.1f}x)"
    return (f"| {r['name']} | {verdict} | {r['nodes']} → {r['prims']} → {r['loops']} → {r['kernels']} → {r['unique_kernels']} "
            f"| {r['host_steps']} | {r['load_ms']:.0f} | {r['compile_ms']:.0f} | {r['median_ms']:.2f} | {r['ort']:.2f} "
            f"| {r['median_ms'] / r['ort']:.2f} | {r['arena_bytes'] / 2**20:.2f} | {r['max_live_bytes'] / 2**20:.2f} |")


HEADER = """| model | agrees | nodes → prims → loops → kernels → unique | host steps | load ms | compile ms | run ms | ORT ms | ratio | arena MiB | bound MiB |
|---|---|---|---|---|---|---|---|---|---|---|"""


def summary(results, args):
    """The lines that README.md quotes."""
    ran = [r for r in results if "error" not in r]
    agree = sum(r["off"] <= 1 for r in ran)
    ratios = sorted((r["median_ms"] / r["ort"], r["name"]) for r in ran)
    mean = geomean(ratio for ratio, _ in ratios)
    compiling = sorted(r["compile_ms"] for r in ran)
    return (f"{measured(args)}, compile cache off: {len(ran)} of {len(results)} models"
            f" run, {agree} agree with ONNX Runtime.\n\n"
            f"- A run takes {mean:.2f} of ONNX Runtime's time by geometric mean (below 1 is faster), from {ratios[0][0]:.2f}"
            f" ({ratios[0][1]}) to {ratios[-1][0]:.2f} ({ratios[-1][1]}).\n"
            f"- Compiling takes {compiling[len(compiling) // 2]:.0f} ms in the median, {compiling[-1]:.0f} ms at most.\n")


def write(results, args):
    told = summary(results, args)
    replace_part(ROOT / "docs/models.md", "table", told + "\n" + "\n".join([HEADER, *map(row, results)]) + "\n")
    if not args.names:
        replace_part(ROOT / "README.md", "measured", told)


def arguments(doc, names=None):
    """The parser of what all benches over models take."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("names", nargs="*", default=names or [])
    parser.add_argument("--weft", default=str(ROOT / "build/release/weft"))
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / ".deps/zoo")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def main():
    parser = arguments(__doc__)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/models.md, and of all models into README.md")
    args = parser.parse_args()
    names = args.names or list(zoo.catalogue()) + list(zoo.wheel_catalogue())
    results, failed = [], []
    print(HEADER, flush=True)
    for name in names:
        result = measure(name, args)
        results.append(result)
        print(row(result), flush=True)
        if "error" in result or result["off"] > 1:
            failed.append(name)
    if args.write:
        write(results, args)
    if failed:
        sys.exit(f"disagree or fail: {', '.join(failed)}")


if __name__ == "__main__":
    main()
