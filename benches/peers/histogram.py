"""Histograms of Rayspin against OpenCV: 3984 x 4096 samples, 1024 bins, the same threads, in turn on the same machine.

    cargo build --release -p rayspin-primitives --example histogram_bench
    python benches/peers/histogram.py [rounds] [threads] [--processor-time]

Inputs are of the kinds of Rayspin's ladder. OpenCV counts no 32-bit integers: beside Rayspin's stand 16-bit samples, half of the bytes, and
f32, as many. `turns.py` says what is timed and shown.
"""

import itertools

import cv2
import numpy as np
import turns

SHAPE, BINS = (3984, 4096), 1024


def count(samples):
    """A call that takes two copies by turns, as Rayspin's does: in no cache is what the last one left."""
    copies = itertools.cycle([samples, samples.copy()])
    return lambda: cv2.calcHist([next(copies)], [0], None, [BINS], [0, BINS])


def peers():
    rng = np.random.default_rng(1)
    steps = np.trunc(16 * (rng.random(SHAPE) - 0.5) * (rng.random(SHAPE) - 0.5))
    values = {
        "walk": np.clip(BINS // 2 + np.cumsum(steps, axis=1), 0, BINS - 1),
        "uniform": rng.integers(0, BINS, SHAPE),
        "constant": np.full(SHAPE, BINS // 2),
    }
    calls = {}
    for name, samples in values.items():
        of = lambda dtype, x=samples: count(x.astype(dtype))
        calls[f"{name} u16"] = of(np.uint16)
        calls[f"{name} u32"] = {", of u16": calls[f"{name} u16"], ", of f32": of(np.float32)}
    return calls


if __name__ == "__main__":
    turns.take("histogram_bench", "histogram", peers)
