"""Filters of Rayspin against OpenCV, 4096 x 4096, the same threads, in turn on the same machine.

    cargo build --release -p rayspin-primitives --example filters_bench
    python benches/peers/filters.py [rounds] [threads] [--processor-time]

OpenCV has no one call for Rayspin's Sobel filter, |H| + |V| saturated: beside it stand five passes over the image, both gradients, their
magnitudes and the sum, and four, where one pass gives both gradients. Borders are replicated on both sides. `turns.py` says what is timed
and shown.
"""

import cv2
import numpy as np
import turns

EDGE = cv2.BORDER_REPLICATE


def edges(image, gradients, sizes, out):
    for at, gradient in enumerate(gradients):
        cv2.Sobel(image, cv2.CV_16S, 1 - at, at, dst=gradient, ksize=3, borderType=EDGE)
    added(gradients, sizes, out)


def edges_at_once(image, gradients, sizes, out):
    cv2.spatialGradient(image, *gradients, ksize=3, borderType=EDGE)
    added(gradients, sizes, out)


def added(gradients, sizes, out):
    for gradient, size in zip(gradients, sizes):
        cv2.convertScaleAbs(gradient, dst=size)
    cv2.add(*sizes, dst=out)


def peers():
    rng = np.random.default_rng(1)
    images = {
        "u8": rng.integers(0, 256, (4096, 4096), dtype=np.uint8),
        "f32": rng.random((4096, 4096), dtype=np.float32),
    }
    # Outputs are there before, as Rayspin's are: their pages would take longer than some of the filters.
    like = lambda image, n, dtype=None: np.zeros((n, n), dtype or image.dtype)
    byte = images["u8"]
    between = [like(byte, 4096, np.int16) for _ in range(2)], [like(byte, 4096) for _ in range(3)]
    steps = {", five passes": edges, ", four passes": edges_at_once}
    calls = {"sobel u8": {n: lambda f=f: f(byte, between[0], between[1][:2], between[1][2]) for n, f in steps.items()}}
    for kind, image in images.items():
        out = like(image, 4096)
        for radius in (1, 8, 64):
            size = (2 * radius + 1,) * 2
            calls[f"box {kind} radius {radius}"] = lambda i=image, s=size, o=out: cv2.blur(i, s, o, borderType=EDGE)
        small = np.ascontiguousarray(image[:2048, :2048])
        for name, source, n in (("2048 to 4096", small, 4096), ("4096 to 2867", image, 2867)):
            out = like(image, n)
            calls[f"bicubic {kind} {name}"] = lambda i=source, o=out, n=n: cv2.resize(
                i, (n, n), o, interpolation=cv2.INTER_CUBIC
            )
    out = like(images["f32"], 4096)
    for sigma in (0.5, 2.0):
        size = (2 * int(np.ceil(4 * sigma)) + 1,) * 2
        calls[f"gaussian f32 sigma {sigma:g}"] = lambda s=size, g=sigma: cv2.GaussianBlur(
            images["f32"], s, g, out, borderType=EDGE
        )
    return calls


if __name__ == "__main__":
    turns.take("filters_bench", "filter", peers)
