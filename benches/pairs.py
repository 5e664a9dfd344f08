"""Runs two builds of the program `rayspin` in turns, as whole processes, compares their times, and says whether they write the same files.

    python3 benches/pairs.py OLD NEW [SECONDS]

Each case runs at least ten pairs. It stops when the 95 % interval of the mean of log(new / old) is narrower than 0.03, or after SECONDS (60). The
build that goes first changes from pair to pair. Scans are those of RAYSPIN_DATA (else ../shared/data) and some that OLD simulates.
"""

import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = pathlib.Path(os.environ.get("RAYSPIN_DATA", ROOT.parent / "shared" / "data"))
LEAST, WIDTH = 10, 0.03

SIMULATED = [
    "mri --matrix 128,128 -t radial --angles golden --shots 600 --coils 8 --snr 40 --dynamics beat -o dynamic.h5",
    "mri --matrix 192,192,8 --coils 8 --acceleration 2 --snr 40 --noise-readouts 16 -o volume.h5",
    "mri --matrix 256,256 -t radial --shots 200 --coils 8 --snr 40 -o radial.h5",
    "ct --detector 256,256 --views 180 -o cone.h5",
]
CASES = [
    "mri brain_cartesian_8ch.cfl -m cg-sense --iterations 20",
    "mri cardiac_radial_12ch.h5 -m gridding",
    "mri dynamic.h5 --window 40 --stride 20 -m gridding",
    "mri volume.h5 -m cg-sense --lambda 1e-3 --iterations 10",
    "mri radial.h5 -m ls --iterations 40",
    "mri radial.h5 -m cg-sense --iterations 100",
    "mri radial.h5 -m tv --iterations 60",
    "mri radial.h5 -m wavelet --iterations 60",
    "ct tooth.h5",
    "ct cone.h5",
]


def seconds(program, case, folder, out):
    """The wall time of one run."""
    real = {path.name: str(path) for path in DATA.glob("*/*")}
    words = [real.get(word, word) for word in case.split()]
    begin = time.perf_counter()
    subprocess.run([program, "recon", *words, "-q", "--no-record", "-o", out], cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begin


def pairs(old, new, case, folder, most):
    """The times of both builds, and the mean of the ratio's logarithm with half of its 95 % interval."""
    times, logs, half, begin = {old: [], new: []}, [], math.inf, time.monotonic()
    while len(logs) < LEAST or (2 * half > WIDTH and time.monotonic() - begin < most):
        for program in (old, new) if len(logs) % 2 else (new, old):
            times[program].append(seconds(program, case, folder, "x.npy"))
        logs.append(math.log(times[new][-1] / times[old][-1]))
        if len(logs) > 1:
            half = 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
    return times, statistics.mean(logs), half


def main():
    old, new = (str(pathlib.Path(name).resolve()) for name in sys.argv[1:3])
    most = float(sys.argv[3]) if len(sys.argv) > 3 else 60
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for scan in SIMULATED:
            subprocess.run([old, "simulate", *scan.split(), "-q"], cwd=folder, check=True)
        for case in CASES:
            for program, out in ((old, "old.npy"), (new, "new.npy")):
                seconds(program, case, folder, out)
            same = (folder / "old.npy").read_bytes() == (folder / "new.npy").read_bytes()
            times, mean, half = pairs(old, new, case, folder, most)
            medians = ", ".join(f"{name} {1e3 * statistics.median(times[key]):.0f} ms" for name, key in (("new", new), ("old", old)))
            ratio = f"{math.exp(mean):.3f} ({math.exp(mean - half):.3f} to {math.exp(mean + half):.3f})"
            print(f"$ rayspin recon {case}\n{len(times[new])} pairs, {medians}, ratio {ratio}, files {'the same' if same else 'differ'}", flush=True)


if __name__ == "__main__":
    main()
