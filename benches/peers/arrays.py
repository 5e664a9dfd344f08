"""Seconds of NUFFTs from arrays of NumPy, CuPy and torch: python benches/peers/arrays.py [cpu|cuda]

A call of a small transform shows what a call costs; type 2 of 12 images of 256 x 256 to 200,000 points shows real work. On a GPU "queued"
is until the call returns, "done" until the GPU is idle. The peers that are installed (finufft or cufinufft, SigPy, torchkbnufft) run
in turns with Rayspin on the same arrays, each with its points set beforehand where it has plans. "error" is measured against a
transform in double precision to 1e-12.

    Rayspin, finufft, cufinufft   tolerance 1e-4
    SigPy                         oversampling 1.25, width 4 (its defaults); plans nothing
    torchkbnufft                  6 neighbours, oversampling 2 (its defaults); the sparse matrix is not used
"""

import contextlib
import importlib.metadata
import os
import pathlib
import sys
import time

import numpy as np

from rayspin.nufft import Plan

ROUNDS, EPS = 7, 1e-4


def rate(call, wait, times):
    call()
    wait()
    start = time.perf_counter()
    for _ in range(times):
        call()
    queued = time.perf_counter() - start
    wait()
    return queued / times * 1e6, (time.perf_counter() - start) / times * 1e6


def show(name, calls, exact, wait, times):
    found = {key: [] for key in calls}
    errors = {}
    for key, call in calls.items():
        values = host(call()).reshape(exact.shape)
        errors[key] = np.linalg.norm(values - exact) / np.linalg.norm(exact)
    for _ in range(ROUNDS):
        for key, call in calls.items():
            found[key].append(rate(call, wait, max(1, times // 20) if "kbnufft" in key or "SigPy" in key else times))
    for key, values in found.items():
        queued, done = (np.sort([value[which] for value in values]) for which in (0, 1))
        text = f"queued {queued[ROUNDS // 2]:9.1f} us, done {done[ROUNDS // 2]:9.1f} us ({done[0]:.1f} to {done[-1]:.1f})"
        print(f"{name:11} {key:32} {text}, error {errors[key]:.1e}", flush=True)


def host(array):
    if hasattr(array, "get"):
        return array.get()
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)


def named(package):
    return f"{package} {importlib.metadata.version(package)}"


def plans_of_finufft(device, points, grid, batch):
    """finufft, on all threads and on one, which suits small transforms; or cufinufft."""
    with contextlib.suppress(ImportError):
        if device == "cpu":
            import finufft

            calls = {}
            for threads in (0, 1):
                plan = finufft.Plan(2, grid, batch, EPS, dtype="complex64", nthreads=threads)
                plan.setpts(*(axis.astype(np.float32) for axis in points))
                key = named("finufft") + (", 1 thread" if threads else "")
                calls[key] = lambda a, out, plan=plan: plan.execute(a, out=out)
            return calls
        import cufinufft
        import cupy

        plan = cufinufft.Plan(2, grid, batch, EPS, dtype="complex64")
        plan.setpts(*(cupy.asarray(axis, dtype=np.float32) for axis in points))
        return {f"cufinufft {cufinufft.__version__}": lambda a, out: plan.execute(a, out=out)}
    return {}


def sigpy(take, points, grid):
    with contextlib.suppress(ImportError):
        sys.path.insert(0, __file__.rsplit("/", 1)[0])
        from file_to_file import without_numba

        without_numba()
        import sigpy

        # SigPy's points are in cycles per field of view, and its transform is unitary.
        where = take(np.stack(points, axis=-1).astype(np.float32) * (np.array(grid) / (2 * np.pi)).astype(np.float32))
        scale = np.float32(np.sqrt(np.prod(grid)))
        return {named("sigpy").replace("sigpy", "SigPy"): lambda a, out: sigpy.nufft(a, where) * scale}
    return {}


def torchkbnufft(device, points, grid):
    with contextlib.suppress(ImportError):
        import torch
        import torchkbnufft

        transform = torchkbnufft.KbNufft(im_size=grid).to(device=device, dtype=torch.complex64)
        where = torch.tensor(np.stack(points), dtype=torch.float32, device=device)
        return {named("torchkbnufft"): lambda a, out: transform(a[None], where)}
    return {}


def main(device):
    rng = np.random.default_rng(1)
    kinds, wait = {"NumPy": (np.asarray, np.empty)}, lambda: None
    with contextlib.suppress(ImportError):
        import torch

        if device == "cuda":
            wait = torch.cuda.synchronize
            kinds = {}
            print(torch.cuda.get_device_name())
        kinds["torch"] = (
            lambda a: torch.from_numpy(a).to(device),
            lambda shape, dtype: torch.empty(shape, dtype=getattr(torch, dtype), device=device),
        )
        print(named("torch"))
    with contextlib.suppress(ImportError):
        if device == "cuda":
            import cupy

            kinds["CuPy"] = (cupy.asarray, cupy.empty)
            print("CuPy", cupy.__version__)
    for name, grid, count, batch, times in [("small", (16, 16), 4, 1, 500), ("12 x 256^2", (256, 256), 200_000, 12, 20)]:
        points = [rng.uniform(-np.pi, np.pi, count) for _ in grid]
        data = (rng.normal(size=(batch, *grid)) + 1j * rng.normal(size=(batch, *grid))).astype(np.complex64)
        plan = Plan(2, grid, eps=EPS, dtype="complex64", device=device)
        plan.setpts(*points)
        best = Plan(2, grid, eps=1e-12, device="cpu")
        best.setpts(*points)
        exact = best.execute(data.astype(np.complex128))
        of_finufft = plans_of_finufft(device, points, grid, batch)
        for kind, (take, empty) in kinds.items():
            given, out = take(data), empty((batch, count), "complex64")
            calls = {f"Rayspin, {kind}": lambda: plan.execute(given, out=out)}
            others = {}
            if kind in ("NumPy", "CuPy"):
                others = {**of_finufft, **sigpy(take, points, grid)}
            elif kind == "torch":
                others = torchkbnufft(device, points, grid)
            for peer, execute in others.items():
                calls[f"{peer}, {kind}"] = lambda execute=execute: execute(given, out)
            show(name, calls, exact, wait, times)
    cardiac(device)


def cardiac(device):
    """CG-SENSE of the cardiac scan (of RAYSPIN_DATA) from NumPy's arrays to NumPy's: cardiac_calls times the same call in Rust."""
    import rayspin

    path = pathlib.Path(os.environ.get("RAYSPIN_DATA", "../shared/data")) / "mri" / "cardiac_radial_12ch.h5"
    if not path.is_file():
        return
    samples, points = rayspin.read_scan(path).arrays()

    def call():
        scan = rayspin.Scan.from_arrays(samples, points, shape=(256, 256), units="cycles/fov")
        return rayspin.recon(scan, "cg-sense", iterations=15, tolerance=0.0, device=device, keep_maps=False, progress=False)

    call()
    walls, stages = [], []
    for _ in range(2 * ROUNDS):
        start = time.perf_counter()
        found = call()
        walls.append(time.perf_counter() - start)
        stages.append(sum(seconds for _, seconds in found.stages))
    wall, inside = np.median(walls) * 1e3, np.median(stages) * 1e3
    print(f"cardiac CG-SENSE, 15 iterations: Python from arrays {wall:.1f} ms, stages {inside:.1f} ms")


main(sys.argv[1] if len(sys.argv) > 1 else "cpu")
