"""Corrections of line integrals by Rayspin, algotom and SciPy/scikit-image: times at equal threads, and whether the results are the same.

    cargo build --release -p rayspin-ct --example corrections_bench
    python -m pip install algotom scikit-image pillow     # wheels; not in requirements.txt
    python benches/peers/ct_corrections.py [rounds] [threads] [folder of real scans, or ""] [corrections to time, or all]

The stack has 1800 views of 16 rows of 2048 columns: a few discs, noise, gains that make stripes. Peers do a part of it, which is stated, and their
time is scaled: one sinogram for stripes, views for medians; every sinogram and view takes the same time. With two threads two processes of a
peer share the work. Times are processor time over the number of threads, the best and the median of rounds: others use the machine, too.
Defaults everywhere: both ring removals of algotom have the parameters of Rayspin's, and take transmissions as its guide does.
"""

import concurrent.futures
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import algotom.prep.removal as removal
import numpy as np
import scipy.ndimage as ndi
import skimage.filters
import skimage.morphology

BENCH = pathlib.Path(__file__).resolve().parents[2] / "target" / "release" / "examples" / "corrections_bench"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
SCANS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] else None
ONLY = sys.argv[4:]
VIEWS, ROWS, COLUMNS = 1800, 16, 2048


def stack():
    rng = np.random.default_rng(1)
    column = np.arange(COLUMNS) - COLUMNS / 2
    angle = np.linspace(0, np.pi, VIEWS, endpoint=False)[:, None]
    lines = np.zeros((VIEWS, COLUMNS))
    for x, y, radius, value in [(0, 0, 800, 2e-3), (300, 100, 200, -1e-3), (-250, 250, 90, 3e-3), (100, -500, 40, 4e-3)]:
        away = column - (x * np.cos(angle) + y * np.sin(angle))
        lines += value * 2 * np.sqrt(np.maximum(radius**2 - away**2, 0))
    gain = 0.01 * rng.standard_normal((ROWS, COLUMNS))
    gain[:, ::97] += 0.2
    noise = 0.02 * rng.standard_normal((VIEWS, ROWS, COLUMNS), dtype=np.float32)
    return (lines[:, None, :] + gain + noise).astype(np.float32)


def stripes(lines):
    # Rayspin's widths: 51 and 21 of 2048 columns, as algotom's defaults.
    large, small = (max(3, lines.shape[1] // part) | 1 for part in (40, 96))
    return -np.log(removal.remove_all_stripe(np.exp(-lines), 3.0, large, small, drop_ratio=0.1))


def wavelet(lines):
    level = int(np.log2(lines.shape[1] // 64))
    return removal.remove_stripe_based_wavelet_fft(lines, level=level, size=2, wavelet_name="db5")


def medians(box, views):
    """Peers of medians over a box, timed on some of the views."""
    part, share = (lambda s: s[:views]), VIEWS / views
    footprint = np.ones([n for n in box if n > 1])
    one = lambda v: skimage.filters.median(v, footprint, behavior="ndimage")
    return {
        "scipy median_filter": (lambda v: ndi.median_filter(v, box), part, share),
        "scikit-image median": (one if box[0] > 1 else lambda v: [one(view) for view in v], part, share),
    }


# A call on a part of the stack, the part, and the part's share of the whole.
PEERS = {
    "rings": {"algotom remove_all_stripe": (stripes, lambda s: s[:, 0, :], ROWS)},
    "rings-wavelet": {"algotom remove_stripe_based_wavelet_fft": (wavelet, lambda s: s[:, 0, :], ROWS)},
    "median 3x3": medians((1, 3, 3), 20),
    "median 5x5": medians((1, 5, 5), 10),
    "median 3x3x3": medians((3, 3, 3), 10),
}


def seconds(what, name, values):
    call = PEERS[what][name][0]
    start = time.process_time()
    call(values)
    return time.process_time() - start


def rayspin(path):
    lines = subprocess.run([BENCH, path, str(THREADS)], check=True, capture_output=True, text=True).stdout.splitlines()
    return {row["name"]: 1e-3 * row["cpu_ms"] / THREADS for row in map(json.loads, lines)}


def timed(folder):
    values = stack()
    np.save(folder / "stack.npy", values)
    ours, theirs = {}, {}
    with concurrent.futures.ProcessPoolExecutor(THREADS) as pool:
        for _ in range(ROUNDS):
            for name, took in rayspin(folder / "stack.npy").items():
                ours.setdefault(name, []).append(took)
            for what, peers in PEERS.items():
                if ONLY and what not in ONLY:
                    continue
                for name, (_, part, scale) in peers.items():
                    part = np.ascontiguousarray(part(values))
                    runs = [pool.submit(seconds, what, name, part) for _ in range(THREADS)]
                    took = statistics.mean(run.result() for run in runs) * scale / THREADS
                    theirs.setdefault((what, name), []).append(took)
    for name, times in ours.items():
        if ONLY and name not in ONLY:
            continue
        print(f"{name:16} {'Rayspin':42} {min(times):8.2f} s ({statistics.median(times):.2f})")
        for (what, peer), other in theirs.items():
            if what == name:
                ratio = statistics.median(y / x for x, y in zip(times, other))
                print(f"{'':16} {peer:42} {min(other):8.2f} s ({statistics.median(other):.2f})   {ratio:6.1f} times", flush=True)


def ours(lines, folder):
    np.save(folder / "lines.npy", lines.astype(np.float32))
    subprocess.run([BENCH, folder / "lines.npy", "2", folder], check=True, stdout=subprocess.DEVNULL)
    return {name: np.load(folder / f"{name}.npy") for name in ("rings", "rings-wavelet", "median 3x3")}


def compared(title, lines, folder):
    """Our results beside the peers', in the middle row: RMS of the difference, and the RMS of what was changed."""
    found = ours(lines, folder)
    row = lines.shape[1] // 2
    before = lines[:, row]
    for name, call in (("rings", stripes), ("rings-wavelet", wavelet)):
        wanted, got = call(before.astype(np.float32)), found[name][:, row]
        rms = lambda x: float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))
        correlation = np.corrcoef((got - before).ravel(), (wanted - before).ravel())[0, 1]
        print(f"{title}, {name}: difference {rms(got - wanted):.2e}, change {rms(wanted - before):.2e}, correlation of changes {correlation:.6f}", flush=True)
    wanted = ndi.median_filter(lines, (1, 3, 3))
    print(f"{title}, median 3x3: largest difference {np.abs(found['median 3x3'] - wanted).max():.1e}")


def real(folder):
    import h5py
    from PIL import Image

    with h5py.File(SCANS / "tooth.h5") as file:
        data, flat, dark = (np.asarray(file[f"exchange/{name}"], np.float64) for name in ("data", "data_white", "data_dark"))
    dark = dark.mean(axis=0)
    compared("tooth.h5", -np.log(np.maximum(data - dark, 1) / (flat.mean(axis=0) - dark)).astype(np.float32), folder)
    sinogram = np.asarray(Image.open(SCANS / "neutron_sinogram_360.tif"), np.float64)
    sinogram = np.maximum(sinogram, 1) / np.percentile(sinogram, 99)
    compared("neutron_sinogram_360.tif", -np.log(sinogram).astype(np.float32)[:, None, :], folder)


def main():
    version = importlib.metadata.version
    names = ("algotom", "numpy", "scipy", "scikit-image")
    print(f"{THREADS} threads, {ROUNDS} rounds; " + ", ".join(f"{name} {version(name)}" for name in names), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if SCANS:
            real(pathlib.Path(folder))
        timed(pathlib.Path(folder))


if __name__ == "__main__":
    main()
