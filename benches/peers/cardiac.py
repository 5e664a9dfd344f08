"""Cardiac radial CG-SENSE, file to file: Rayspin's command beside SigPy and BART, in turn, on the same threads.

    python benches/peers/cardiac.py [--runs 5] [--threads 2] [--iterations 15]

Rayspin is timed as a whole process. SigPy is timed from opening the file to the written image, without the start of
Python and its imports, after one warm-up run that compiles its kernels. BART (where a `bart` is on the PATH) is timed as
the commands that it takes from its own .cfl files, written before. All estimate maps from the k-space centre (SigPy:
low-resolution coil images over their root of sum of squares; BART: the same by `caldir`; the cheapest ways there are) and
run the same number of iterations with the same lambda, relative to the largest eigenvalue of the normal operator.

Then all three run with Rayspin's maps, so that they minimise the same |F S x - d|^2 + lambda |x|^2, and the objective and
residual that each has reached are evaluated with FINUFFT in double precision. Prints one JSON object a line.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("RAYSPIN_DATA", ROOT.parent / "shared" / "data"))


SHAPE = (256, 256)
RADIUS = 12  # of the calibration centre, cycles per field of view


def read(path, dims=2):
    """Trajectory [spoke, sample, (x, y[, z])] in cycles per field of view and data [coil, spoke, sample]."""
    import ismrmrd
    import numpy as np

    with ismrmrd.Dataset(path, "dataset", mode="r") as dataset:
        acquisitions = [dataset.read_acquisition(i) for i in range(dataset.number_of_acquisitions())]
    trajectory = np.stack([a.traj[:, :dims] for a in acquisitions]).astype(np.float32)
    return trajectory, np.stack([a.data for a in acquisitions], axis=1).astype(np.complex64)


def sigpy_reconstruct(path, output, iterations, lam, maps=None):
    import numpy as np
    import sigpy as sp
    import sigpy.mri as mr

    trajectory, ksp = read(path)
    # SigPy's coordinates are in the order of the image axes, y before x.
    coord = np.ascontiguousarray(trajectory[..., ::-1])
    if maps is None:
        dcf = mr.pipe_menon_dcf(coord, img_shape=SHAPE, max_iter=20, show_pbar=False).astype(np.float32)
        radius = np.linalg.norm(coord, axis=-1)
        window = np.where(radius < RADIUS, np.cos(np.pi * radius / (2 * RADIUS)) ** 2, 0).astype(np.float32)
        low = sp.nufft_adjoint(ksp * (dcf * window), coord, (len(ksp), *SHAPE))
        maps = low / np.sqrt(np.sum(np.abs(low) ** 2, axis=0, keepdims=True))
    normal = mr.linop.Sense(maps, coord=coord).N
    largest = sp.app.MaxEig(normal, dtype=np.complex64, max_iter=10, show_pbar=False).run()
    app = mr.app.SenseRecon(ksp, maps, lamda=lam * largest, coord=coord, max_iter=iterations, show_pbar=False)
    image = app.run()
    np.save(output, image)
    return image


class Bart:
    """BART's commands on .cfl files in a folder of their own."""

    def __init__(self, folder, path, threads, shape=SHAPE):
        import numpy as np

        self.folder = folder
        self.shape = shape
        self.pics = []  # seconds of the iterative reconstruction alone
        self.environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        trajectory, ksp = read(path, len(shape))
        coordinates = np.zeros((*trajectory.shape[:2], 3), np.complex64)
        coordinates[..., : len(shape)] = trajectory
        self.write("trajectory", coordinates.transpose(2, 1, 0))
        self.write("kspace", ksp.transpose(2, 1, 0)[None])
        self.coils = len(ksp)

    def write(self, name, array):
        """In column-major order, as BART has it."""
        with open(f"{self.folder}/{name}.hdr", "w") as header:
            header.write("# Dimensions\n" + " ".join(map(str, array.shape + (1,) * (16 - array.ndim))) + "\n")
        array.ravel(order="F").tofile(f"{self.folder}/{name}.cfl")

    def run(self, *words):
        subprocess.run(
            ["bart", *map(str, words)],
            cwd=self.folder,
            env=self.environment,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def maps(self):
        """Maps from the centre of k-space, the cheapest way that BART has."""
        width, axes = 2 * RADIUS, len(self.shape)
        size = ":".join(map(str, [width] * axes + [1] * (3 - axes)))
        self.run("nufft", "-i", "-m", 8, "-d", size, "trajectory", "kspace", "low")
        self.run("fft", "-u", 2**axes - 1, "low", "centre")
        sizes = [word for axis, n in enumerate(reversed(self.shape)) for word in (axis, n)]
        self.run("resize", "-c", *sizes, "centre", "calibration")
        self.run("caldir", width, "calibration", "maps")

    def write_maps(self, maps):
        """Maps [coil, (z,) y, x]."""
        self.write("maps", maps.T if maps.ndim == 4 else maps.T[:, :, None])

    def reconstruct(self, iterations, lam, maps=None):
        import numpy as np

        if maps is None:
            self.maps()
        else:
            self.write_maps(maps)
        start = time.perf_counter()
        self.run(
            "pics", "-S", "-l2", "-r", lam, "-i", iterations, "-t", "trajectory", "kspace", "maps", "image"
        )
        self.pics.append(time.perf_counter() - start)
        return np.fromfile(f"{self.folder}/image.cfl", np.complex64).reshape(self.shape)


def timed(call):
    """Seconds, and what the call returned."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def objective(path, image, maps, weight):
    """|F S x - d|^2 + weight |x|^2 and |F S x - d| / |d| at the best scale of x, in double precision."""
    import finufft
    import numpy as np

    trajectory, ksp = read(path)
    x = [2 * np.pi * trajectory[..., d].ravel().astype(np.float64) / SHAPE[1 - d] for d in (1, 0)]
    weighted = maps.astype(np.complex128) * image.astype(np.complex128)
    predicted = finufft.nufft2d2(*x, weighted, eps=1e-12, isign=-1).ravel()
    data = ksp.astype(np.complex128).ravel()
    # The scale that minimises the objective, for programs that return images in units of their own.
    power = np.vdot(predicted, predicted).real + weight * np.vdot(image, image).real
    scale = np.vdot(predicted, data) / power
    residual = np.linalg.norm(scale * predicted - data) ** 2
    total = residual + weight * abs(scale) ** 2 * np.linalg.norm(image) ** 2
    return total / np.linalg.norm(data) ** 2, np.sqrt(residual) / np.linalg.norm(data)


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
        ours, theirs, maps_file, record = (
            os.path.join(folder, name) for name in ("rayspin.npy", "sigpy.npy", "maps.npy", "record.json")
        )
        command = [
            os.environ.get("RAYSPIN", str(ROOT / "target" / "release" / "rayspin")),
            "recon",
            "mri",
            scan,
            "-o",
            ours,
            "--method",
            "cg-sense",
            "--iterations",
            str(args.iterations),
            "--tolerance",
            "0",
            "--lambda",
            str(args.lam),
            "--threads",
            str(args.threads),
            "--quiet",
        ]
        subprocess.run([*command, "--save-maps", maps_file, "--record", record], check=True)
        with open(record) as file:
            eigenvalue = json.load(file)["parameters"]["largest eigenvalue"]
        weight = args.lam * eigenvalue
        bart = Bart(folder, scan, args.threads) if shutil.which("bart") else None
        # BART's transform is scaled by 1/sqrt(voxels).
        bart_lam = weight / np.prod(SHAPE)
        programs = {
            "Rayspin": lambda: subprocess.run([*command, "--no-record"], check=True),
            "SigPy": lambda: sigpy_reconstruct(scan, theirs, args.iterations, args.lam),
        }
        if bart:
            programs["BART"] = lambda: bart.reconstruct(args.iterations, bart_lam)
        times = {name: [] for name in programs}
        for run in range(args.runs + 1):
            for name, call in programs.items():
                seconds, _ = timed(call)
                if run:  # the first round warms up
                    times[name].append(seconds)
        maps = np.squeeze(np.load(maps_file))
        images = {
            "Rayspin": np.squeeze(np.load(ours)),
            "SigPy": sigpy_reconstruct(scan, theirs, args.iterations, args.lam, maps),
        }
        if bart:
            images["BART"] = bart.reconstruct(args.iterations, bart_lam, maps)
    if bart:
        # Of every round but the first; the last was with Rayspin's maps.
        times["BART, pics alone"] = bart.pics[1:-1]
        images["BART, pics alone"] = images["BART"]
    for name, values in times.items():
        total, residual = objective(scan, images[name], maps, weight)
        magnitudes = [np.abs(images[which]).ravel() for which in ("Rayspin", name)]
        print(
            json.dumps(
                {
                    "program": name,
                    "threads": args.threads,
                    "iterations": args.iterations,
                    "seconds": [round(v, 4) for v in values],
                    "median": round(statistics.median(values), 4),
                    "over_rayspin": round(statistics.median(values) / statistics.median(times["Rayspin"]), 2),
                    "objective": round(total, 6),
                    "residual": round(residual, 6),
                    "correlation_with_rayspin": round(float(np.corrcoef(*magnitudes)[0, 1]), 5),
                }
            )
        )


if __name__ == "__main__":
    main()
