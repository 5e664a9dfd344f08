"""Projectors of Rayspin against RTK on the CPU, in turn on the same machine: 256^3 voxels, 360 views of 256^2 pixels on a full turn.

    cargo build --release -p rayspin-ladder-cli
    python -m pip install itk-rtk          # 250 MB, and so not in requirements.txt
    python benches/peers/ct.py [rounds]

RTK's wheel is made for any x86-64 processor (SSE2). It runs on as many threads as Rayspin. Constant volumes and projections:
the work does not depend on values. Both are warmed up once. FDK of RTK includes weighting and ramp filter; Rayspin's row is its back-projection
alone.
"""

import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import itk
from itk import RTK as rtk

N, VIEWS = 256, 360
LADDER = pathlib.Path(__file__).resolve().parents[2] / "target" / "release" / "rayspin-ladder"
THREADS = os.cpu_count()
Image = itk.Image[itk.F, 3]


def constant(size, spacing, value):
    source = rtk.ConstantImageSource[Image].New()
    source.SetOrigin([-0.5 * (s - 1) * p for s, p in zip(size, spacing)])
    source.SetSpacing(spacing)
    source.SetSize(size)
    source.SetConstant(value)
    source.Update()
    return source.GetOutput()


def projections(value):
    return constant([N, N, VIEWS], [2.0, 2.0, 1.0], value)


def volume(value):
    return constant([N, N, N], [1.0, 1.0, 1.0], value)


def filters(geometry):
    """The steps of RTK, each made anew for a run: a filter that has run does nothing."""

    def step(kind, first, second):
        def make():
            made = kind.New()
            made.SetInput(0, first())
            made.SetInput(1, second())
            made.SetGeometry(geometry)
            return made

        return make

    back = lambda kind: step(kind, lambda: volume(0.0), lambda: projections(1.0))
    return {
        "project": step(rtk.JosephForwardProjectionImageFilter[Image, Image], lambda: projections(0.0), lambda: volume(0.01)),
        "backproject": back(rtk.BackProjectionImageFilter[Image, Image]),
        "FDK": step(rtk.FDKConeBeamReconstructionFilter[Image], lambda: volume(0.0), lambda: projections(1.0)),
    }


def seconds(make):
    made = make()
    begin = time.perf_counter()
    made.Update()
    return time.perf_counter() - begin


def ours(ladder):
    """The median of three runs by the ladder's protocol."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "run.json"
        options = f"--case cone-256 --variant columns --device cpu --threads {THREADS} --no-limits --rounds 3 --budget 1 -q --json {file}"
        subprocess.run([LADDER, ladder, *options.split()], check=True, stdout=subprocess.DEVNULL)
        timed = json.loads(file.read_text())["runs"][0]["steps"][0]["outcome"]["timed"]
        return timed["timing"]["median"], timed["error"]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    itk.MultiThreaderBase.SetGlobalDefaultNumberOfThreads(THREADS)
    geometry = rtk.ThreeDCircularProjectionGeometry.New()
    for view in range(VIEWS):
        geometry.AddProjection(3.0 * N, 6.0 * N, 360.0 * view / VIEWS)
    print(f"itk-rtk {importlib.metadata.version('itk-rtk')} (wheel), {THREADS} threads; s, {rounds} rounds in turns after one to warm up")
    steps = filters(geometry)
    theirs, mine, errors = {name: [] for name in steps}, {}, {}
    for turn in range(rounds + 1):
        for name, make in steps.items():
            found = seconds(make)
            if turn > 0:
                theirs[name].append(found)
            if turn > 0 and name != "FDK":
                time_of_ours, errors[name] = ours(name)
                mine.setdefault(name, []).append(time_of_ours)
    mine["project-adjoint"] = [ours("project-adjoint")[0]]
    for name in [*steps, "project-adjoint"]:
        line = f"{name:16}"
        if name in theirs:
            line += f"  RTK {statistics.median(theirs[name]):6.2f} ({' '.join(f'{t:.2f}' for t in theirs[name])})"
        if name in mine:
            line += f"  Rayspin {statistics.median(mine[name]):6.2f} ({' '.join(f'{t:.2f}' for t in mine[name])})"
        if name in mine and name in theirs:
            line += f"  ratio {statistics.median(theirs[name]) / statistics.median(mine[name]):.1f}, error {errors[name]:.1e}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
