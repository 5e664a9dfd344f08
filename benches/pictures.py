"""Makes docs/beat.png: a beating heart at four times; the truth, gridding, and low rank plus sparse.

    cargo build --release && python benches/pictures.py

Needs NumPy and target/release/rayspin. Prints the commands and the errors.
"""

import pathlib
import struct
import subprocess
import tempfile
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "target" / "release" / "rayspin"
SIMULATE = (
    "simulate mri -o heart.h5 --phantom thorax --trajectory radial --angles golden --shots 384 --matrix 128,128 --fov 360,360 "
    "--snr 60 --dynamics beat --period 1 --tr 2.5 --truth heart-truth.npy --window 16 --maps heart-maps.cfl"
)
METHODS = {"gridding": "gridding", "low rank plus sparse": "low-rank-sparse"}
# The middles of four images: at rest, full, at rest, empty.
TIMES = (0, 5, 11, 17)
GAP = 4


def run(folder, arguments):
    print("rayspin", arguments)
    done = subprocess.run([PROGRAM, *arguments.split()], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def png(path, pixels):
    """Writes bytes [row, column] as grey values."""
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def larger(image, factor):
    return image.repeat(factor, 0).repeat(factor, 1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run(folder, SIMULATE)
        series = {"truth": np.abs(np.load(folder / "heart-truth.npy"))[:, 0]}
        for name, method in METHODS.items():
            run(folder, f"recon mri heart.h5 -o image.npy --window 16 --method {method} --maps heart-maps.cfl")
            images = np.abs(np.load(folder / "image.npy"))[:, 0]
            truth = series["truth"]
            images = images * (np.vdot(images, truth) / np.vdot(images, images))
            print(f"{name}: error {np.linalg.norm(images - truth) / np.linalg.norm(truth):.1%}")
            series[name] = images
        rows = []
        for images in series.values():
            # The body fills the middle rows. The line goes through both ventricles.
            shown = [larger(images[time, 19:109], 2) for time in TIMES]
            height = shown[0].shape[0]
            line = images[np.arange(height) * len(images) // height, 55, 48:88]
            shown.append(line.repeat(4, 1))
            gap = np.full((height, GAP), 1.0)
            rows.append(np.hstack([part for tile in shown for part in (tile, gap)][:-1]))
        gap = np.full((GAP, rows[0].shape[1]), 1.0)
        whole = np.vstack([part for row in rows for part in (row, gap)][:-1])
        png(ROOT / "docs" / "beat.png", np.rint(255 * whole.clip(0, 1)).astype(np.uint8))


if __name__ == "__main__":
    main()
