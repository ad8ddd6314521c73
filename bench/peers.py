#!/usr/bin/env python3
"""The zoo's models through Weft and its peers, alternating in the same minutes: speed, start, memory, one table.

    python bench/peers.py [NAME...] [--threads 2] [--rounds 2] [--seconds 1] [--peers onnxruntime,openvino] [--csv FILE]

Every engine runs in processes of its own, in turn, `rounds` times; the best round's median counts. Peers that are not
installed are left out by name (`pip install onnxruntime openvino`). OpenVINO runs with its f32 hint. Cold start is
process to first result, for Weft without its cache; a peer's includes its import, which stands beside. The ratio is the best
peer's time over Weft's: above 1 Weft is faster.
"""
import argparse
import csv
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import ROOT, cpu_name, model_path, weft_arguments, zoo  # noqa: E402

MEASURE = """
import json, resource, sys, time
path, threads, seconds, inputs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
begin = time.perf_counter()
import numpy as np
{imports}
imported = time.perf_counter()
feed = dict(np.load(inputs))
{load}
run()
first = time.perf_counter()
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run()
times, start = [], time.perf_counter()
while len(times) < 10 or time.perf_counter() - start < seconds:
    t = time.perf_counter(); run(); times.append(time.perf_counter() - t)
    if time.perf_counter() - start > 5 * seconds + 2: break
print(json.dumps(dict(ms=1e3 * sorted(times)[len(times) // 2], start=first - begin, importing=imported - begin, mb=rss / 1024)))
"""

PEERS = {
    "onnxruntime": ("import onnxruntime", """
o = onnxruntime.SessionOptions(); o.intra_op_num_threads = threads; o.log_severity_level = 4
s = onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])
run = lambda: s.run(None, feed)
"""),
    "openvino": ("import openvino", """
c = openvino.Core()
m = c.compile_model(path, "CPU", dict(INFERENCE_PRECISION_HINT="f32", INFERENCE_NUM_THREADS=threads, PERFORMANCE_HINT="LATENCY"))
r = m.create_infer_request()
run = lambda: r.infer(feed)
"""),
}


def run_peer(peer, path, inputs, args):
    imports, load = PEERS[peer]
    done = subprocess.run([sys.executable, "-c", MEASURE.format(imports=imports, load=load), str(path), str(args.threads),
                           str(args.seconds), str(inputs)], capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def run_weft_bench(arguments, args):
    bench = [args.weft, "bench", *arguments, "--json", "--no-cache", "--seconds", str(args.seconds), "--precision", args.precision]
    done = subprocess.run(bench, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def run_weft(arguments, args):
    found = run_weft_bench(arguments, args)
    if found is None:
        return None
    begin = time.perf_counter()
    once = subprocess.run(["/usr/bin/env", sys.executable, "-c",
                           "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
                           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                           args.weft, "run", *arguments, "--no-cache"], capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    return dict(ms=found["median_ms"], start=seconds - args.python, importing=0.0, mb=int(once.stdout) / 1024)


def python_start():
    begin = time.perf_counter()
    subprocess.run(["/usr/bin/env", sys.executable, "-c", "import resource, subprocess, sys"], check=True)
    return time.perf_counter() - begin


def measure(name, peers, args):
    path = model_path(name, args.models)
    inputs = zoo.inputs_of(name)
    best = {}
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        np.savez(folder / "inputs.npz", **inputs)
        arguments = weft_arguments(path, inputs, folder, args.threads)
        for _ in range(args.rounds):
            for engine in ["weft", *peers]:
                found = run_weft(arguments, args) if engine == "weft" else run_peer(engine, path, folder / "inputs.npz", args)
                if found is not None:
                    kept = best.setdefault(engine, found)
                    best[engine] = {k: min(kept[k], found[k]) for k in found}
    return best


def cells(result, engine, best_ms):
    r = result.get(engine)
    if r is None:
        return ["-", "-", "-"]
    start = f"{r['start']:.2f}" + (f" ({r['importing']:.2f})" if r["importing"] else "")
    return [f"**{r['ms']:.2f}**" if r["ms"] == best_ms else f"{r['ms']:.2f}", start, f"{r['mb']:.0f}"]


def geomean(values):
    values = [v for v in values if v and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--weft", default=str(ROOT / "build/release/weft"))
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / ".deps/zoo")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--precision", default="highest")
    args = parser.parse_args()
    peers = [p for p in args.peers.split(",") if importlib.util.find_spec(p)]
    args.python = min(python_start() for _ in range(3))
    print(f"{cpu_name()}, {args.threads} threads; ms a run, seconds to the first result (of which import), peak MB\n")
    head = ["model", *(f"{e} {what}" for e in ["weft", *peers] for what in ["ms", "start", "MB"]), "ratio", "start ratio", "MB ratio"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    rows, ratios = [], []
    for name in args.names or [*zoo.catalogue(), *zoo.wheel_catalogue()]:
        result = measure(name, peers, args)
        best_ms = min((r["ms"] for r in result.values()), default=None)
        others = [result[p] for p in peers if p in result]
        compared = [""] * 3
        if "weft" in result and others:
            mine, first = result["weft"], others[0]
            ratio = (min(o["ms"] for o in others) / mine["ms"], mine["start"] / (first["start"] - first["importing"]), mine["mb"] / first["mb"])
            ratios.append(ratio)
            compared = [f"{r:.2f}" for r in ratio]
        line = [name, *(c for e in ["weft", *peers] for c in cells(result, e, best_ms)), *compared]
        rows.append(line)
        print("| " + " | ".join(line) + " |", flush=True)
    if ratios:
        speed, start, memory = (geomean(r[k] for r in ratios) for k in range(3))
        print(f"\ngeometric means over {len(ratios)} models: speed {speed:.2f} x the best peer (worst {min(r[0] for r in ratios):.2f}), "
              f"cold start {start:.2f} x and peak memory {memory:.2f} x {peers[0]}'s")
    if args.csv:
        with args.csv.open("w", newline="") as out:
            csv.writer(out).writerows([head, *rows])


if __name__ == "__main__":
    main()
