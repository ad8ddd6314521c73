#!/usr/bin/env python3
"""Every model of the zoo on other targets than this process's cores, by turns with them: agreement with ONNX Runtime, time.

    python bench/devices.py --weft build/release/weft --models .deps/zoo [NAME...] [--targets opencl,opencl+cpu] [--write]

--write puts the table into docs/models.md. Exit 1 when an output disagrees (bench/models.py says what that is).
"""
import math
import pathlib
import subprocess
import sys
import tempfile

from models import arguments, disagreement, model_path, output_names, run_peer, run_weft, zoo
from table import Table, geomean, measured


def measure(name, args):
    """By target: milliseconds, and how far its outputs are off (1: as far as is allowed), or why it does not run."""
    path, inputs = model_path(name, args.models), zoo.inputs_of(name)
    found = {}
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        _, wanted = run_peer(path, inputs, args.threads, 0, folder)
        timers = {}
        for target in args.targets:
            try:
                timers[target], outputs = run_weft(args.weft, path, inputs, args.threads, args.seconds, folder, target)
                found[target] = {"off": disagreement(name, wanted, outputs, output_names(path)), "ms": math.inf}
            except subprocess.CalledProcessError as e:
                found[target] = {"error": (e.stderr or e.stdout).strip().splitlines()[0][:160]}
        for _ in range(2):
            for target, time_it in timers.items():
                found[target]["ms"] = min(found[target]["ms"], time_it()["median_ms"])
    return found


def cell(result, on_cpu):
    if "error" in result:
        return result["error"]
    wrong = "" if result["off"] <= 1 else f", WRONG by {result['off']:.1f}x"
    return f"{result['ms']:.2f}{'' if result is on_cpu else ' (' + format(result['ms'] / on_cpu['ms'], '.2f') + ')'}{wrong}"


def main():
    parser = arguments(__doc__)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=["opencl", "opencl+cpu"])
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--write", action="store_true", help="put the table into docs/models.md")
    args = parser.parse_args()
    args.targets = ["cpu", *args.targets]
    table, results = Table(["model", *args.targets]), []
    for name in args.names or list(zoo.catalogue()) + list(zoo.wheel_catalogue()):
        result = measure(name, args)
        results.append(result)
        table.add([name, *(cell(result[t], result["cpu"]) for t in args.targets)])
    told = []
    for target in args.targets[1:]:
        ran = [r for r in results if "error" not in r[target]]
        mean = geomean(r[target]["ms"] / r["cpu"]["ms"] for r in ran)
        agree = sum(r[target]["off"] <= 1 for r in ran)
        told.append(f"`{target}`: {agree} of {len(results)} models agree with ONNX Runtime, {mean:.2f} of `cpu`'s time by geometric mean.")
    print("", *told, sep="\n")
    if args.write:
        head = f"{measured(args)}: milliseconds a run, in brackets how often `cpu`'s."
        table.write("docs/models.md", "devices", "\n".join([head, "", *told]))
    sys.exit(any("error" in r[t] or r[t]["off"] > 1 for r in results for t in args.targets))


if __name__ == "__main__":
    main()
