#!/usr/bin/env python3
"""How many conformance cases pass on each target, and what fails there beyond the known gaps: docs/targets.md.

    python test/conformance/targets.py --weft build/release/weft [--targets cpu,opencl,...] [--only suites|sweep] [--write]

The ONNX suite is that of the `onnx` package of this Python. OPENCL_DEVICE names the device behind `opencl`. A case counts as
too slow when it ends by the time limit.
"""
import argparse
import collections
import csv
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from table import cpu_name  # noqa: E402

TARGETS = ["cpu", "ref", "opencl", "webgpu", "sim:opencl", "sim:sm_80", "sim:sm_90a"]
SECONDS = {"opencl": 300, "webgpu": 300}
# Of the sweep, every so many cases, where all of them take more than some minutes: PoCL compiles each for up to seconds.
STRIDES = {"opencl": 7, "webgpu": 4}
# What a target that is a language and a device took: files by folder.
PARTS = {"opencl": "opencl", "webgpu": "wgsl"}
HEAD = """# Targets and what they pass

Written by `test/conformance/targets.py` on {date}, {cpu}. The rule is the strict one (rtol 1e-3, atol 1e-7; a case may
state its own). `webgpu` is Mesa's lavapipe, with `GALLIUM_OVERRIDE_CPU_CAPS=avx` ([known-gaps.md](known-gaps.md) says why).
Cases that fail on every target alike are in [known-gaps.md](known-gaps.md).

| target | suite | pass | fail | of those too slow | failing here and not on `cpu` |
|---|---|---|---|---|---|
"""


def suites():
    import onnx.backend.test
    data = pathlib.Path(onnx.backend.test.__file__).parent / "data"
    return {"onnx " + onnx.__version__: [data / part for part in ("node", "simple", "pytorch-converted", "pytorch-operator", "real")],
            "test/cases": [ROOT / "test/cases"]}


def run(weft, target, folders):
    """The case's name to what is wrong with it, or "" where it passes."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as out:
        limit = str(SECONDS.get(target, 60))
        done = subprocess.run([weft, "conformance", *map(str, folders), "--target", target, "--timeout", limit, "--csv", out.name],
                              capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        with open(out.name, newline="") as file:
            return {row["case"]: row["reason"] if row["result"] == "failed" else "" for row in csv.DictReader(file) if row["result"] != "skipped"}


def line(target, suite, results, on_cpu):
    failing = {name: why for name, why in results.items() if why}
    slow = sum("no result after" in why for why in failing.values())
    own = [f"`{name}`" for name, why in failing.items() if not on_cpu.get(name) and "no result after" not in why]
    return f"| `{target}` | {suite} | {len(results) - len(failing)} | {len(failing)} | {slow} | {', '.join(own)} |"


SWEEP = """
## Every op

`weft conformance --sweep --target T` on {date}: small graphs of every prim and composite over the dtypes that the op table allows and
over shapes that are empty, of one element, odd, a vector's width and one beside it, and open, with NaN, infinities, zeros of both signs,
extremes and subnormal numbers among the values, each beside the interpreter. On `ref` it is what the graph passes make of the graph
that is interpreted. What is refused is an error of kind unsupported; it never counts as passed.
`opencl` is the device that `weft doctor` lists first, here {opencl}: PoCL takes half a second and more over each kernel.

| target | cases: every | pass | unsupported | fail | failing |
|---|---|---|---|---|---|
"""


def sweep(weft, target, stride):
    """(case, result, reason) of every case."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as out:
        done = subprocess.run([weft, "conformance", "--sweep", "--target", target, "--timeout", str(SECONDS.get(target, 60)), "--csv", out.name,
                               "--stride", str(stride)], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        with open(out.name, newline="") as file:
            return [(row["case"], row["result"], row["reason"]) for row in csv.DictReader(file)]


def swept(weft, targets, stride):
    text, refused = SWEEP.format(date=datetime.date.today(), opencl=os.environ.get("OPENCL_DEVICE", "PoCL")), []
    for target in targets:
        every = stride or STRIDES.get(target, 1)
        rows = sweep(weft, target, every)
        counts = collections.Counter(result for _, result, _ in rows)
        failing = ", ".join(f"`{case}`" for case, result, _ in rows if result == "failed")
        text += f"| `{target}` | {every} | {counts['passed']} | {counts['unsupported']} | {counts['failed']} | {failing} |\n"
        print(text.splitlines()[-1], flush=True)
        for reason, count in sorted(collections.Counter(reason for _, result, reason in rows if result == "unsupported").items()):
            refused.append(f"| `{target}` | {count} | {reason} |")
    return text + "\n| target | cases | unsupported because |\n|---|---|---|\n" + "\n".join(refused) + "\n"


def section(title):
    """What docs/targets.md says under this heading now."""
    text = (ROOT / "docs/targets.md").read_text()
    start = text.find("\n## " + title)
    if start < 0:
        return ""
    end = text.find("\n## ", start + 1)
    return text[start:end if end >= 0 else len(text)]


def lines_taken():
    def count(files):
        return sum(len(path.read_text().splitlines()) for path in files)
    text = """
## What a target takes

Lines of the targets that are a language for kernels and a device ([adding-a-target.md](adding-a-target.md)); what they
share, the walker and the runtime, is not counted.

| target | language | device |
|---|---|---|
"""
    for target, language in PARTS.items():
        spelled, device = (ROOT / "src/codegen/text").glob(language + "*"), (ROOT / "src/target" / target).iterdir()
        text += f"| `{target}` | {count(spelled)} | {count(device)} |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", default=str(ROOT / "build/release/weft"))
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--write", action="store_true", help="write docs/targets.md")
    parser.add_argument("--only", choices=["suites", "sweep"], help="the other part of docs/targets.md stays as it is")
    parser.add_argument("--stride", type=int, help="of the sweep, every so many cases; 1: all (default: as STRIDES says)")
    args = parser.parse_args()
    targets = args.targets.split(",")
    text = counted(args.weft, targets) if args.only != "sweep" else (ROOT / "docs/targets.md").read_text().split("\n## ")[0]
    text += swept(args.weft, targets, args.stride) if args.only != "suites" else section("Every op")
    text += lines_taken()
    if args.write:
        (ROOT / "docs/targets.md").write_text(text)


def counted(weft, targets):
    text = HEAD.format(date=datetime.date.today(), cpu=cpu_name())
    for suite, folders in suites().items():
        on_cpu = run(weft, "cpu", folders)
        for target in targets:
            results = on_cpu if target == "cpu" else run(weft, target, folders)
            text += line(target, suite, results, on_cpu) + "\n"
            print(text.splitlines()[-1], flush=True)
    return text


if __name__ == "__main__":
    main()
