#!/usr/bin/env python3
"""All that is to be measured on a machine with a GPU, in one go: needs what is built, the models, and Python alone.

    python3 bench/gpu/run.py [--target cuda:0] [--build build/release] [--models .deps/zoo] [--minutes 6] [--out gpu.json]

The examples of the tile language, then every model, smallest file first: `weft verify` against the interpreter, `weft
bench` for its latency. Prints one table and writes one JSON with `weft doctor` in it; what does not fit into the minutes is
listed as left out. Exit 1 when a result is wrong. `--target null:sm_90a` is the dry run: nothing is computed, and verdicts are
left out.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Runs:
    def __init__(self, minutes):
        self.end = time.monotonic() + 60 * minutes

    def left(self):
        return self.end - time.monotonic()

    def output(self, *command):
        """The exit code, what was printed and what was complained about; None when the time is up."""
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=max(self.left(), 0.01))
        except subprocess.TimeoutExpired:
            return None
        return done.returncode, done.stdout, done.stderr


def last_line(text):
    return (text.strip().splitlines() or [""])[-1]


def example_rows(runs, program, target):
    done = runs.output(program, "--target", target)
    return [] if done is None else [line for line in done[1].splitlines() if ": compiled in" in line or "WRONG" in line]


def model_row(runs, weft, model, target, dry):
    row = {"model": model.stem}
    measured = runs.output(weft, "bench", model, "--target", target, "--seconds", "0.5", "--json")
    if measured is None:
        return None
    if measured[0] != 0:
        return row | {"error": last_line(measured[2])}
    figures = json.loads(measured[1])
    row |= {k: figures[k] for k in ("median_ms", "p90_ms", "compile_ms", "first_run_ms", "unique_kernels", "arena_bytes", "gflops_per_s")
            if k in figures}
    if not dry:
        verified = runs.output(weft, "verify", model, "--target", target)
        if verified is None:
            return row | {"verdict": "not verified: out of time"}
        row["verdict"] = "ok" if verified[0] == 0 else last_line(verified[1] + verified[2])
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="cuda:0")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / ".deps/zoo")
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu.json"))
    args = parser.parse_args()
    runs, weft, dry = Runs(args.minutes), args.build / "weft", args.target.startswith("null")
    doctor = runs.output(weft, "doctor")
    result = {"target": args.target, "doctor": doctor[1] if doctor else "", "left_out": [], "models": []}
    result["examples"] = [] if dry else example_rows(runs, args.build / "weft-tile", args.target)
    print("\n".join(result["examples"]))
    print("| model | ms | p90 ms | compile ms | kernels | GFLOP/s | verdict |\n|---|---|---|---|---|---|---|")
    for model in sorted(args.models.glob("*.onnx"), key=lambda path: path.stat().st_size):
        row = model_row(runs, weft, model, args.target, dry) if runs.left() > 0 else None
        if row is None:
            result["left_out"].append(model.stem)
            continue
        result["models"].append(row)
        number = lambda key: f"{row[key]:.4g}" if key in row else ""
        cells = [number(key) for key in ("median_ms", "p90_ms", "compile_ms", "unique_kernels", "gflops_per_s")]
        print(f"| {row['model']} | {' | '.join(cells)} | {row.get('error', row.get('verdict', ''))} |", flush=True)
    if result["left_out"]:
        print(f"\nleft out: {', '.join(result['left_out'])}")
    args.out.write_text(json.dumps(result, indent=1))
    wrong = [r for r in result["models"] if r.get("error") or r.get("verdict", "ok") != "ok"] + [e for e in result["examples"] if "WRONG" in e]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
