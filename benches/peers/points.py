"""Milliseconds to set the points of a NUFFT from arrays of NumPy, CuPy and torch: python benches/peers/points.py [cpu|cuda] [threads]

    new        a plan and its points
    setpts     other points in an existing plan
    +type 1    setpts and one transform of type 1, points to grid
    +type 2    setpts and one transform of type 2, grid to points

Rayspin and finufft (on a GPU cufinufft) run in turns on the same arrays, tolerance 1e-4, with points in the precision of the data. ducc0, which
plans anew in each call, runs on the CPU where it is installed. Each call first runs untimed for ten milliseconds, because threads of OpenMP spin
for a while after their work, on the cores that the next library needs, and threads that sleep wake slowly. Each round has a random order. A case
has seven rounds, and more until four seconds are over. Times end when the processor is idle; numbers are medians, least to most in brackets.
"rows" are points as the columns of one array `[point, dim]`, which peers want as arrays of their
own.
"""

import contextlib
import random
import sys
import time

import numpy as np

from rayspin.nufft import Plan

ROUNDS, SECONDS, WARM, EPS = 7, 4, 0.01, 1e-4
CASES = [((16, 16), 4), ((256, 256), 205_824), ((512, 512), 1_000_000), ((512, 512), 5_000_000), ((128,) * 3, 1_000_000), ((128,) * 3, 10_000_000)]


def peer(device, kind, grid, dtype, threads):
    """A plan of finufft or cufinufft, or none."""
    with contextlib.suppress(ImportError):
        if device == "cpu":
            import finufft

            return finufft.Plan(kind, grid, 1, EPS, dtype=dtype, nthreads=threads)
        import cufinufft

        return cufinufft.Plan(kind, grid, 1, EPS, dtype=dtype)
    return None


def ducc0(rows, values, image, threads):
    """ducc0's transforms of one image, each with its points."""
    with contextlib.suppress(ImportError):
        import ducc0.nufft

        common = {"coord": rows, "epsilon": EPS, "nthreads": threads}
        grid = np.empty_like(image)
        return {
            "+type 1": lambda: ducc0.nufft.nu2u(points=values, forward=False, out=grid, **common),
            "+type 2": lambda: ducc0.nufft.u2nu(grid=image, forward=True, **common),
        }
    return {}


def libraries(device):
    """The libraries whose arrays are given: how each takes an array of NumPy."""
    if device == "cpu":
        return {"NumPy": np.asarray}, lambda: None
    import torch

    kinds = {"torch": lambda a: torch.from_numpy(a).cuda()}
    with contextlib.suppress(ImportError):
        import cupy

        kinds["CuPy"] = cupy.asarray
    return kinds, torch.cuda.synchronize


def measured(calls, wait):
    found = {key: [] for key in calls}
    order, chance = list(calls), random.Random(1)
    begun = time.perf_counter()
    while len(found[order[0]]) < ROUNDS or time.perf_counter() - begun < SECONDS:
        chance.shuffle(order)
        for key in order:
            wait()
            warm = time.perf_counter() + WARM
            while True:
                calls[key]()
                wait()
                if time.perf_counter() > warm:
                    break
            start = time.perf_counter()
            calls[key]()
            wait()
            found[key].append((time.perf_counter() - start) * 1e3)
    return {key: np.sort(values) for key, values in found.items()}


def steps(make, where, values, image):
    """What is timed with one library: the first transform of each kind comes before."""
    plans = {kind: make(kind) for kind in (1, 2)}
    data = {1: values, 2: image}
    for kind, plan in plans.items():
        plan.setpts(*where)
        plan.execute(data[kind])

    def both(kind):
        plans[kind].setpts(*where)
        plans[kind].execute(data[kind])

    return {
        "new": lambda: make(1).setpts(*where),
        "setpts": lambda: plans[1].setpts(*where),
        "+type 1": lambda: both(1),
        "+type 2": lambda: both(2),
    }


def main(device="cpu", threads="0"):
    rng = np.random.default_rng(1)
    kinds, wait = libraries(device)
    for grid, count in CASES:
        for real, dtype in ((np.float32, "complex64"), (np.float64, "complex128")):
            rows = rng.uniform(-np.pi, np.pi, (count, len(grid))).astype(real)
            values = (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(dtype)
            image = (rng.normal(size=grid) + 1j * rng.normal(size=grid)).astype(dtype)
            for library, take in kinds.items():
                where = [take(np.ascontiguousarray(axis)) for axis in rows.T]
                columns, data = take(rows), (take(values), take(image))
                sets = {"Rayspin": where, "Rayspin, rows": [columns[:, d] for d in range(len(grid))]}
                calls = {}
                for name, points in sets.items():
                    ours = steps(lambda kind: Plan(kind, grid, eps=EPS, dtype=dtype, device=device), points, *data)
                    calls.update({(name, step): call for step, call in ours.items()})
                # cufinufft takes arrays of CuPy and torch, finufft of NumPy.
                if peer(device, 1, grid, dtype, int(threads)) is not None:
                    theirs = steps(lambda kind: peer(device, kind, grid, dtype, int(threads)), where, *data)
                    calls.update({("finufft" if device == "cpu" else "cufinufft", step): call for step, call in theirs.items()})
                if device == "cpu":
                    others = ducc0(rows, values, image, int(threads))
                    calls.update({("ducc0", step): call for step, call in others.items()})
                for (name, step), ms in measured(calls, wait).items():
                    text = f"{ms[len(ms) // 2]:9.3f} ms ({ms[0]:.3f} to {ms[-1]:.3f})"
                    print(f"{'x'.join(map(str, grid)):11} {count:9} {dtype:10} {library:6} {name:14} {step:8} {text}", flush=True)


main(*sys.argv[1:])
