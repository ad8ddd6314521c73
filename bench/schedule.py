#!/usr/bin/env python3
"""The schedule model against the clock: modelled and measured time of every kernel of the zoo.

    python bench/schedule.py [--weft build/release/weft] [--models .deps/zoo] [--threads 2] [--seconds 0.5] [NAME...]

Prints Spearman's rank correlation over all kernels and by kind, the geometric mean of measured over modelled, and the
kernels that are furthest from it. Measured is the least of several runs of the whole model, at the zoo's sizes, of
one launch; kernels whose sizes only a run can tell are left out. `weft doctor --measure` first, or the model takes its default rates. --csv FILE keeps the figures.
"""
import collections
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import arguments, model_path, weft_arguments, zoo  # noqa: E402
from table import geomean  # noqa: E402


def ranks(values):
    """1-based, equal values sharing their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result, k = [0.0] * len(values), 0
    while k < len(order):
        end = k
        while end + 1 < len(order) and values[order[end + 1]] == values[order[k]]:
            end += 1
        for i in order[k:end + 1]:
            result[i] = (k + end) / 2 + 1
        k = end + 1
    return result


def spearman(a, b):
    x, y = ranks(a), ranks(b)
    mx, my = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((p - mx) * (q - my) for p, q in zip(x, y))
    spread = math.sqrt(sum((p - mx) ** 2 for p in x) * sum((q - my) ** 2 for q in y))
    return covariance / spread if spread else float("nan")


def kernels_of(name, args):
    path = model_path(name, args.models)
    with tempfile.TemporaryDirectory() as tmp:
        arguments = weft_arguments(path, zoo.inputs_of(name), pathlib.Path(tmp), args.threads)
        done = subprocess.run([args.weft, "bench", *arguments, "--kernels", "--json", "--no-tuned", "--seconds", str(args.seconds)],
                              capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: {(done.stderr or done.stdout).strip().splitlines()[0][:150]}", file=sys.stderr)
        return []
    return [{"model": name, **k} for k in json.loads(done.stdout) if k["sizes_known"]]


def ratio(k):
    return k["best_us"] / k["modelled_us"]


def report(kernels, worst):
    by_kind = collections.defaultdict(list)
    for k in kernels:
        by_kind[k["kind"]].append(k)
    print("| kind | kernels | share of time | rank correlation | measured / modelled | least | most |\n|---|---|---|---|---|---|---|")
    total = sum(k["runs"] * k["best_us"] for k in kernels)
    for kind, some in [("all", kernels)] + sorted(by_kind.items(), key=lambda x: -sum(k["runs"] * k["best_us"] for k in x[1])):
        r = [ratio(k) for k in some]
        correlation = f"{spearman([k['modelled_us'] for k in some], [k['best_us'] for k in some]):.3f}" if len(some) > 2 else "-"
        share = sum(k["runs"] * k["best_us"] for k in some) / total
        print(f"| {kind} | {len(some)} | {100 * share:.1f} % | {correlation} | {geomean(r):.2f} | {min(r):.2f} | {max(r):.2f} |")
    middle = geomean([ratio(k) for k in kernels])
    print(f"\nFurthest from the mean of {middle:.2f}, of kernels above 20 us:\n")
    print("| measured / modelled | us | modelled: compute, l1, l2, l3, memory, waste, dispatch | kernel |\n|---|---|---|---|")
    for k in sorted((k for k in kernels if k["best_us"] > 20), key=lambda k: -abs(math.log(ratio(k) / middle)))[:worst]:
        terms = ", ".join(f"{k['modelled'][t]:.1f}" for t in ("compute", "l1", "l2", "l3", "memory", "waste", "dispatch"))
        print(f"| {ratio(k):.2f} | {k['best_us']:.1f} | {k['modelled_us']:.1f}: {terms} | {k['model']} {k['kind']} {k['nodes'][0] if k['nodes'] else ''}: "
              f"{', '.join(k['loops'])}; {k['record']} |")


def main():
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    kernels = []
    for name in args.names or list(zoo.catalogue()) + list(zoo.wheel_catalogue()):
        kernels += kernels_of(name, args)
    if args.csv and kernels:
        with open(args.csv, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["model", "kind", "runs", "best_us", "modelled_us", *kernels[0]["modelled"], "record", "loops"])
            for k in kernels:
                out.writerow([k["model"], k["kind"], k["runs"], k["best_us"], k["modelled_us"], *k["modelled"].values(), k["record"],
                              "; ".join(k["loops"])])
    if not kernels:
        sys.exit("no model ran")
    report(kernels, args.worst)


if __name__ == "__main__":
    main()
