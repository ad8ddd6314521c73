#!/usr/bin/env python3
"""The zoo's models through Weft and its peers, alternating in the same minutes: speed, start, memory, one table.

    python bench/peers.py [NAME[:DIM=SIZE]...] [--threads 2] [--rounds 2] [--seconds 1] [--start-only | --speed-only] [--write]
                          [--peers onnxruntime,openvino] [--csv FILE]

Every engine runs in processes of its own, in turn, `rounds` times; the best round's median counts. Peers that are not
installed are left out by name (`pip install onnxruntime openvino torch torchvision transformers`). OpenVINO runs with its
f32 hint; as `openvino_bf16` without one, which on processors with bf16 products is bf16: what `--precision medium` is held
against. torch, eager and compiled, runs the same architectures of torch_models.py, where there is one. --weights bf16, int8 or
int4 keeps Weft's in fewer bits.

Start is whole process to first result: what a process of the engine does from its start until it has written a result,
its end included. For Weft cold is without its cache, warm with what an earlier process left there; of a peer the import of
Python, numpy and itself stands beside and does not count in the ratios. MB is the largest resident set until the first
result, of which a peer's import is a part that it cannot do without. Ratios: the best peer's time of a run over Weft's
(above 1 Weft is faster); Weft's cold start, warm start and memory over the first peer's (below 1 Weft needs less).
--start-only leaves the time of a run out, which takes most of the minutes, --speed-only all else; --write puts the table of the one
into docs/performance.md, that of the other into docs/peers.md.
"""
import csv
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import arguments, model_path, weft_arguments, zoo  # noqa: E402
from table import ROOT, Table, cpu_name, geomean, measured, threads_str  # noqa: E402

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
if seconds == 0: print(json.dumps(dict(ms=float("nan"), start=first - begin, importing=imported - begin, mb=rss / 1024))); sys.exit()
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
    **{name: ("import openvino", f"""
c = openvino.Core()
m = c.compile_model(path, "CPU", dict({hint}INFERENCE_NUM_THREADS=threads, PERFORMANCE_HINT="LATENCY"))
r = m.create_infer_request()
run = lambda: r.infer(feed)
""") for name, hint in [("openvino", 'INFERENCE_PRECISION_HINT="f32", '), ("openvino_bf16", "")]},
    **{peer: ("import torch", f"""
import torch_models
run = torch_models.runner(path, threads, feed, {peer == "torch.compile"})
""") for peer in ("torch", "torch.compile")},
}


BATCHES = ["resnet50:batch=8", "bert_base:batch=8"]  # beside the models as they are


def run_peer(peer, path, inputs, args):
    imports, load = PEERS[peer]
    done = subprocess.run([sys.executable, "-c", MEASURE.format(imports=imports, load=load), str(path), str(args.threads),
                           str(args.seconds), str(inputs)], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(pathlib.Path(__file__).resolve().parent)))
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def form_of(args):
    return ["--precision", args.precision, "--weights", args.weights]


def add_form(parser):
    parser.add_argument("--precision", default="highest")
    parser.add_argument("--weights", default="f32")


def add_rounds(parser):
    parser.add_argument("--weft", default=str(ROOT / "build/release/weft"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)


def best_of(rounds, how):
    """Of each engine the best of its turns; `how` by name gives its milliseconds."""
    best = {}
    for _ in range(rounds):
        for engine, run in how.items():
            ms = run()
            best[engine] = min(best.get(engine, ms), ms)
    return best


def run_weft_bench(arguments, args):
    bench = [args.weft, "bench", *arguments, "--json", "--no-cache", "--seconds", str(args.seconds), *form_of(args)]
    done = subprocess.run(bench, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def run_once(command, environment):
    """Seconds and peak MB of a process; None when it fails."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return None if status else (time.perf_counter() - begin, usage.ru_maxrss / 1024)


def run_weft(arguments, args, folder):
    if args.speed_only:
        found = run_weft_bench(arguments, args)
        return found and dict(ms=found["median_ms"])
    environment = dict(os.environ, WEFT_CACHE_DIR=str(folder / "cache"))
    run = [args.weft, "run", *arguments, *form_of(args)]
    cold = run_once([*run, "--no-cache"], environment)
    if cold is None:
        return None
    if not (folder / "cache").exists():
        run_once(run, environment)  # fills the cache
    warm = run_once(run, environment) or (float("nan"), float("nan"))
    found = run_weft_bench(arguments, args) if args.seconds else None
    return dict(ms=found["median_ms"] if found else float("nan"), start=cold[0], importing=0.0, mb=cold[1], warm=warm[0], warm_mb=warm[1])


def measure(case, peers, args):
    name, *sizes = case.split(":")
    path = model_path(name, args.models)
    inputs = zoo.inputs_of(name, {dim: int(size) for dim, size in (s.split("=") for s in sizes)})
    best = {}
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        np.savez(folder / "inputs.npz", **inputs)
        arguments = weft_arguments(path, inputs, folder, args.threads)
        for _ in range(args.rounds):
            for engine in ["weft", *peers]:
                found = run_weft(arguments, args, folder) if engine == "weft" else run_peer(engine, path, folder / "inputs.npz", args)
                if found is not None:
                    kept = best.setdefault(engine, found)
                    best[engine] = {k: min(kept[k], found[k]) for k in found}
    return best


def columns(args, peers):
    """The names of the table's columns between the model's and the ratios', by engine, and those of the ratios."""
    ms = [] if args.start_only else ["ms"]
    start = [] if args.speed_only else ["cold s", "warm s", "cold MB", "warm MB"]
    peer = [] if args.speed_only else ["s (+ import)", "MB"]
    of = {"weft": [f"weft {what}" for what in ms + start], **{e: [f"{e} {what}" for what in ms + peer] for e in peers}}
    return of, ["best peer / weft"] * len(ms) + ([] if args.speed_only else ["cold", "warm", "MB", "warm MB"])


def cells(r, args, best_ms, width):
    if r is None:
        return ["-"] * width
    ms = [] if args.start_only else [f"**{r['ms']:.2f}**" if r["ms"] == best_ms else f"{r['ms']:.2f}" if r["ms"] == r["ms"] else "-"]
    if args.speed_only:
        return ms
    if "warm" in r:
        return [*ms, f"{r['start']:.3f}", f"{r['warm']:.3f}", f"{r['mb']:.0f}", f"{r['warm_mb']:.0f}"]
    return [*ms, f"{r['start'] - r['importing']:.3f} (+{r['importing']:.2f})", f"{r['mb']:.0f}"]


def ratios_of(mine, others, args):
    speed = [] if args.start_only else [min(o["ms"] for o in others) / mine["ms"]]
    if args.speed_only:
        return speed
    first = others[0]
    start = first["start"] - first["importing"]
    return [*speed, mine["start"] / start, mine["warm"] / start, mine["mb"] / first["mb"], mine["warm_mb"] / first["mb"]]


def summary(ratios, peers, args):
    """Of all models together; `ratios` by model."""
    means = [(geomean(column), column) for column in zip(*ratios.values())]
    told = []
    if not args.start_only:
        least = min(ratios, key=lambda name: ratios[name][0])
        slower = sum(r[0] < 0.95 for r in ratios.values())
        told.append(f"Geometric mean over {len(ratios)} models: **{means[0][0]:.2f} x the best peer**, least {ratios[least][0]:.2f} ({least}); "
                    f"{slower} below 0.95.")
    if not args.speed_only:
        (cold, colds), (warm, warms), (mb, mbs), (warm_mb, warm_mbs) = means[-4:]
        told.append(f"Of {peers[0]}'s, geometric mean and worst of {len(ratios)} models: **cold {cold:.2f} ({max(colds):.2f}), warm {warm:.2f} ({max(warms):.2f}), "
                    f"peak memory {mb:.2f} ({max(mbs):.2f}), with a warm cache {warm_mb:.2f} ({max(warm_mbs):.2f})**; "
                    f"{sum(c > 2 for c in colds)} take more than twice as long cold.")
    return "\n\n".join(told)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peers", default="onnxruntime,openvino,torch,torch.compile", help=", ".join(PEERS))
    parser.add_argument("--csv", type=pathlib.Path)
    add_form(parser)
    parser.add_argument("--start-only", action="store_true")
    parser.add_argument("--speed-only", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table of --speed-only into docs/peers.md, that of --start-only into docs/performance.md")
    args = parser.parse_args()
    if args.write and not (args.start_only or args.speed_only):
        parser.error("--write wants --start-only or --speed-only")
    if args.start_only:
        args.seconds = 0
    peers = [p for p in args.peers.split(",") if importlib.util.find_spec(PEERS[p][0].split()[-1])]
    names, compared = columns(args, peers)
    print(f"{cpu_name()}, {threads_str(args.threads)}; ms a run, seconds to the first result (of which import), peak MB\n")
    table, ratios = Table(["model", *(c for engine in names.values() for c in engine), *compared]), {}
    for case in args.names or [*zoo.catalogue(), *zoo.wheel_catalogue(), *([] if args.start_only else BATCHES)]:
        result = measure(case, peers, args)
        best_ms = min((r["ms"] for r in result.values() if r["ms"] == r["ms"]), default=None)
        others = [result[p] for p in peers if p in result]
        if "weft" in result and others:
            ratios[case] = ratios_of(result["weft"], others, args)
        shown = [f"{r:.2f}" if r == r else "-" for r in ratios[case]] if case in ratios else ["-"] * len(compared)
        table.add([case, *(c for e in names for c in cells(result.get(e), args, best_ms, len(names[e]))), *shown])
    told = summary(ratios, peers, args) if ratios else "Nothing to compare."
    print("\n" + told)
    if args.write and args.start_only:
        table.write("docs/performance.md", "start", f"{measured(args)}, the best of {args.rounds} rounds. {told}")
    elif args.write:
        how = f"{measured(args)}, precision {args.precision}, milliseconds a run, the best of {args.rounds} rounds."
        table.write("docs/peers.md", f"{args.precision}, {threads_str(args.threads)}", f"{how} {told}")
    if args.csv:
        with args.csv.open("w", newline="") as out:
            csv.writer(out).writerows(table.rows)


if __name__ == "__main__":
    main()
