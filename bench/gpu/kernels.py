#!/usr/bin/env python3
"""Kernels for an NVIDIA GPU by Weft's tile language and by Triton, compiled side by side without a GPU.

    python bench/gpu/kernels.py [--gpu sm_90a] [--weft build/release/bench/weft_bench_gpu_kernels]

The same kernels with the same tiles on f32 (Triton with input_precision="ieee"), f16, bf16 and f8: milliseconds from source to
PTX (best of several, in process), then what Triton's own `ptxas` makes of either: milliseconds, registers, spilled bytes, shared
bytes, instructions, those of the main loop: multiplications (of matrix units or FFMA) and others; and what asks units for work.
`pip install triton` is all that it takes; nothing is run.
"""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile
import time

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin"
WIDTH = 1024


@triton.jit
def vector_add(x, y, z, n, W: tl.constexpr):
    at = tl.program_id(0) * W + tl.arange(0, W)
    inside = at < n
    tl.store(z + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def softmax(x, y, n, W: tl.constexpr):
    column = tl.arange(0, W)
    inside = column < n
    at = tl.program_id(0) * n + column
    v = tl.load(x + at, inside, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at, e / tl.sum(e, 0), inside)


@triton.jit
def layer_norm(x, scale, shift, y, n, W: tl.constexpr):
    column = tl.arange(0, W)
    inside = column < n
    at = tl.program_id(0) * n + column
    v = tl.load(x + at, inside, other=0.0)
    centred = v - tl.sum(tl.where(inside, v, 0.0), 0) / n
    variance = tl.sum(tl.where(inside, centred * centred, 0.0), 0) / n
    tl.store(y + at, centred * tl.rsqrt(variance + 1e-5) * tl.load(scale + column, inside) + tl.load(shift + column, inside), inside)


@triton.jit
def matmul(a, b, c, m, n, depth, R: tl.constexpr, C: tl.constexpr, K: tl.constexpr):
    across = tl.cdiv(n, C)
    i = tl.program_id(0) // across * R + tl.arange(0, R)[:, None]
    j = tl.program_id(0) % across * C + tl.arange(0, C)[None, :]
    acc = tl.zeros((R, C), tl.float32)
    for k in range(0, depth, K):
        across_k, down_k = k + tl.arange(0, K)[None, :], k + tl.arange(0, K)[:, None]
        left = tl.load(a + i * depth + across_k, (i < m) & (across_k < depth), other=0.0)
        right = tl.load(b + down_k * n + j, (down_k < depth) & (j < n), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + i * n + j, acc, (i < m) & (j < n))


@triton.jit
def matmul_columns(a, b, c, m, n, depth, R: tl.constexpr, C: tl.constexpr, K: tl.constexpr):
    across = tl.cdiv(n, C)
    i = tl.program_id(0) // across * R + tl.arange(0, R)[:, None]
    first = tl.program_id(0) % across * C
    acc = tl.zeros((R, C), tl.float32)
    for k in range(0, depth, K):
        across_k, down = k + tl.arange(0, K)[None, :], first + tl.arange(0, C)[:, None]
        left = tl.load(a + i * depth + across_k, (i < m) & (across_k < depth), other=0.0)
        right = tl.load(b + down * depth + across_k, (down < n) & (across_k < depth), other=0.0)
        acc = tl.dot(left, tl.trans(right), acc)
    j = first + tl.arange(0, C)[None, :]
    tl.store(c + i * n + j, acc, (i < m) & (j < n))


@triton.jit
def attention(q, k, v, out, length, R: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    blocks = tl.cdiv(length, R)
    head, first = tl.program_id(0) // blocks * length * D, tl.program_id(0) % blocks * R
    i, d = first + tl.arange(0, R)[:, None], tl.arange(0, D)[None, :]
    scaled = tl.load(q + head + i * D + d, i < length, other=0.0) * 0.125
    most = tl.full((R,), -1e30, tl.float32)
    total = tl.zeros((R,), tl.float32)
    acc = tl.zeros((R, D), tl.float32)
    for block in range(0, tl.minimum(first + R, length), C):
        j = block + tl.arange(0, C)
        keys = tl.load(k + head + j[None, :] * D + tl.arange(0, D)[:, None], j[None, :] < length, other=0.0)
        score = tl.where((j[None, :] <= i) & (j[None, :] < length), tl.dot(scaled, keys, input_precision="ieee"), -1e30)
        higher = tl.maximum(most, tl.max(score, 1))
        weight, shrink = tl.exp(score - higher[:, None]), tl.exp(most - higher)
        total = total * shrink + tl.sum(weight, 1)
        values = tl.load(v + head + j[:, None] * D + d, j[:, None] < length, other=0.0)
        acc = tl.dot(weight, values, acc * shrink[:, None], input_precision="ieee")
        most = higher
    tl.store(out + head + i * D + d, acc / total[:, None], i < length)


@triton.jit
def attention_f16(q, k, v, out, length, R: tl.constexpr, C: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, SCALE: tl.constexpr):
    blocks = tl.cdiv(length, R)
    head, first = tl.program_id(0) // blocks * length * D, tl.program_id(0) % blocks * R
    i, d = first + tl.arange(0, R)[:, None], tl.arange(0, D)[None, :]
    query = tl.load(q + head + i * D + d, i < length, other=0.0)
    most = tl.full((R,), -1e30, tl.float32)
    total = tl.zeros((R,), tl.float32)
    acc = tl.zeros((R, D), tl.float32)
    for block in range(0, tl.minimum(first + R, length) if CAUSAL else length, C):
        j, down = block + tl.arange(0, C)[None, :], block + tl.arange(0, C)[:, None]
        keys = tl.load(k + head + down * D + d, down < length, other=0.0)
        score = tl.where((j <= i) & (j < length) if CAUSAL else j < length, tl.dot(query, tl.trans(keys)) * SCALE, -1e30)
        higher = tl.maximum(most, tl.max(score, 1))
        weight, shrink = tl.exp(score - higher[:, None]), tl.exp(most - higher)
        total = total * shrink + tl.sum(weight, 1)
        values = tl.load(v + head + down * D + d, down < length, other=0.0)
        acc = tl.dot(weight.to(tl.float16), values, acc * shrink[:, None])
        most = higher
    tl.store(out + head + i * D + d, acc / total[:, None], i < length)


F, H, B, E, I = "*fp32", "*fp16", "*bf16", "*fp8e4nv", "i32"
KERNELS = {  # function, signature, constants[, warps, 4 if none are named]; sizes of kernels on narrower floats are multiples of 16
    "vector_add": (vector_add, dict(x=F, y=F, z=F, n=I), dict(W=WIDTH)),
    "softmax": (softmax, dict(x=F, y=F, n=I), dict(W=WIDTH)),
    "layer_norm": (layer_norm, dict(x=F, scale=F, shift=F, y=F, n=I), dict(W=WIDTH)),
    "matmul": (matmul, dict(a=F, b=F, c=F, m=I, n=I, depth=I), dict(R=64, C=64, K=16)),
    "attention": (attention, dict(q=F, k=F, v=F, out=F, length=I), dict(R=32, C=32, D=64)),
    "matmul_f16": (matmul, dict(a=H, b=H, c=F, m=I, n=I, depth=I), dict(R=64, C=64, K=32)),
    "matmul_f16_large": (matmul, dict(a=H, b=H, c=F, m=I, n=I, depth=I), dict(R=128, C=128, K=32), 8),
    "matmul_bf16": (matmul, dict(a=B, b=B, c=F, m=I, n=I, depth=I), dict(R=128, C=128, K=32), 8),
    "matmul_bf16_wide": (matmul, dict(a=B, b=B, c=F, m=I, n=I, depth=I), dict(R=128, C=256, K=32), 8),
    "matmul_f8": (matmul_columns, dict(a=E, b=E, c=F, m=I, n=I, depth=I), dict(R=128, C=128, K=64), 8),
    "attention_f16": (attention_f16, dict(q=H, k=H, v=H, out=F, length=I), dict(R=64, C=64, D=64, CAUSAL=True, SCALE=0.125)),
    "attention_f16_full": (attention_f16, dict(q=H, k=H, v=H, out=F, length=I), dict(R=64, C=64, D=64, CAUSAL=False, SCALE=0.125)),
    "attention_f16_128": (attention_f16, dict(q=H, k=H, v=H, out=F, length=I), dict(R=64, C=32, D=128, CAUSAL=True, SCALE=128**-0.5)),
    "attention_f16_128_full": (attention_f16, dict(q=H, k=H, v=H, out=F, length=I), dict(R=64, C=32, D=128, CAUSAL=False, SCALE=128**-0.5)),
}
# What is modelled: a problem's programs, least bytes, multiply-adds.
PROBLEMS = {
    "vector_add": ("2^26", 2**26 // WIDTH, 12 * 2**26, 2**25),
    "softmax": ("65536 x 1024", 65536, 8 * 65536 * 1024, 65536 * 1024 * 4),
    "layer_norm": ("65536 x 1024", 65536, 8 * 65536 * 1024, 65536 * 1024 * 4),
    "matmul": ("4096^3", 64 * 64, 12 * 4096**2, 4096**3),
    "attention": ("64 heads, 4096, d 64, causal", 64 * 128, 16 * 64 * 4096 * 64, 64 * 4096**2 * 64),
    "matmul_f16": ("4096^3", 64 * 64, 8 * 4096**2, 4096**3),
    "matmul_f16_large": ("4096^3", 32 * 32, 8 * 4096**2, 4096**3),
    "matmul_bf16": ("4096^3", 32 * 32, 8 * 4096**2, 4096**3),
    "matmul_bf16_wide": ("8192 x 8192 x 1024", 64 * 32, 2 * 2 * 8192 * 1024 + 4 * 8192**2, 8192**2 * 1024),
    "matmul_f8": ("4096^3", 32 * 32, 6 * 4096**2, 4096**3),
    "attention_f16": ("64 heads, 4096, d 64, causal", 64 * 64, 10 * 64 * 4096 * 64, 64 * 4096**2 * 64),
    "attention_f16_full": ("64 heads, 4096, d 64", 64 * 64, 10 * 64 * 4096 * 64, 2 * 64 * 4096**2 * 64),
    "attention_f16_128": ("32 heads, 4096, d 128, causal", 32 * 64, 10 * 32 * 4096 * 128, 32 * 4096**2 * 128),
    "attention_f16_128_full": ("32 heads, 4096, d 128", 32 * 64, 10 * 32 * 4096 * 128, 2 * 32 * 4096**2 * 128),
}
WITHOUT = {"sm_80": {"matmul_f8"}}  # Triton refuses it there
# multiprocessors, GHz, GB/s, multiply-adds a cycle: of f32, of f16 by matrix units, by mma.sync; KiB of shared memory
GPUS = {"sm_80": (108, 1.41, 1555, 64, 1024, 1024, 164), "sm_90a": (132, 1.8, 3350, 128, 2048, 1024, 228),
        "sm_100a": (148, 1.9, 8000, 128, 4096, 1024, 228)}
UNITS = re.compile(r"\b(HMMA|IMMA|QMMA|HGMMA|IGMMA|QGMMA|UTCHMMA|UTCQMMA)")
ASKED = {"wgmma": r"[HIQ]GMMA", "mma": r"[HIQ]MMA", "ldmatrix": "LDSM", "cp.async": "LDGSTS", "TMA": "UTMALDG|UBLKCP", "barriers": r"BAR\.|SYNCS"}
THREADS = re.compile(r"\bFFMA")


def compile_triton(name, gpu):
    """The PTX, and the milliseconds to it: assembling, which Triton does next, is timed apart."""
    function, signature, constants, *warps = KERNELS[name]
    signature = signature | {c: "constexpr" for c in constants}
    aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(signature.values()) if t in (F, H, B, E) or (t == I and {H, B, E} & set(signature.values()))}
    source = triton.compiler.ASTSource(function, signature, constants, aligned)
    os.environ |= {"TRITON_ALWAYS_COMPILE": "1", "TRITON_DEFAULT_FP_FUSION": "1"}
    best, text = float("inf"), ""
    for _ in range(3):
        begin = time.perf_counter()
        made = triton.compile(source, target=GPUTarget("cuda", int(re.sub(r"\D", "", gpu)), 32), options={"num_warps": warps[0] if warps else 4})
        total = 1e3 * (time.perf_counter() - begin)
        text = made.asm["ptx"]
        best = min(best, total - assemble(text, gpu)["ms"])
    return best, text, made.metadata.shared


def main_loop(sass):
    """Of the loop with the largest share of products, by matrix units if there are some: products and other instructions."""
    lines = [(int(at, 16), text) for at, text in re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", sass, re.M) if not text.startswith("NOP")]
    best = (0, 0)
    kind = UNITS if UNITS.search(sass) else THREADS
    for at, text in lines:
        jump = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", text)
        if not jump or int(jump[1], 16) >= at:
            continue
        body = [t for a, t in lines if int(jump[1], 16) <= a <= at]
        products = sum(bool(kind.search(t)) for t in body)
        if products > 0 and (best[0] == 0 or products / len(body) > best[0] / sum(best)):
            best = (products, len(body) - products)
    return f"{best[0]} + {best[1]}" if best[0] else "none"


def units_macs(sass):
    """Multiply-adds of a warp in the main loop's products by matrix units."""
    of_warp = {"16816": 16 * 8 * 16, "16832": 16 * 8 * 32}
    of_four = re.search(r"[HIQ]GMMA\.(\d+)x(\d+)x(\d+)", sass)
    alone = re.search(r"[HIQ]MMA\.(\d+)", sass)
    count = main_loop(sass).split(" + ")[0]
    if not count.isdigit() or not (of_four or alone):
        return 0
    return int(count) * (int(of_four[1]) * int(of_four[2]) * int(of_four[3]) // 4 if of_four else of_warp.get(alone[1], 0))


def modelled(name, gpu, made, warps):
    """Blocks of a multiprocessor, waves, and the share of the roofline if nothing but bandwidth, multiplications, issued
    instructions of the main loop (four a cycle) and the last wave counted. Nothing of it is measured."""
    _, programs, moved, products = PROBLEMS[name]
    cores, ghz, gbytes, f32, units, mma, shared = GPUS[gpu]
    registers = -(-made["registers"] // 8) * 8
    blocks = max(1, min(65536 // (registers * 32 * warps), 64 // warps, 32, shared * 1024 // max(made["shared"] + 1024, 1)))
    waves = programs / (blocks * cores)
    on_units = made["macs"] > 0
    units *= 2 if "f8" in name else 1
    least = max(moved / gbytes / 1e3, products / cores / ghz / (units if on_units else f32) / 1e3)  # us
    count, others = ([int(n) for n in made["loop"].split(" + ")] if "+" in made["loop"] else (0, 0))
    issued = 0
    if count:
        of_loop = made["macs"] if on_units else 32 * count  # of a warp
        issued = products / of_loop * (count + others) / 4 / cores / ghz / 1e3
        if "HMMA" in made["sass"]:
            issued = max(issued, products / mma / cores / ghz / 1e3)
    took = max(least, issued) * -(-waves // 1) / waves if waves > 1 else max(least, issued) / waves
    return blocks, waves, least / took


def assemble(ptx, gpu):
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
        source.write_text(ptx)
        begin = time.perf_counter()
        log = subprocess.run([TOOLS / "ptxas-blackwell", "-v", f"-arch={gpu}", source, "-o", cubin], capture_output=True, text=True, check=True).stderr
        ms = 1e3 * (time.perf_counter() - begin)
        sass = subprocess.run([TOOLS / "cuobjdump", "-sass", cubin], capture_output=True, text=True).stdout
    number = lambda pattern: sum(map(int, re.findall(pattern, log)))
    return {"ms": ms, "registers": number(r"Used (\d+) registers"), "spilled": number(r"(\d+) bytes spill stores"),
            "shared": number(r"(\d+) bytes smem"), "instructions": len(re.findall(r"^\s+/\*[0-9a-f]{4}\*/\s+(?!NOP)", sass, re.M)), "loop": main_loop(sass), "asked": {k: n for k, p in ASKED.items() if (n := len(re.findall(rf"^\s+/\*[0-9a-f]{{4}}\*/.*?\b(?:{p})", sass, re.M)))}, "macs": units_macs(sass), "sass": sass,
            "warps": int(re.search(r"\.(?:maxntid|reqntid) (\d+)", ptx)[1]) // 32}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", default="sm_90a")
    parser.add_argument("--weft", default=str(ROOT / "build/release/bench/weft_bench_gpu_kernels"))
    parser.add_argument("--sass", help="folder to leave the disassembly in")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([args.weft, f"cuda:{args.gpu}", folder], capture_output=True, text=True, check=True).stdout.splitlines()
        weft = {name: (float(ms), (pathlib.Path(folder) / f"{name}.ptx").read_text()) for name, ms in map(str.split, lines)}
    print(f"{args.gpu}, Triton {triton.__version__}; ratio: Triton's time over Weft's, above 1 Weft is faster\n")
    print("| kernel | ms to PTX | ratio | ms of ptxas | registers | spilled B | shared B | instructions | main loop: products + others | asks units |\n|---|---|---|---|---|---|---|---|---|---|")
    roofline = []
    for name in KERNELS:
        if name in WITHOUT.get(args.gpu, ()):
            continue
        triton_ms, text, shared = compile_triton(name, args.gpu)
        theirs, (ms, own) = assemble(text, args.gpu), weft[name]
        ours = assemble(own, args.gpu)
        theirs["shared"] += shared
        for who, made in (("weft", ours), ("triton", theirs)) if args.sass else ():
            (pathlib.Path(args.sass) / f"{name}.{who}.sass").write_text(made["sass"])
        roofline.append((name, ours, theirs))
        both = " | ".join(f"{ours[k]} / {theirs[k]}" for k in ("registers", "spilled", "shared", "instructions", "loop"))
        asked = " / ".join(", ".join(f"{n} {k}" for k, n in made["asked"].items()) or "nothing" for made in (ours, theirs))
        print(f"| {name} | {ms:.1f} / {triton_ms:.1f} | {triton_ms / ms:.1f} | {ours['ms']:.0f} / {theirs['ms']:.0f} | {both} | {asked} |", flush=True)
    print("\nModelled, not measured (Weft's / Triton's):\n")
    print("| kernel | problem | least MB | GFLOP | blocks of a multiprocessor | waves | share of the roofline |\n|---|---|---|---|---|---|---|")
    for name, ours, theirs in roofline if args.gpu in GPUS else ():
        sides = [modelled(name, args.gpu, made, made["warps"]) for made in (ours, theirs)]
        problem, _, moved, products = PROBLEMS[name]
        both = " | ".join(" / ".join(f"{side[k]:{form}}" for side in sides) for k, form in ((0, "d"), (1, ".1f"), (2, ".2f")))
        print(f"| {name} | {problem} | {moved / 1e6:.0f} | {2 * products / 1e9:.1f} | {both} |")


if __name__ == "__main__":
    main()
