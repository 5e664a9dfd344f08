"""CG-SENSE from file to file on a CPU and on a GPU, and the share that the solver has: the scans of README.md's table.

    cargo build --release && python3 benches/whole_run.py [target/release/rayspin] [--runs 7] [--devices cpu,cuda]

A whole run is the wall clock of the command, which reads the scan and writes the image; the solver is the stage "conjugate gradients" of its record.
The first run on a device stands apart: on a GPU it compiles its kernels where no earlier one has. The others are medians with the least and the
largest, the devices in turn. The cardiac scan is that of RAYSPIN_DATA (else ../shared/data); without it only the simulated one is run.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = pathlib.Path(os.environ.get("RAYSPIN_DATA", ROOT.parent / "shared" / "data"))
SOLVER = "conjugate gradients"


def run(rayspin, scan, options, device, folder):
    """Seconds of the whole run and of its solver."""
    record = folder / "record.json"
    command = [rayspin, "-q", "recon", "mri", scan, "-o", folder / "image.npy", "--record", record]
    start = time.perf_counter()
    subprocess.run([*command, "--method", "cg-sense", "--tolerance", "0", "--device", device, *options], check=True)
    whole = time.perf_counter() - start
    stages = {stage["name"]: stage["seconds"] for stage in json.loads(record.read_text())["stages"]}
    return whole, stages[SOLVER]


def cell(seconds):
    return f"{statistics.median(seconds):.4f} ({min(seconds):.4f} to {max(seconds):.4f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rayspin", nargs="?", default=str(ROOT / "target" / "release" / "rayspin"))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--devices", default="cpu,cuda")
    args = parser.parse_args()
    devices = args.devices.split(",")
    print(subprocess.run([args.rayspin, "info"], check=True, capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scans = []
        cardiac = DATA / "mri" / "cardiac_radial_12ch.h5"
        if cardiac.exists():
            scans.append(("cardiac radial, 256 x 256, 12 coils, 15 iterations", cardiac, ["--iterations", "15"]))
        else:
            print(f"no {cardiac.name}: RAYSPIN_DATA names the folder that has mri/{cardiac.name}")
        kooshball = folder / "kooshball.h5"
        simulate = "simulate mri --dims 3 --matrix 128,128,128 --shots 6000 --trajectory kooshball --coils 8 --no-record -q"
        subprocess.run([args.rayspin, *simulate.split(), "-o", kooshball], check=True)
        scans.append(("kooshball 128^3, 8 coils, 10 iterations", kooshball, ["--iterations", "10"]))
        for what, scan, options in scans:
            first = {device: run(args.rayspin, scan, options, device, folder) for device in devices}
            times = {device: [] for device in devices}
            for _ in range(args.runs):
                for device in devices:
                    times[device].append(run(args.rayspin, scan, options, device, folder))
            print(f"\n{what}: seconds, the median of {args.runs} runs (least to largest)")
            medians = {}
            for device in devices:
                whole, solver = zip(*times[device])
                medians[device] = statistics.median(whole), statistics.median(solver)
                print(f"{device:>5}: file to file {cell(whole)}, solver alone {cell(solver)}; first run {first[device][0]:.3f}")
            if len(devices) == 2:
                (whole, solver), (other_whole, other_solver) = (medians[device] for device in devices)
                print(
                    f"{devices[0]} / {devices[1]}: file to file {whole / other_whole:.2f}, solver alone {solver / other_solver:.1f}"
                )


if __name__ == "__main__":
    main()
