"""Strong scaling: the same work on 1, 2, 4 … all cores, Rayspin beside FINUFFT and scipy.

    cargo build --release -p rayspin-cli -p rayspin-kernels --examples --bins
    python benches/peers/scaling.py [seconds]

Milliseconds, best of several runs within the time given to each cell; in brackets the speed-up over one thread. The
NUFFT is at equal requested tolerance, 1e-3 in f32, both at their own choice of upsampling. The reconstruction is CG-SENSE,
20 iterations, of a simulated scan: 8 coils, 256^2, half of a spiral's interleaves; and 96^3, stack of spirals; its time is that
of the whole process, from file to file.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "target" / "release" / "examples"
RAYSPIN = os.environ.get("RAYSPIN", str(ROOT / "target" / "release" / "rayspin"))


def counts():
    cores = len(os.sched_getaffinity(0))
    return sorted({1 << i for i in range(cores.bit_length()) if 1 << i <= cores} | {cores})


def best_ms(call, seconds):
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, (time.perf_counter() - start) * 1e3)
    return best


def output(*words):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout


def nufft(matrix, threads, runs, batch):
    words = [
        "--matrix",
        ",".join(map(str, matrix)),
        "--points",
        1_000_000,
        "--precision",
        "f32",
        "--tolerance",
        1e-3,
    ]
    found = json.loads(
        output(
            EXAMPLES / "nufft_bench",
            *words,
            "--runs",
            runs,
            "--check",
            0,
            "--threads",
            threads,
            "--batch",
            batch,
        )
    )
    return [found["plan_ms"], found["type1_ms"], found["type2_ms"]]


def finufft_ms(matrix, threads, seconds, batch):
    import finufft
    import numpy as np

    rng = np.random.default_rng(1)
    x = [rng.uniform(-np.pi, np.pi, 1_000_000).astype(np.float32) for _ in matrix]
    times = [float("inf")]
    for kind, shape in ((1, (batch, 1_000_000)), (2, (batch, *matrix))):
        values = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
        for _ in range(5):
            start = time.perf_counter()
            plan = finufft.Plan(kind, matrix, batch, 1e-3, dtype=np.complex64, nthreads=threads)
            plan.setpts(*x)
            times[0] = min(times[0], (time.perf_counter() - start) * 1e3)
        times.append(best_ms(lambda: plan.execute(values), seconds))
    return times


def fft_ms(threads):
    lines = output(EXAMPLES / "fft_bench", 15, threads, "plain").splitlines()
    rows = {(r["batch"], *r["shape"]): r["best_ms"] for r in map(json.loads, lines)}
    return rows[1, 256, 256, 256]


def scipy_ms(threads, seconds):
    import numpy as np
    import scipy.fft

    rng = np.random.default_rng(1)
    data = rng.standard_normal((256, 256, 256, 2), dtype=np.float32).view(np.complex64)[..., 0]
    return best_ms(lambda: scipy.fft.fftn(data, workers=threads, overwrite_x=True, norm="ortho"), seconds)


def reconstruction(scan, threads, seconds):
    words = [RAYSPIN, "recon", "mri", scan, "-o", scan + ".npy", "--method", "cg-sense", "--iterations", 20]
    words += ["--tolerance", 0, "--threads", threads, "--quiet", "--no-record"]
    return best_ms(lambda: output(*words), seconds)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    threads = counts()
    rows = {}

    def add(name, values):
        rows.setdefault(name, []).append(values)

    with tempfile.TemporaryDirectory() as folder:
        scans = {}
        for name, words in {
            "CG-SENSE 256², 8 coils, file to file": ["--matrix", "256,256", "--trajectory", "spiral"],
            "CG-SENSE 96³, 8 coils, file to file": [
                "--matrix",
                "96,96,96",
                "--trajectory",
                "stack-of-spirals",
            ],
        }.items():
            scans[name] = f"{folder}/{len(scans)}.h5"
            output(
                RAYSPIN,
                "simulate",
                "mri",
                "-o",
                scans[name],
                *words,
                "--coils",
                8,
                "--acceleration",
                2,
                "--quiet",
            )
        for count in threads:
            for matrix, label in (((512, 512), "512²"), ((128, 128, 128), "128³")):
                for batch in (1, 8):
                    ours = nufft(matrix, count, 5, batch)
                    theirs = finufft_ms(matrix, count, seconds, batch)
                    for what, a, b in zip(("plan", "type 1", "type 2"), ours, theirs):
                        if batch == 1 or what != "plan":
                            name = f"NUFFT {label}, 1e6 points{', 8 coils' * (batch > 1)}, {what}"
                            add(f"{name}: Rayspin", a)
                            add(f"{name}: FINUFFT", b)
            add("FFT 256³: Rayspin", fft_ms(count))
            add("FFT 256³: scipy", scipy_ms(count, seconds))
            for name, scan in scans.items():
                add(f"{name}: Rayspin", reconstruction(scan, count, 2 * seconds))
    width = max(map(len, rows))
    print(f"{'threads':>{width}}" + "".join(f"{count:>16}" for count in threads))
    for name, values in rows.items():
        cells = "".join(f"{f'{v:.2f} ({values[0] / v:.1f}x)':>16}" for v in values)
        print(f"{name:>{width}}{cells}")


if __name__ == "__main__":
    main()
