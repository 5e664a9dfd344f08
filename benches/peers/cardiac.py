"""Cardiac radial CG-SENSE, file to file: Rayspin's command beside SigPy, in turn, on the same threads.

    python benches/peers/cardiac.py [--runs 5] [--threads 2] [--iterations 15]

Rayspin is timed as a whole process. SigPy is timed from opening the file to the written image, without the start of
Python and its imports, after one warm-up run that compiles its kernels. Both estimate maps from the k-space centre
(SigPy: low-resolution coil images over their root of sum of squares, the cheapest way there is) and run the same number
of iterations with the same relative lambda. Prints one JSON object a line, then the ratio of the medians.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("RAYSPIN_DATA", ROOT.parent / "shared" / "data"))


def sigpy_reconstruct(path, output, iterations, lam):
    import ismrmrd
    import numpy as np
    import sigpy as sp
    import sigpy.mri as mr

    dataset = ismrmrd.Dataset(path, "dataset", create_if_needed=False)
    acquisitions = [dataset.read_acquisition(i) for i in range(dataset.number_of_acquisitions())]
    # SigPy's coordinates are in the order of the image axes, y before x.
    coord = np.stack([a.traj[:, 1::-1] for a in acquisitions]).astype(np.float32)
    ksp = np.stack([a.data for a in acquisitions], axis=1).astype(np.complex64)
    shape = (256, 256)
    dcf = mr.pipe_menon_dcf(coord, img_shape=shape, max_iter=20, show_pbar=False).astype(np.float32)
    radius = np.linalg.norm(coord, axis=-1)
    window = np.where(radius < 12, np.cos(np.pi * radius / 24) ** 2, 0).astype(np.float32)
    low = sp.nufft_adjoint(ksp * (dcf * window), coord, (12, *shape))
    maps = low / np.sqrt(np.sum(np.abs(low) ** 2, axis=0, keepdims=True))
    app = mr.app.SenseRecon(ksp, maps, lamda=0, coord=coord, max_iter=iterations, show_pbar=False)
    app.alg.max_iter = iterations
    # lambda relative to the largest eigenvalue, as Rayspin has it.
    normal = mr.linop.Sense(maps, coord=coord).N
    largest = sp.app.MaxEig(normal, dtype=np.complex64, max_iter=10, show_pbar=False).run()
    app = mr.app.SenseRecon(ksp, maps, lamda=lam * largest, coord=coord, max_iter=iterations, show_pbar=False)
    image = app.run()
    np.save(output, image)
    return image


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--lam", type=float, default=1e-3)
    args = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    import numpy as np

    scan = str(DATA / "mri" / "cardiac_radial_12ch.h5")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "rayspin.npy"), os.path.join(folder, "sigpy.npy")
        command = [
            os.environ.get("RAYSPIN", str(ROOT / "target" / "release" / "rayspin")), "recon", "mri", scan, "-o", ours,
            "--method", "cg-sense", "--iterations", str(args.iterations), "--tolerance", "0",
            "--lambda", str(args.lam), "--threads", str(args.threads), "--quiet", "--no-record",
        ]
        times = {"rayspin": [], "sigpy": []}
        for run in range(args.runs + 1):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            middle = time.perf_counter()
            sigpy_reconstruct(scan, theirs, args.iterations, args.lam)
            end = time.perf_counter()
            if run:  # the first pair warms up
                times["rayspin"].append(middle - start)
                times["sigpy"].append(end - middle)
        a, b = np.abs(np.load(ours)).ravel(), np.abs(np.load(theirs)).ravel()
        correlation = float(np.corrcoef(a, b)[0, 1])
        for name, values in times.items():
            print(json.dumps({"program": name, "seconds": [round(v, 4) for v in values], "median": round(statistics.median(values), 4)}))
        ratio = statistics.median(times["sigpy"]) / statistics.median(times["rayspin"])
        print(json.dumps({"threads": args.threads, "iterations": args.iterations, "sigpy_over_rayspin": round(ratio, 2), "correlation_of_magnitudes": round(correlation, 5)}))


if __name__ == "__main__":
    main()
