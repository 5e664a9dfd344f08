"""Radiographs of one volume by Rayspin and DiffDRR: how far the pictures are apart, and the time of one.

    cargo build --release -p rayspin-cli
    python -m pip install diffdrr     # with torch; not in requirements.txt
    python benches/peers/drr.py [voxels] [pixels] [rounds] [threads]

Both draw the voxelised Shepp–Logan phantom of `rayspin simulate ct` through one perspective camera. DiffDRR's Siddon renderer takes voxels as boxes
of one value. Its trilinear renderer, with samples half a voxel apart, interpolates as Rayspin does. Rays are rendered in parts that fit the
memory. Times are wall times, the best and the median of rounds: DiffDRR's of a picture, Rayspin's the difference of two commands that draw
many pictures and one, over their number.
"""

import importlib.metadata
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import nibabel
import numpy as np
import torch
from diffdrr.renderers import Siddon, Trilinear

RAYSPIN = pathlib.Path(__file__).resolve().parents[2] / "target" / "release" / "rayspin"
VOXELS, PIXELS, ROUNDS, THREADS = (int(sys.argv[1 + i]) if len(sys.argv) > 1 + i else n for i, n in enumerate((256, 512, 3, 2)))
WIDTH, AZIMUTH, ELEVATION, ANGLE, DISTANCE, MANY = 256.0, 30.0, 15.0, 20.0, 1000.0, 25
torch.set_num_threads(THREADS)


def rayspin(folder, *arguments):
    start = time.perf_counter()
    subprocess.run([RAYSPIN, *arguments, "-q", "--threads", str(THREADS), "--device", "cpu"], check=True, cwd=folder)
    return time.perf_counter() - start


def drawn(folder, output, *more):
    camera = ["--azimuth", str(AZIMUTH), "--elevation", str(ELEVATION), "--perspective", str(ANGLE), "--distance", str(DISTANCE)]
    return rayspin(folder, "render", "truth.nii", "-o", output, "--size", str(PIXELS), *camera, *more)


def rays():
    """Source and targets in voxels; a voxel's centre has whole numbers."""
    a, e = math.radians(AZIMUTH), math.radians(ELEVATION)
    towards = np.array([math.sin(a) * math.cos(e), -math.cos(a) * math.cos(e), math.sin(e)])
    above = np.array([-math.sin(a) * math.sin(e), math.cos(a) * math.sin(e), math.cos(e)])
    right = np.cross(above, towards)
    pitch = 2 * math.tan(math.radians(ANGLE) / 2) / PIXELS
    place = (np.arange(PIXELS) - 0.5 * (PIXELS - 1)) * pitch
    along = -towards + place[None, :, None] * right - place[:, None, None] * above
    # Twice the distance: behind the volume.
    source, target = DISTANCE * towards, DISTANCE * towards + 2 * DISTANCE * along.reshape(-1, 3)
    index = lambda mm: torch.tensor(mm / (WIDTH / VOXELS) + 0.5 * (VOXELS - 1), dtype=torch.float32)
    length = torch.tensor(np.linalg.norm(target - source, axis=1), dtype=torch.float32)
    return index(source)[None, None], index(target)[None], length[None, None]


def peer(renderer, volume, options):
    source, target, length = rays()
    with torch.no_grad():
        parts = [
            renderer(volume, source, t, l, **options) for t, l in zip(target.split(4096, dim=1), length.split(4096, dim=2))
        ]
    return torch.cat(parts, dim=-1).reshape(PIXELS, PIXELS).numpy()


print(f"# DiffDRR {importlib.metadata.version('diffdrr')}, torch {torch.__version__}, {THREADS} threads")
print(f"# {VOXELS}^3 voxels, {PIXELS}^2 pixels, {ROUNDS} rounds: best (median)")
with tempfile.TemporaryDirectory() as folder:
    scan = ["simulate", "ct", "-o", "scan.h5", "--truth", "truth.nii", "--matrix", f"{VOXELS},{VOXELS},{VOXELS}", "--fov", str(WIDTH)]
    rayspin(folder, *scan, "--views", "1", "--detector", "2,2", "--lines", "--no-record")
    drawn(folder, "ours.npy")
    ours = np.load(pathlib.Path(folder) / "ours.npy").squeeze()
    # NIfTI's x and y run to the right and to the front, ours to the left and to the back.
    image = nibabel.load(pathlib.Path(folder) / "truth.nii")
    values = image.get_fdata(dtype=np.float32)
    signs = np.sign(np.diag(image.affine)[:3])
    wanted = (-1, -1, 1)
    values = np.flip(values, [axis for axis in range(3) if signs[axis] != wanted[axis]])
    volume = torch.tensor(values.copy())
    samples = math.ceil(2 * math.sqrt(3) * VOXELS)
    peers = {
        "DiffDRR trilinear": (Trilinear(), {"n_points": samples}),
        "DiffDRR siddon": (Siddon(), {}),
    }
    times = {"Rayspin": [], **{name: [] for name in peers}}
    for _ in range(ROUNDS):
        one = drawn(folder, "one.npy", "--turntable", "1")
        times["Rayspin"].append((drawn(folder, "many.npy", "--turntable", str(MANY)) - one) / (MANY - 1))
        for name, (renderer, options) in peers.items():
            start = time.perf_counter()
            picture = peer(renderer, volume, options)
            times[name].append(time.perf_counter() - start)
            if len(times[name]) == 1:
                apart = np.linalg.norm(picture - ours) / np.linalg.norm(ours)
                print(f"{name} beside Rayspin: relative difference {apart:.2e}, largest {np.abs(picture - ours).max():.2e} of {ours.max():.3f}")
    for name, seconds in times.items():
        ratio = min(seconds) / min(times["Rayspin"])
        print(f"{name:20} {1e3 * min(seconds):9.1f} ms ({1e3 * statistics.median(seconds):.1f})   {ratio:6.1f} times Rayspin")
