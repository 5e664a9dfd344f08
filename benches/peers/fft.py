"""FFT of Rayspin against scipy.fft (pocketfft), complex64, two threads, in turn on the same machine.

    cargo build --release -p rayspin-kernels --example fft_bench
    python benches/peers/fft.py [rounds]

Each round runs both once a problem, one after the other, so that a busy machine slows both alike; the table shows the
best and the median over rounds of each one's median.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.fft

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "target" / "release" / "examples" / "fft_bench"
THREADS = 2
REPETITIONS = 9
SHOWN = [(1, (128, 128, 128)), (1, (256, 256, 256)), (1, (512, 512)), (8, (256, 256))]


def rayspin():
    lines = subprocess.run(
        [BENCH, str(REPETITIONS), str(THREADS), "plain"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return {(row["batch"], tuple(row["shape"])): row["median_ms"] for row in rows}


def scipy_ms(batch, shape):
    rng = np.random.default_rng(1)
    data = rng.standard_normal((batch, *shape, 2), dtype=np.float32).view(np.complex64)[..., 0]
    axes = tuple(range(1, 1 + len(shape)))
    scipy.fft.fftn(data, axes=axes, workers=THREADS)
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        data = scipy.fft.fftn(data, axes=axes, workers=THREADS, overwrite_x=True, norm="ortho")
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ours = {problem: [] for problem in SHOWN}
    theirs = {problem: [] for problem in SHOWN}
    for _ in range(rounds):
        times = rayspin()
        for problem in SHOWN:
            ours[problem].append(times[problem])
            theirs[problem].append(scipy_ms(*problem))
    print(f"{'problem':>16} {'Rayspin ms':>20} {'scipy ms':>20} {'scipy / Rayspin':>16}")
    for batch, shape in SHOWN:
        a, b = ours[batch, shape], theirs[batch, shape]
        name = f"{batch} x " * (batch > 1) + "x".join(map(str, shape))
        columns = [f"{min(t):.2f} ({statistics.median(t):.2f})" for t in (a, b)]
        ratio = statistics.median(y / x for x, y in zip(a, b))
        print(f"{name:>16} {columns[0]:>20} {columns[1]:>20} {ratio:>16.2f}")
    print(f"best (median) of {rounds} rounds; scipy {scipy.__version__}, {THREADS} threads")


if __name__ == "__main__":
    main()
