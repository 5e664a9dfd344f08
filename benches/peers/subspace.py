"""Coefficients of a T2-prepared radial series over a temporal basis: Rayspin beside BART's `pics -B`.

    make build
    python benches/peers/subspace.py [--runs 5] [--threads 2] [--iterations 30]

32 echoes, 10 ms apart, of 8 golden-angle spokes each; 128 x 128 voxels, 8 coils, noise, and discs of T2 from
20 to 1500 ms. The object has no frequencies beyond those that the spokes reach. Samples are FINUFFT's in double
precision. The basis has 4 columns, the first right singular vectors of 256 decays with T2 from 10 ms to 2 s at the
echo times. `--basis svd:4` takes the same. The truth is the object's coefficients on that basis. Both programs have the same samples, maps and basis, and minimise
|A c - d|^2 + lambda |c|^2 by conjugate gradients, each with the best lambda of a sweep. Both are timed as a
command from files to files, in turn. Errors are relative l2, after the scale that fits best, of all
coefficients together and of each.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import finufft
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = pathlib.Path(os.environ.get("RAYSPIN", TARGET / "release" / "rayspin"))
N, COILS, ECHOES, SPOKES, READOUT, K = 128, 8, 32, 8, 256, 4
SPACING = 0.010  # s, from one echo to the next, and to the first
SVD = f"svd:{K}"
NOISE = 2e-4  # of each part of a sample, relative to the largest sample
RAYSPIN = [1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3]  # relative to the largest eigenvalue
BART = [1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2]  # as BART has it

# Centre y, x and radius in parts of the field of view, T2 in s, density.
DISCS = [
    (0.0, 0.0, 0.42, 0.080, 0.6),
    (-0.2, -0.15, 0.09, 0.020, 0.7),
    (-0.2, 0.15, 0.09, 0.040, -0.3),
    (0.05, -0.22, 0.07, 0.120, 0.4),
    (0.05, 0.0, 0.07, 0.200, 0.4),
    (0.05, 0.22, 0.07, 0.500, 0.4),
    (0.25, 0.0, 0.10, 1.500, 0.5),
    (0.25, 0.2, 0.03, 0.060, 0.8),
]


def write(path, array):
    """An array whose axes are BART's in reverse, as a pair of files."""
    dims = " ".join(map(str, array.shape[::-1]))
    path.with_suffix(".hdr").write_text(f"# Dimensions\n{dims}\n")
    np.ascontiguousarray(array, np.complex64).tofile(path.with_suffix(".cfl"))


def read(path):
    dims = [int(n) for n in path.with_suffix(".hdr").read_text().splitlines()[1].split()]
    return np.fromfile(path.with_suffix(".cfl"), np.complex64).reshape(dims[::-1])


def discs():
    """Densities of the tissues, [tissue, y, x], and their T2."""
    fine = 4 * N
    at = (np.arange(fine) + 0.5) / fine - 0.5
    y, x = np.meshgrid(at, at, indexing="ij")
    frequency = np.fft.fftfreq(N, 1 / N)
    radius = np.hypot(*np.meshgrid(frequency, frequency, indexing="ij"))
    # 1 at the centre, and 0 from the spokes' ends on.
    window = np.where(radius < N / 2, np.cos(np.pi * radius / N) ** 2, 0)
    images = []
    for cy, cx, r, _, density in DISCS:
        disc = density * (np.hypot(y - cy, x - cx) < r)
        coarse = disc.reshape(N, 4, N, 4).mean((1, 3))
        images.append(np.fft.ifft2(np.fft.fft2(coarse) * window))
    return np.array(images), np.array([disc[3] for disc in DISCS])


def maps():
    at = np.arange(N) / N - 0.5
    y, x = np.meshgrid(at, at, indexing="ij")
    found = []
    for coil in range(COILS):
        angle = 2 * np.pi * coil / COILS
        apart = (y - 0.6 * np.sin(angle)) ** 2 + (x - 0.6 * np.cos(angle)) ** 2
        phase = angle + 2 * x * np.cos(angle) - 2 * y * np.sin(angle)
        found.append(np.exp(-apart / 0.4) * np.exp(1j * phase))
    return np.array(found)


def simulate(folder):
    """Writes the scan; returns the object's images [echo, y, x]."""
    densities, t2 = discs()
    times = SPACING * np.arange(1, ECHOES + 1)
    images = np.einsum("tyx,ft->fyx", densities, np.exp(-times[:, None] / t2))
    coils = maps()
    angle = np.pi * (np.sqrt(5) - 1) / 2 * np.arange(ECHOES * SPOKES).reshape(ECHOES, SPOKES, 1)
    r = (np.arange(READOUT) - READOUT / 2) * N / READOUT
    kx, ky = (np.ascontiguousarray(part) for part in (r * np.cos(angle), r * np.sin(angle)))
    turn = 2 * np.pi / N
    data = np.empty((ECHOES, COILS, SPOKES * READOUT), complex)
    for f in range(ECHOES):
        seen = coils * images[f]
        points = ky[f].ravel() * turn, kx[f].ravel() * turn
        data[f] = finufft.nufft2d2(*points, seen, isign=-1, eps=1e-12) / N**2
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((2, *data.shape))
    data += NOISE * np.abs(data).max() * (noise[0] + 1j * noise[1])
    trajectory = np.stack([kx, ky, np.zeros_like(kx)], -1)  # [echo, spoke, readout, 3]
    write(folder / "traj", trajectory.reshape(ECHOES, 1, 1, SPOKES, READOUT, 3))
    shape = (ECHOES, 1, COILS, SPOKES, READOUT, 1)
    # BART's pics has echoes in TE. Rayspin's images of a series are in TIME.
    in_time = (ECHOES, *[1] * 4)
    write(folder / "traj_series", trajectory.reshape(*in_time, 1, 1, 1, SPOKES, READOUT, 3))
    write(folder / "ksp_series", data.reshape(*in_time, 1, 1, COILS, SPOKES, READOUT, 1))
    # BART's transform is unitary: (1/N) times the sum over the voxels.
    write(folder / "ksp_bart", data.reshape(shape) * N)
    write(folder / "maps", coils.reshape(COILS, 1, N, N))
    t2_values = np.geomspace(0.010, 2.0, 256)
    _, _, rows = np.linalg.svd(np.exp(-times / t2_values[:, None]), full_matrices=False)
    basis = rows[:K] * np.sign(rows[range(K), np.abs(rows[:K]).argmax(1)])[:, None]
    write(folder / "basis", basis.reshape(K, ECHOES, 1, 1, 1, 1, 1))
    return images


def errors(found, truth):
    found = found.reshape(K, N, N).astype(complex)
    scale = np.vdot(found, truth) / np.vdot(found, found)
    relative = lambda a, b: np.linalg.norm(a - b) / np.linalg.norm(b)  # noqa: E731
    each = [relative(scale * a, b) for a, b in zip(found, truth, strict=True)]
    return relative(scale * found, truth), each, abs(scale)


def run(words, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), RAYON_NUM_THREADS=str(threads))
    start = time.perf_counter()
    words = [str(word) for word in words]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=30)
    args = parser.parse_args()
    version = subprocess.run(["bart", "version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"# BART {version}, FINUFFT {finufft.__version__}, NumPy {np.__version__}, {args.threads} threads")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        images = simulate(folder)

        def rayspin(lam, method="cg-sense", iterations=args.iterations, basis=folder / "basis.cfl"):
            words = [PROGRAM, "recon", "mri", folder / "ksp_series.cfl", "--traj", folder / "traj_series.cfl"]
            words += ["--maps", folder / "maps.cfl", "--basis", basis, "--traj-units", "cycles/fov"]
            words += ["--matrix", f"{N},{N}", "-m", method, "--iterations", iterations, "--lambda", lam]
            words += ["--tolerance", 0] if method == "cg-sense" else []
            if basis == SVD:
                words += ["--echo-times", ",".join(f"{1000 * SPACING * (f + 1):g}" for f in range(ECHOES))]
            return run([*words, "--device", "cpu", "--no-record", "-o", folder / "rayspin.cfl"], args.threads)

        def bart(lam, output="bart"):
            words = ["bart", "pics", "-l2", "-r", lam, "-i", args.iterations, "-w", 1]
            words += ["-t", folder / "traj", "-B", folder / "basis"]
            return run([*words, folder / "ksp_bart", folder / "maps", folder / output], args.threads)

        basis = read(folder / "basis").reshape(K, ECHOES)
        truth = np.einsum("if,fyx->iyx", basis.conj(), images)
        kept = np.linalg.norm(np.einsum("if,iyx->fyx", basis, truth) - images) / np.linalg.norm(images)
        print(f"# part of the object outside the subspace: {kept:.2e}")

        def tell(program, lam, found):
            error, each, scale = errors(found, truth)
            single = " ".join(f"{e:.4f}" for e in each)
            text = f"error {error:.5f}, of the coefficients {single}, scale {scale:.4f}"
            print(f"{program:8} lambda {lam:7.0e}: {text}", flush=True)
            return error, lam

        ours = []
        for lam in RAYSPIN:
            rayspin(lam)
            ours.append(tell("Rayspin", lam, read(folder / "rayspin")))
        given = read(folder / "rayspin")
        rayspin(RAYSPIN[-1], basis=SVD)
        apart = np.linalg.norm(read(folder / "rayspin") - given) / np.linalg.norm(given)
        print(f"# --basis {SVD} differs from the basis in a file by {apart:.1e}")
        theirs = []
        for lam in BART:
            bart(lam)
            theirs.append(tell("BART", lam, read(folder / "bart")))
        (ours, lam), (theirs, lam_bart) = min(ours), min(theirs)
        print(f"best error: Rayspin {ours:.5f} (lambda {lam:.0e}), BART {theirs:.5f} (lambda {lam_bart:.0e})")
        for method in ("wavelet", "tv"):
            for lam_sparse in [1e-5, 3e-5, 1e-4, 3e-4, 1e-3]:
                rayspin(lam_sparse, method, 100)
                tell(method, lam_sparse, read(folder / "rayspin"))
        times = {"Rayspin": [], "BART": []}
        for _ in range(args.runs):
            times["Rayspin"].append(rayspin(lam)[0])
            times["BART"].append(bart(lam_bart)[0])
        for program, seconds in times.items():
            listed = " ".join(f"{s:.2f}" for s in sorted(seconds))
            median = f"median {statistics.median(seconds):.2f} s"
            print(f"{program:8} command, {args.iterations} iterations: {median}; all {listed}")


if __name__ == "__main__":
    main()
