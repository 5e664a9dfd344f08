"""CG-SENSE from file to file: Rayspin's command beside SigPy and BART, each a process of its own, in turns on the same threads.

    python benches/peers/file_to_file.py [--runs 3] [--threads 2] [--iterations 30] [--device cpu|cuda] [--pictures FOLDER]

Every program starts with the ISMRMRD file and ends with an image file, the start of its process included. One round warms up: it fills
the page cache and compiles what is compiled once. On a GPU (`--device cuda`) Rayspin and SigPy run there, and BART is left out. The scans
are the cardiac radial scan (of RAYSPIN_DATA, else ../shared/data) and a simulated 3-D kooshball whose object is known.

    Rayspin   `rayspin recon mri`: maps by local principal components of low-resolution coil images, its default
    SigPy     a script: low-resolution coil images over their root of sum of squares, with the ramp of spokes as density, and SenseRecon
    BART      a script that converts to .cfl, for BART reads no ISMRMRD; its commands nufft -i, fft, resize, caldir (the cheapest maps
              that it has) and pics

All run the same number of iterations of conjugate gradients on |F S x - d|^2 + lambda |x|^2 with the same lambda. Prints seconds, and
for each image the error of its magnitude after the best scale: against Rayspin's, and against the object where that is known. Then all
run once with the same maps, those of the simulation where they are known, else Rayspin's: what still differs is transforms and solvers.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import types

import cardiac

SELF = str(pathlib.Path(__file__).resolve())
RAYSPIN = os.environ.get("RAYSPIN", str(cardiac.ROOT / "target" / "release" / "rayspin"))
NAME = {"cpu": "CPU", "cuda": "GPU"}


def without_numba():
    """Lets SigPy start where numba is not there: only its CPU kernels are compiled with it."""
    try:
        import numba  # noqa: F401
    except ImportError:
        stand_in = types.ModuleType("numba")
        stand_in.jit = stand_in.njit = lambda *given, **named: given[0] if given and callable(given[0]) else lambda f: f
        stand_in.vectorize = stand_in.jit
        stand_in.prange = range
        sys.modules["numba"] = stand_in


def sigpy(path, output, shape, iterations, weight, device, maps=None):
    """What a user of SigPy writes, from the file to the image."""
    if device == "cuda":
        without_numba()
    import numpy as np
    import sigpy as sp
    import sigpy.mri as mr

    place = sp.Device(0 if device == "cuda" else -1)
    trajectory, ksp = cardiac.read(path, len(shape))
    # SigPy's coordinates are in the order of the image axes, z before y before x.
    coord = np.ascontiguousarray(trajectory[..., ::-1])
    radius = np.linalg.norm(coord, axis=-1)
    centre = radius < cardiac.RADIUS
    # Spokes lie as densely as 1 / |k|^(axes - 1).
    density = (radius[centre] + 0.25) ** (len(shape) - 1)
    window = density * np.cos(np.pi * radius[centre] / (2 * cardiac.RADIUS)) ** 2
    with place:
        if maps:
            maps = sp.to_device(np.squeeze(np.load(maps)), place)
        else:
            low = sp.to_device((ksp[:, centre] * window).astype(np.complex64), place)
            low = sp.nufft_adjoint(low, sp.to_device(coord[centre], place), (len(ksp), *shape))
            xp = place.xp
            maps = low / xp.sqrt(xp.sum(xp.abs(low) ** 2, axis=0, keepdims=True))
        coord = sp.to_device(coord, place)
        lamda = weight / float(np.prod(shape))  # its transform is scaled by 1/sqrt(voxels)
        image = mr.app.SenseRecon(
            ksp, maps, lamda=lamda, coord=coord, device=place, max_iter=iterations, show_pbar=False
        ).run()
    np.save(output, sp.to_device(image, sp.cpu_device))


def bart(path, output, shape, iterations, weight, threads, maps=None):
    """Converts, runs BART's commands and says how long these took without the conversion."""
    with tempfile.TemporaryDirectory() as folder:
        tool = cardiac.Bart(folder, path, threads, shape)
        start = time.perf_counter()
        if maps:
            import numpy as np

            tool.write_maps(np.squeeze(np.load(maps)))
        else:
            tool.maps()
        lam = weight / math.prod(shape)  # its transform is scaled by 1/sqrt(voxels)
        words = ["-S", "-l2", "-r", lam, "-i", iterations, "-t", "trajectory", "kspace", "maps"]
        tool.run("pics", *words, os.path.abspath(output))
        print(time.perf_counter() - start)


class Scan:
    def __init__(self, name, path, shape, lam, truth=None, maps=None):
        self.name, self.path, self.shape, self.lam, self.truth, self.maps = name, path, shape, lam, truth, maps


def scans(folder, matrix, spokes, coils):
    path = cardiac.DATA / "mri" / "cardiac_radial_12ch.h5"
    if path.exists():
        yield Scan("cardiac radial, 256 x 256, 12 coils", str(path), cardiac.SHAPE, 1e-3)
    else:
        print(f"no {path.name}: RAYSPIN_DATA names the folder that has mri/{path.name}")
    scan, truth, maps = (f"{folder}/{name}" for name in ("kooshball.h5", "truth.npy", "given.npy"))
    size = ",".join([str(matrix)] * 3)
    words = f"--dims 3 --matrix {size} -t kooshball --shots {spokes} --coils {coils} --snr 100 --no-record -q"
    print("$ rayspin simulate mri", words, "-o kooshball.h5 --truth truth.npy --maps maps.npy")
    subprocess.run([RAYSPIN, "simulate", "mri", *words.split(), "-o", scan, "--truth", truth, "--maps", maps], check=True)
    yield Scan(f"kooshball {matrix}^3, {spokes} spokes, {coils} coils", scan, (matrix,) * 3, 1e-4, truth, maps)


def error(image, reference):
    """|a x - reference| / |reference| of magnitudes, a the best scale."""
    import numpy as np

    a, b = np.abs(image).ravel().astype(float), np.abs(reference).ravel().astype(float)
    return float(np.linalg.norm(a * (a @ b) / (a @ a) - b) / np.linalg.norm(b))


def picture(image, path):
    """The middle slice, white at the 99.5th percentile."""
    import numpy as np
    from PIL import Image

    values = np.abs(image)
    values = values[values.shape[0] // 2] if values.ndim == 3 else values
    Image.fromarray((np.clip(values / np.percentile(values, 99.5), 0, 1) * 255).astype(np.uint8)).save(path)


def measure(scan, args, folder):
    import numpy as np

    record, own = f"{folder}/record.json", f"{folder}/own_maps.npy"
    outputs = {"Rayspin": f"{folder}/rayspin.npy", "SigPy": f"{folder}/sigpy.npy", "BART": f"{folder}/bart"}
    ours = [RAYSPIN, "recon", "mri", scan.path, "-o", outputs["Rayspin"], "--method", "cg-sense", "--quiet"]
    ours += ["--iterations", args.iterations, "--tolerance", 0, "--lambda", scan.lam, "--threads", args.threads]
    ours += ["--device", args.device]

    def start(command):
        return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout

    def load(name):
        if name == "BART":
            return np.fromfile(outputs["BART"] + ".cfl", np.complex64).reshape(scan.shape)
        return np.squeeze(np.load(outputs[name]))

    def largest(*more):
        start([*ours, "--record", record, *more])
        return json.loads(pathlib.Path(record).read_text())["parameters"]["largest eigenvalue"]

    def programs(weight):
        child = [sys.executable, SELF, "--scan", scan.path, "--shape", ",".join(map(str, scan.shape)), "--weight", weight]
        child += ["--iterations", args.iterations, "--threads", args.threads, "--device", args.device]
        names = ["SigPy", *(["BART"] if args.device == "cpu" and shutil.which("bart") else [])]
        theirs = {name: [*child, "--child", name, "--output", outputs[name]] for name in names}
        return {"Rayspin": [*ours, "--no-record"], **theirs}

    def errors(name):
        line = f"differs from Rayspin's image by {error(images[name], images['Rayspin']):.4f}"
        return line + ("" if truth is None else f", from the object by {error(images[name], truth):.4f}")

    commands = programs(scan.lam * largest("--save-maps", own))
    times = {name: [] for name in commands}
    without = []
    for run in range(args.runs + 1):
        for name, command in commands.items():
            begun = time.perf_counter()
            said = start(command)
            seconds = time.perf_counter() - begun
            if run:  # the first round warms up
                times[name].append(seconds)
                without += [float(said)] if name == "BART" else []
            elif name != "Rayspin" or args.device == "cuda":
                print(f"    first run of {name}, which compiles where it must: {seconds:.2f} s")
    images = {name: load(name) for name in commands}
    if without:
        times["BART without conversion"] = without
    truth = np.squeeze(np.load(scan.truth)) if scan.truth else None
    for name, seconds in times.items():
        median = statistics.median(seconds)
        line = f"    {name:24} {median:8.3f} s ({', '.join(f'{s:.3f}' for s in seconds)})"
        line += f"   {median / statistics.median(times['Rayspin']):6.2f} x Rayspin"
        print(line + (f"   {errors(name)}" if name in images else ""), flush=True)
    save(images, truth, scan, args, "")
    given = ["--maps", scan.maps or own]
    commands = programs(scan.lam * largest(*given))
    for command in commands.values():
        start([*command, *given])
    images = {name: load(name) for name in commands}
    print("    with the same maps, those of the simulation:" if scan.maps else "    with the same maps, those of Rayspin:")
    for name in images:
        print(f"    {name:24} {errors(name)}", flush=True)
    save(images, truth, scan, args, "_same_maps")


def save(images, truth, scan, args, suffix):
    if args.pictures:
        os.makedirs(args.pictures, exist_ok=True)
        for name, image in [*images.items(), *([] if truth is None else [("object", truth)])]:
            picture(image, f"{args.pictures}/{scan.name.split()[0]}_{name}_{args.device}{suffix}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--matrix", type=int, default=64)
    parser.add_argument("--spokes", type=int, default=1500)
    parser.add_argument("--coils", type=int, default=8)
    parser.add_argument("--pictures", help="folder for a picture of each image")
    # One program on one scan, started as a process of its own.
    for name, kind in [("child", str), ("scan", str), ("output", str), ("shape", str), ("maps", str), ("weight", float)]:
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        shape = tuple(map(int, args.shape.split(",")))
        if args.child == "SigPy":
            return sigpy(args.scan, args.output, shape, args.iterations, args.weight, args.device, args.maps)
        return bart(args.scan, args.output, shape, args.iterations, args.weight, args.threads, args.maps)
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    print(f"{NAME[args.device]}, {args.threads} threads, {args.iterations} iterations, median of {args.runs} runs")
    with tempfile.TemporaryDirectory() as folder:
        for scan in scans(folder, args.matrix, args.spokes, args.coils):
            print(f"\n{scan.name}, lambda {scan.lam}", flush=True)
            measure(scan, args, folder)


if __name__ == "__main__":
    main()
