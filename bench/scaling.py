#!/usr/bin/env python3
"""How run time grows with batch and sequence, and what a second thread gains.

    python bench/scaling.py [--weft build/release/weft] [--models .deps/zoo] [--seconds 0.5] [MODEL:DIM...] [--write]

For each size (powers of two: a batch of 1 to 64, a sequence of 16 to 4096) the time of a run by the number of threads,
per modelled unit of work: the sum of the kernels' modelled times on one core. Prints what two threads gain beside what
they gain on the machine's multiplications and memory (`weft doctor --measure`), and each size at which the time per unit
is more than 15 % above that of the size before. --write puts docs/scaling.csv, docs/scaling.png (needs matplotlib) and
the table of docs/schedules.md.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import model_path  # noqa: E402
from table import ROOT, cpu_name  # noqa: E402

# Model, the size that grows, its values, the sizes that stay.
CURVES = {
    "resnet50:batch": ("batch", 1, 64, {}),
    "minilm_l6:batch": ("batch", 1, 64, {"seq": 128}),
    "minilm_l6:seq": ("seq", 16, 512, {"batch": 1}),      # its positions end at 512
    "t5_small_encoder:seq": ("seq", 16, 4096, {"batch": 1}),
}
RISE = 1.15


def powers(low, high):
    while low <= high:
        yield low
        low *= 2


def total(weft, path, dims, threads, seconds):
    """Measured and modelled microseconds of one run: sums over the kernels, the least of several runs of each."""
    arguments = [f"--dim={name}={size}" for name, size in dims.items()]
    done = subprocess.run([weft, "bench", str(path), *arguments, "--threads", str(threads), "--kernels", "--json", "--no-tuned",
                           "--seconds", str(seconds)], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{path.stem} {dims}: {(done.stderr or done.stdout).strip().splitlines()[0][:150]}", file=sys.stderr)
        return None
    kernels = json.loads(done.stdout)
    return sum(k["runs"] * k["best_us"] for k in kernels), sum(k["runs"] * k["modelled_us"] for k in kernels), kernels


def machine_gain(weft):
    """What two threads gain on multiplications and on memory."""
    text = subprocess.run([weft, "doctor"], capture_output=True, text=True, check=True).stdout
    rates = {int(n): (float(f), float(g)) for n, f, g in re.findall(r"^(\d+) threads?\s+([0-9.]+) GFLOP/s of f32, ([0-9.]+) GB/s", text, re.M)}
    if 1 not in rates or 2 not in rates:
        sys.exit("'weft doctor --measure' first")
    return rates[2][0] / rates[1][0], rates[2][1] / rates[1][1]


def curve(key, args):
    symbol, low, high, others = CURVES[key]
    path = model_path(key.split(":")[0], args.models)
    points = []
    for size in powers(low, high):
        dims = {**others, symbol: size}
        one, two = (total(args.weft, path, dims, threads, args.seconds) for threads in (1, 2))
        if one is None or two is None:
            break
        points.append({"curve": key, "size": size, "us_1": one[0], "us_2": two[0], "modelled_us": one[1], "per_unit_1": one[0] / one[1],
                       "per_unit_2": two[0] / one[1], "gain": one[0] / two[0], "kernels": one[2]})
        print(row(points[-1]), flush=True)
        if one[0] > 1e6 * args.most_seconds:
            break
    return points


def row(p):
    return (f"| {p['curve']} | {p['size']} | {p['us_1'] / 1e3:.2f} | {p['us_2'] / 1e3:.2f} | {p['gain']:.2f} | {p['modelled_us'] / 1e3:.2f} | "
            f"{p['per_unit_1']:.2f} | {p['per_unit_2']:.2f} |")


HEADER = """| curve | size | 1 thread, ms | 2 threads, ms | gain | modelled, ms | time per unit, 1 thread | 2 threads |
|---|---|---|---|---|---|---|---|"""


def rises(points):
    """The sizes whose time per unit is more than 15 % above that of the size before, and the kernels that make it so."""
    found = []
    for before, after in zip(points, points[1:]):
        for threads in (1, 2):
            rise = after[f"per_unit_{threads}"] / before[f"per_unit_{threads}"]
            if rise <= RISE:
                continue
            ratio = lambda ks: {tuple(k["nodes"][:1] + [k["kind"]]): k["best_us"] / k["modelled_us"] for k in ks}  # noqa: E731
            old, units = ratio(before["kernels"]), after["modelled_us"]
            worse = sorted(after["kernels"], key=lambda k: -k["runs"] * (k["best_us"] - k["modelled_us"] * old.get(tuple(k["nodes"][:1] + [k["kind"]]), 0)))
            names = ", ".join(f"{k['kind']} {k['nodes'][0] if k['nodes'] else ''} ({100 * k['runs'] * k['modelled_us'] / units:.0f} % of the units)" for k in worse[:2])
            found.append(f"{after['curve']} from {before['size']} to {after['size']}, {threads} thread{'s' if threads > 1 else ''}: {rise:.2f}; most in {names}")
    return found


def plot(curves, file):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4))
    for key, points in curves.items():
        sizes = [p["size"] for p in points]
        axes[0].plot(sizes, [p["per_unit_1"] for p in points], "o-", label=key)
        axes[1].plot(sizes, [p["gain"] for p in points], "o-", label=key)
    for axis, title in zip(axes, ("time per modelled unit of work, 1 thread", "gain of 2 threads over 1")):
        axis.set_xscale("log", base=2)
        axis.set_ylim(bottom=0)
        axis.set_title(title)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("curves", nargs="*", default=list(CURVES), metavar="MODEL:DIM")
    parser.add_argument("--weft", default=str(ROOT / "build/release/weft"))
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / ".deps/zoo")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--most-seconds", type=float, default=8, help="a curve ends behind a run that takes longer")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    for key in args.curves:
        if key not in CURVES:
            parser.error(f"there is no curve {key}; there is {', '.join(CURVES)}")
    multiplications, memory = machine_gain(args.weft)
    print(f"{cpu_name()}; two threads gain {multiplications:.2f} on multiplications, {memory:.2f} on memory\n\n{HEADER}")
    curves = {key: curve(key, args) for key in args.curves}
    found = [text for points in curves.values() for text in rises(points)]
    print("\n" + "\n".join(f"- {text}" for text in found) if found else "\nno time per unit rises by more than 15 %")
    if not args.write:
        return
    with open(ROOT / "docs/scaling.csv", "w", newline="") as file:
        out = csv.writer(file)
        names = ["curve", "size", "us_1", "us_2", "gain", "modelled_us", "per_unit_1", "per_unit_2"]
        out.writerow(names)
        out.writerows([p[n] if isinstance(p[n], (str, int)) else f"{p[n]:.4g}" for n in names] for points in curves.values() for p in points)
    plot(curves, ROOT / "docs/scaling.png")


if __name__ == "__main__":
    main()
