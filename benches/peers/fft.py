"""FFT of Rayspin against FFTW, ducc0 and scipy.fft, complex64, the same threads, in turn on the same machine.

    cargo build --release -p rayspin-kernels --example fft_bench
    python benches/peers/fft.py [rounds] [threads]

FFTW is called in C, planned with MEASURE anew every round, in place, and does not scale, which spares it a pass; ducc0 and SciPy (pocketfft)
scale, in place. `build.sh` compiles ducc0 and FFTW for this processor, `versions.py` says how. Each round runs all once a problem, one after
the other, so that a busy machine slows them alike: one call that warms up, then the median of as many as Rayspin's. The table shows the best
and the median over rounds, and the median over rounds of the ratios.
"""

import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import time

import ducc0
import numpy as np
import scipy.fft
import versions

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
    """In memory that begins where vectors of any width want to."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal((batch, *shape, 2), dtype=np.float32)
    room = np.empty(values.size + 16, np.float32)
    aligned = room[-room.ctypes.data % 64 // 4 :][: values.size].reshape(values.shape)
    aligned[:] = values
    return aligned.view(np.complex64)[..., 0]


def median_ms(call):
    call()
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


class Scipy:
    name = "SciPy"

    def __init__(self, batch, shape, threads):
        self.data, self.threads = random(batch, shape), threads
        self.axes = tuple(range(1, 1 + len(shape)))

    def __call__(self):
        self.data = scipy.fft.fftn(self.data, axes=self.axes, workers=self.threads, overwrite_x=True, norm="ortho")


class Ducc0:
    name = "ducc0"

    def __init__(self, batch, shape, threads):
        self.data, self.threads = random(batch, shape), threads
        self.axes = tuple(range(1, 1 + len(shape)))

    def __call__(self):
        ducc0.fft.c2c(self.data, axes=self.axes, inorm=1, out=self.data, nthreads=self.threads)


class Fftw:
    name = "FFTW"
    MEASURE = 0

    def __init__(self, batch, shape, threads):
        library, omp = versions.fftw_libraries()
        assert omp.fftwf_init_threads() != 0
        omp.fftwf_plan_with_nthreads(threads)
        source, self.data = random(batch, shape), random(batch, shape)
        at = ctypes.c_void_p(self.data.ctypes.data)
        lengths = (ctypes.c_int * len(shape))(*shape)
        distance = int(np.prod(shape))
        library.fftwf_plan_many_dft.restype = ctypes.c_void_p
        library.fftwf_forget_wisdom()
        forward = -1
        plan = library.fftwf_plan_many_dft(
            len(shape), lengths, batch, at, None, 1, distance, at, None, 1, distance, forward, self.MEASURE
        )
        assert plan
        self.plan, self.library = ctypes.c_void_p(plan), library
        # Planning wrote over it.
        self.data[:] = source

    def __call__(self):
        self.library.fftwf_execute(self.plan)

    def __del__(self):
        self.library.fftwf_destroy_plan(self.plan)


PEERS = [Fftw, Ducc0, Scipy]


def right(peer, batch, shape):
    """Whether a peer's transform is the one that Rayspin is timed for."""
    call = peer(batch, shape, 2)
    call()
    scale = 1 if peer is Fftw else 1 / np.sqrt(np.prod(shape))
    want = scale * np.fft.fftn(random(batch, shape).astype(np.complex128), axes=range(1, 1 + len(shape)))
    return np.linalg.norm(call.data - want) < 1e-5 * np.linalg.norm(want)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    for peer in PEERS:
        assert right(peer, 3, (12, 10, 8)), peer.name
    times = {problem: [[] for _ in range(1 + len(PEERS))] for problem in SHOWN}
    for _ in range(rounds):
        ours = rayspin(threads)
        for problem in SHOWN:
            times[problem][0].append(ours[problem])
            for column, peer in zip(times[problem][1:], PEERS):
                column.append(median_ms(peer(*problem, threads)))
    names = [peer.name for peer in PEERS]
    print(
        f"{'problem':>16}"
        + "".join(f" {name + ' ms':>16}" for name in ["Rayspin", *names])
        + "".join(f" {name + ' / Rayspin':>16}" for name in names)
    )
    for (batch, shape), columns in times.items():
        name = f"{batch} x " * (batch > 1) + "x".join(map(str, shape))
        cells = [f"{min(t):.2f} ({statistics.median(t):.2f})" for t in columns]
        ratios = [statistics.median(y / x for x, y in zip(columns[0], t)) for t in columns[1:]]
        print(f"{name:>16}" + "".join(f" {cell:>16}" for cell in cells) + "".join(f" {ratio:>16.2f}" for ratio in ratios))
    print(f"best (median) of {rounds} rounds, {threads} threads")


if __name__ == "__main__":
    main()
