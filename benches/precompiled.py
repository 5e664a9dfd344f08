"""Kernels compiled beforehand beside those that NVRTC makes for a problem: the stages of a run, and what a first run takes longer.

    cargo xtask kernels --only 9.0    # target/kernels/rayspin.kernels; the number is the GPU's compute capability
    python3 benches/precompiled.py [target/release/rayspin] [target/kernels/rayspin.kernels] [--runs 7]

Each scan is reconstructed in three ways: with the archive of compiled kernels and without NVRTC, with both, and with NVRTC alone. Every way
starts with an empty cache of kernels: its first two runs are the first rows. Then the first and the last way take turns, and each stage's
median is compared. The last row is their sum without reading, planning and writing, in which no kernel runs.
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
ON_HOST = {"read", "plan", "start GPU", "compile kernels", "reconstruct", "write"}
KOOSHBALL = "simulate mri -t kooshball --dims 3 --matrix 128,128,128 --coils 8"
CARTESIAN = "simulate mri --dims 3 --matrix 128,128,128 --coils 8"
CONE = "simulate ct --matrix 256,256,256"
ITERATIONS = "-m cg-sense --tolerance 0 --iterations 30"


class Way:
    def __init__(self, name, folder, archive, nvrtc):
        self.name = name
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("RAYSPIN_")}
        self.environment["RAYSPIN_KERNEL_CACHE"] = str(folder / f"cache of {name}")
        if archive:
            self.environment["RAYSPIN_KERNELS"] = archive
        if not nvrtc:
            self.environment["RAYSPIN_PRECOMPILED_ONLY"] = "1"

    def run(self, command, folder):
        """Seconds of the command and of its stages; of what fails the message."""
        record = folder / "record.json"
        command = [*command, "-o", folder / f"{self.name}.nii.gz", "--record", record, "--device", "cuda"]
        start = time.perf_counter()
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if done.returncode:
            return None, done.stderr.strip()
        return seconds, {stage["name"]: stage["seconds"] for stage in json.loads(record.read_text())["stages"]}


def scans(rayspin, folder):
    cardiac = DATA / "mri" / "cardiac_radial_12ch.h5"
    if cardiac.exists():
        yield "cardiac radial, 256 x 256, 12 coils, CG-SENSE", ["mri", cardiac, *ITERATIONS.split()]
    for name, simulate, method in [
        ("kooshball 128^3, 8 coils, CG-SENSE", KOOSHBALL, f"mri {ITERATIONS}"),
        ("kooshball 128^3, 8 coils, gridding", KOOSHBALL, "mri -m gridding"),
        ("Cartesian 128^3, 8 coils, CG-SENSE", CARTESIAN, f"mri {ITERATIONS}"),
        ("cone beam 256^3, FDK", CONE, "ct -m fdk"),
    ]:
        scan = folder / f"{abs(hash(simulate))}.h5"
        if not scan.exists():
            print("$ rayspin", simulate)
            subprocess.run([rayspin, "-q", *simulate.split(), "--no-record", "-o", scan], check=True)
        kind, *options = method.split()
        yield name, [kind, scan, *options]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rayspin", nargs="?", default=str(ROOT / "target" / "release" / "rayspin"))
    parser.add_argument("archive", nargs="?", default=str(ROOT / "target" / "kernels" / "rayspin.kernels"))
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    archive = str(pathlib.Path(args.archive).resolve())
    print(subprocess.run([args.rayspin, "info"], check=True, capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for what, command in scans(args.rayspin, folder):
            print("\n" + what)
            ways = [
                Way("archive, no NVRTC", folder / what, archive, False),
                Way("archive and NVRTC", folder / what, archive, True),
                Way("NVRTC", folder / what, None, True),
            ]
            command = [args.rayspin, "-q", "recon", *command]
            failed = False
            for way in ways:
                runs = [way.run(command, folder) for _ in range(3)]
                failed = failed or any(seconds is None for seconds, _ in runs)
                cells = (stages if seconds is None else f"{seconds:.3f}" for seconds, stages in runs)
                print(f"{way.name:>20}: first, second and third run", ", ".join(cells), "s")
            if failed:
                continue
            taken = {way.name: [] for way in ways}
            for _ in range(args.runs):
                for way in (ways[0], ways[2]):
                    taken[way.name].append(way.run(command, folder)[1])
            medians = [
                {stage: statistics.median(run.get(stage, 0.0) for run in runs) for stage in runs[-1]}
                for runs in (taken[ways[0].name], taken[ways[2].name])
            ]
            compared = [stage for stage in medians[1] if stage not in ON_HOST]
            rows = [(stage, [way.get(stage, 0.0) for way in medians]) for stage in compared]
            rows.append(("their sum", [sum(way.get(stage, 0.0) for stage in compared) for way in medians]))
            print(f"{'stage, ms':>24} {'archive':>9} {'NVRTC':>9}  ratio")
            for stage, (ahead, now) in rows:
                ratio = f"{ahead / now:.3f}" if now else ""
                print(f"{stage:>24} {1e3 * ahead:9.2f} {1e3 * now:9.2f}  {ratio}")


if __name__ == "__main__":
    main()
