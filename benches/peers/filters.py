"""Filters of Rayspin against OpenCV, 4096 x 4096, the same threads, in turn on the same machine.

    cargo build --release -p rayspin-primitives --example filters_bench
    python benches/peers/filters.py [rounds] [threads]

OpenCV's edges are both Sobel gradients, their magnitudes and the saturated sum. Borders are replicated on both sides. Each round runs
all once, one after the other; the table shows the best and the median over rounds of each one's median, and the median of the ratios.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import cv2
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "target" / "release" / "examples" / "filters_bench"
REPETITIONS = 7
EDGE = cv2.BORDER_REPLICATE


def edges(image):
    gradients = [cv2.Sobel(image, cv2.CV_16S, dx, 1 - dx, ksize=3, borderType=EDGE) for dx in (1, 0)]
    return cv2.add(*(cv2.convertScaleAbs(g) for g in gradients))


def peers():
    rng = np.random.default_rng(1)
    images = {
        "u8": rng.integers(0, 256, (4096, 4096), dtype=np.uint8),
        "f32": rng.random((4096, 4096), dtype=np.float32),
    }
    calls = {"sobel u8": lambda: edges(images["u8"])}
    for kind, image in images.items():
        for radius in (1, 8, 64):
            size = (2 * radius + 1,) * 2
            calls[f"box {kind} radius {radius}"] = lambda i=image, s=size: cv2.blur(i, s, borderType=EDGE)
        small = np.ascontiguousarray(image[:2048, :2048])
        cubic = cv2.INTER_CUBIC
        calls[f"bicubic {kind} 2048 to 4096"] = lambda i=small: cv2.resize(i, (4096, 4096), interpolation=cubic)
        calls[f"bicubic {kind} 4096 to 2867"] = lambda i=image: cv2.resize(i, (2867, 2867), interpolation=cubic)
    for sigma in (0.5, 2.0):
        size = (2 * int(np.ceil(4 * sigma)) + 1,) * 2
        calls[f"gaussian f32 sigma {sigma:g}"] = lambda s=size, g=sigma: cv2.GaussianBlur(
            images["f32"], s, g, borderType=EDGE
        )
    return calls


def median_ms(call):
    call()
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def rayspin(threads):
    lines = subprocess.run([BENCH, str(threads)], check=True, capture_output=True, text=True).stdout.splitlines()
    return {row["name"]: row["ms"] for row in map(json.loads, lines)}


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    cv2.setNumThreads(threads)
    calls = peers()
    times = {}
    for _ in range(rounds):
        for name, ms in rayspin(threads).items():
            times.setdefault(name, []).append((ms, median_ms(calls[name])))
    print(f"{'filter':>26} {'Rayspin ms':>20} {'OpenCV ms':>20} OpenCV / Rayspin")
    for name, pairs in times.items():
        ours, theirs = zip(*pairs)
        cells = [f"{min(t):.2f} ({statistics.median(t):.2f})" for t in (ours, theirs)]
        print(f"{name:>26} {cells[0]:>20} {cells[1]:>20} {statistics.median(y / x for x, y in pairs):>16.2f}")
    print(f"best (median) of {rounds} rounds; OpenCV {cv2.__version__}, {threads} threads")


if __name__ == "__main__":
    main()
