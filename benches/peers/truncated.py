"""Projections that do not reach the air: Rayspin's extension of rows beside algotom's padding.

    python benches/peers/truncated.py [FOLDER]

FOLDER holds roi/diamond_parallel_roi_{proj.npy.xz,angles.npy} (default ../shared/data/ct). RAYSPIN names the program. Needs numpy, algotom.

Simulated: exact parallel projections of an oval body of 80 x 60 pixels, 360 views, cut to fewer columns. Errors against the truth in the
field of view, relative to its mean: of the mean, root mean square, of the mean in the outer fifth (rim). Measured: means in rings of the
field of view, relative to the mean of all; nobody knows the truth.
"""
import io, lzma, os, subprocess, sys, tempfile, warnings
from importlib.metadata import version

import numpy as np

warnings.filterwarnings("ignore")
from algotom.rec.reconstruction import fbp_reconstruction
from scipy.ndimage import map_coordinates

PROGRAM = os.environ.get("RAYSPIN", "rayspin")
MODES = ["none", "edge", "cylinder", "auto"]
BODY = [(0, 0, 40, 30, 0.0, 0.02), (12, 8, 8, 6, 0.4, 0.01), (-15, -5, 6, 10, -0.3, -0.008), (5, -14, 4, 4, 0, 0.02)]


def lines(angles, columns):
    """Line integrals [view, column]: means of four rays a pixel. The axis is on the middle."""
    total = 0
    for part in range(4):
        s = (np.arange(columns) - (columns - 1) / 2 + (part + 0.5) / 4 - 0.5)[None, :]
        for x, y, a, b, turn, value in BODY:
            along = np.asarray(angles)[:, None]
            centre = x * np.cos(along) + y * np.sin(along)
            half = (a * np.cos(along - turn)) ** 2 + (b * np.sin(along - turn)) ** 2
            total = total + 2 * value * a * b * np.sqrt(np.maximum(half - (s - centre) ** 2, 0)) / half
    return total / 4


def truth(n):
    """The mean of 16 points a voxel, [y, x]."""
    image = np.zeros((n, n))
    for i in range(16):
        x, y = np.meshgrid(*[np.arange(n) - (n - 1) / 2 + (k + 0.5) / 4 - 0.5 for k in (i % 4, i // 4)])
        for x0, y0, a, b, turn, value in BODY:
            u = (x - x0) * np.cos(turn) + (y - y0) * np.sin(turn)
            v = -(x - x0) * np.sin(turn) + (y - y0) * np.cos(turn)
            image += value * ((u / a) ** 2 + (v / b) ** 2 <= 1)
    return image / 16


def rayspin(sinogram, axis, arc, n, *options):
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/lines.npy", sinogram[:, None].astype("f4"))
        run = f"recon ct lines.npy -o v.npy -q --no-record --device cpu --arc {arc} --axis {axis} --matrix {n},{n} --voxel 1".split()
        subprocess.run([os.path.abspath(PROGRAM) if os.sep in PROGRAM else PROGRAM, *run, *options], check=True, cwd=folder, capture_output=True)
        return np.load(f"{folder}/v.npy")[0]


def algotom(sinogram, axis, angles, n, pad, mode="edge"):
    """On the grid of rayspin(): the axis is in the middle; linear interpolation."""
    width = sinogram.shape[1]
    made = fbp_reconstruction(
        sinogram.astype("f4"), axis, np.asarray(angles, "f4"), ratio=None, filter_name=None, pad=pad, pad_mode=mode, apply_log=False,
        gpu=False, ncore=1,
    )
    # algotom's image has the axis in its middle, too, and y downwards.
    y, x = np.meshgrid(*[np.arange(n) - (n - 1) / 2] * 2, indexing="ij")
    return map_coordinates(made[::-1], [y + (width - 1) / 2, x + (width - 1) / 2], order=1)


def rings(n):
    middle = np.arange(n) - (n - 1) / 2
    return np.hypot(*np.meshgrid(middle, middle))


def simulated():
    n, views = 100, 360
    angles = np.arange(views) * np.pi / views
    whole, image, radius = lines(angles, 200), truth(n), rings(n)
    for name, first, last in [("both sides", 70, 130), ("both sides", 62, 138), ("one side", 70, 200), ("one side", 0, 120)]:
        part, axis = whole[:, first:last], 99.5 - first
        seen = min(axis, last - first - 1 - axis)
        inside, rim = radius < seen - 0.5, (radius < seen - 0.5) & (radius > 0.8 * seen)

        def show(label, made):
            error = made - image
            of = [error[inside].mean() / image[inside].mean(), np.sqrt((error[inside] ** 2).mean()) / image[inside].mean(), error[rim].mean() / image[rim].mean()]
            print(f"  {label:34s} mean {100 * of[0]:+6.1f} %   root mean square {100 * of[1]:5.1f} %   rim {100 * of[2]:+6.1f} %")

        print(f"simulated, cut on {name}: columns {first} to {last - 1} of 200, axis on {axis}")
        for mode in MODES:
            show(f"Rayspin fbp --extend {mode}", rayspin(part, axis, 180, n, "--extend", mode))
        show("Rayspin fourier --extend auto", rayspin(part, axis, 180, n, "-m", "fourier"))
        for pad in [0, None, (last - first) // 2, 2 * (last - first)]:
            show(f"algotom fbp, edge, pad {pad}", algotom(part, axis, angles, n, pad))


def measured(folder):
    path = f"{folder}/roi/diamond_parallel_roi_"
    with lzma.open(path + "proj.npy.xz") as file:
        sinogram = -np.log(np.load(io.BytesIO(file.read())))[:, 4]
    angles, axis, n = np.radians(np.load(path + "angles.npy")), 86.0, 144
    radius = rings(n)
    seen = min(axis, sinogram.shape[1] - 1 - axis)
    print(f"measured, diamonds in a matrix wider than the detector: {sinogram.shape[0]} views of {sinogram.shape[1]} columns, axis on {axis}")

    def show(label, made):
        parts = [made[(radius >= a * seen) & (radius < b * seen)].mean() for a, b in [(0, 0.5), (0.5, 0.75), (0.75, 0.9), (0.9, 0.98)]]
        mean = made[radius < 0.98 * seen].mean()
        told = "   ".join(f"{part / mean:.3f}" for part in parts)
        print(f"  {label:34s} mean {mean:.5f} 1/pixel; rings {told}; middle of the matrix to rim {parts[3] / parts[2]:.3f}")

    for mode in MODES:
        show(f"Rayspin fbp --extend {mode}", rayspin(sinogram, axis, 182, n, "--extend", mode))
    for pad in [0, None, 80, 320]:
        show(f"algotom fbp, edge, pad {pad}", algotom(sinogram, axis, angles, n, pad))


if __name__ == "__main__":
    print(f"algotom {version('algotom')}, numpy {np.__version__}")
    simulated()
    measured(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/ct")
