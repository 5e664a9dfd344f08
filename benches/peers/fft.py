"""FFT of Rayspin against scipy.fft (pocketfft) and FFTW, complex64, the same threads, in turn on the same machine.

    cargo build --release -p rayspin-kernels --example fft_bench
    python benches/peers/fft.py [rounds] [threads]

FFTW is planned with MEASURE, in place, and not asked to scale, which spares it a pass. Each round runs all once a problem,
one after the other, so that a busy machine slows them alike; the table shows the best and the median over rounds of each
one's median, and the median over rounds of the ratios.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import pyfftw
import scipy.fft

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "target" / "release" / "examples" / "fft_bench"
REPETITIONS = 9
SHOWN = [(1, (128, 128, 128)), (1, (256, 256, 256)), (1, (512, 512)), (8, (256, 256))]


def rayspin(threads):
    lines = subprocess.run(
        [BENCH, str(REPETITIONS), str(threads), "plain"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return {(row["batch"], tuple(row["shape"])): row["median_ms"] for row in rows}


def random(batch, shape):
    rng = np.random.default_rng(1)
    return rng.standard_normal((batch, *shape, 2), dtype=np.float32).view(np.complex64)[..., 0]


def median_ms(call):
    call()
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


class Scipy:
    name = f"scipy {scipy.__version__}"

    def __init__(self, batch, shape, threads):
        self.data, self.threads = random(batch, shape), threads
        self.axes = tuple(range(1, 1 + len(shape)))

    def __call__(self):
        self.data = scipy.fft.fftn(
            self.data, axes=self.axes, workers=self.threads, overwrite_x=True, norm="ortho"
        )


class Fftw:
    name = f"FFTW {pyfftw.fftw_version}"

    def __init__(self, batch, shape, threads):
        self.data = pyfftw.empty_aligned((batch, *shape), dtype="complex64")
        axes = tuple(range(1, 1 + len(shape)))
        self.plan = pyfftw.FFTW(self.data, self.data, axes=axes, flags=("FFTW_MEASURE",), threads=threads)
        self.source = random(batch, shape)
        self.data[:] = self.source

    def __call__(self):
        self.plan.execute()

    def refill(self):
        """Unscaled transforms of transforms overflow."""
        self.data[:] = self.source


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    peers = {problem: [Scipy(*problem, threads), Fftw(*problem, threads)] for problem in SHOWN}
    times = {problem: [[] for _ in range(3)] for problem in SHOWN}
    for _ in range(rounds):
        ours = rayspin(threads)
        for problem in SHOWN:
            times[problem][0].append(ours[problem])
            for column, peer in zip(times[problem][1:], peers[problem]):
                if isinstance(peer, Fftw):
                    peer.refill()
                column.append(median_ms(peer))
    names = ["Rayspin", Scipy.name, "FFTW"]
    print(
        f"{'problem':>16}"
        + "".join(f" {name + ' ms':>20}" for name in names)
        + " scipy / Rayspin  FFTW / Rayspin"
    )
    for (batch, shape), columns in times.items():
        name = f"{batch} x " * (batch > 1) + "x".join(map(str, shape))
        cells = [f"{min(t):.2f} ({statistics.median(t):.2f})" for t in columns]
        ratios = [statistics.median(y / x for x, y in zip(columns[0], t)) for t in columns[1:]]
        print(
            f"{name:>16}"
            + "".join(f" {cell:>20}" for cell in cells)
            + f" {ratios[0]:>15.2f} {ratios[1]:>15.2f}"
        )
    print(f"best (median) of {rounds} rounds; {Scipy.name}, {Fftw.name} through pyFFTW, {threads} threads")


if __name__ == "__main__":
    main()
