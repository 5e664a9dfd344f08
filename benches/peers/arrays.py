"""Seconds of rayspin.nufft.Plan.execute from arrays of NumPy, CuPy and torch: python benches/peers/arrays.py [cpu|cuda]

A call of a small transform shows what a call costs; type 2 of 12 images of 256 x 256 to 200,000 points shows real work. On a GPU
"queued" is until the call returns, "done" until the GPU is idle. finufft and cufinufft, where they are, run in turns with Rayspin.
"""

import sys
import time

import numpy as np

from rayspin.nufft import Plan

ROUNDS = 7


def rate(call, wait, times):
    call()
    wait()
    start = time.perf_counter()
    for _ in range(times):
        call()
    queued = time.perf_counter() - start
    wait()
    return queued / times * 1e6, (time.perf_counter() - start) / times * 1e6


def show(name, calls, wait, times):
    found = {key: [] for key in calls}
    for _ in range(ROUNDS):
        for key, call in calls.items():
            found[key].append(rate(call, wait, times))
    for key, values in found.items():
        queued, done = (np.sort([value[which] for value in values]) for which in (0, 1))
        text = f"queued {queued[ROUNDS // 2]:8.1f} us, done {done[ROUNDS // 2]:8.1f} us ({done[0]:.1f} to {done[-1]:.1f})"
        print(f"{name:14} {key:18} {text}", flush=True)


def peers(device, points, grid, batch, eps):
    """finufft or cufinufft, where it is installed."""
    try:
        if device == "cpu":
            import finufft

            plan = finufft.Plan(2, grid, batch, eps, dtype="complex64")
            plan.setpts(*(axis.astype(np.float32) for axis in points))
            yield f"finufft {finufft.__version__}", lambda a, out: plan.execute(a, out=out)
        else:
            import cufinufft
            import cupy

            plan = cufinufft.Plan(2, grid, batch, eps, dtype="complex64")
            plan.setpts(*(cupy.asarray(axis, dtype=np.float32) for axis in points))
            yield f"cufinufft {cufinufft.__version__}", lambda a, out: plan.execute(a, out=out)
    except ImportError as error:
        print(f"no peer: {error}")


def main(device):
    rng = np.random.default_rng(1)
    kinds, wait = {"NumPy": (np.asarray, np.empty)}, lambda: None
    if device == "cuda":
        import torch

        wait = torch.cuda.synchronize
        empty = lambda shape, dtype: torch.empty(shape, dtype=getattr(torch, dtype), device="cuda")
        kinds = {"torch": (lambda a: torch.from_numpy(a).cuda(), empty)}
        print("torch", torch.__version__, torch.cuda.get_device_name())
        try:
            import cupy

            kinds["CuPy"] = (cupy.asarray, cupy.empty)
            print("CuPy", cupy.__version__)
        except ImportError:
            pass
    for name, grid, count, batch, times in [("small", (16, 16), 4, 1, 500), ("12 x 256^2", (256, 256), 200_000, 12, 20)]:
        points = [rng.uniform(-np.pi, np.pi, count) for _ in grid]
        plan = Plan(2, grid, eps=1e-4, dtype="complex64", device=device)
        plan.setpts(*points)
        others = dict(peers(device, points, grid, batch, 1e-4))
        for kind, (take, empty) in kinds.items():
            data = take((rng.normal(size=(batch, *grid)) + 1j * rng.normal(size=(batch, *grid))).astype(np.complex64))
            out = empty((batch, count), "complex64")
            calls = {f"Rayspin, {kind}": lambda: plan.execute(data, out=out)}
            if kind in ("NumPy", "CuPy"):
                for peer, execute in others.items():
                    calls[peer] = lambda execute=execute: execute(data, out)
            show(name, calls, wait, times)


main(sys.argv[1] if len(sys.argv) > 1 else "cpu")
