"""Compares precompiled kernels with kernels that NVRTC compiles for the problem: the time of each stage, and how much longer a first run takes.

    scripts/kernels.sh --only 9.0,ptx    # target/kernels/rayspin.kernels; the number is the GPU's compute capability
    python3 benches/precompiled.py [target/release/rayspin] [target/kernels/rayspin.kernels] [--runs 7]

Each scan is reconstructed in three ways: with the archive of precompiled kernels and without NVRTC, with both, and with NVRTC alone. Every
way starts with an empty cache of kernels: the script prints its first three runs. Then the script alternates runs with the archive alone and
runs with NVRTC alone, and prints the median of each stage in which kernels run. The last row is the sum of the rows above.
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
ON_HOST = {"start", "read", "plan", "start GPU", "compile kernels", "reconstruct", "write"}
KOOSHBALL = "simulate mri -t kooshball --dims 3 --matrix 128,128,128 --coils 8"
CARTESIAN = "simulate mri --dims 3 --matrix 128,128,128 --coils 8"
CONE = "simulate ct --matrix 256,256,256"
ITERATIONS = "-m cg-sense --tolerance 0 --iterations 30"


class Way:
    def __init__(self, name, folder, archive, nvrtc):
        self.name = name
        ways = ("RAYSPIN_KERNELS", "RAYSPIN_PRECOMPILED_ONLY")
        self.environment = {key: value for key, value in os.environ.items() if key not in ways}
        self.environment["RAYSPIN_KERNEL_CACHE"] = str(folder / f"cache of {name}")
        if archive:
            self.environment["RAYSPIN_KERNELS"] = archive
        if not nvrtc:
            self.environment["RAYSPIN_PRECOMPILED_ONLY"] = "1"

    def run(self, command, folder):
        """Seconds of the command and of its stages; None and the message if it fails."""
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
    beside = pathlib.Path(args.rayspin).resolve().with_name("rayspin.kernels")
    if beside.exists():
        raise SystemExit(f"{beside}: every run would use it; move it away")
    print(subprocess.run([args.rayspin, "info"], check=True, capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for what, command in scans(args.rayspin, folder):
            print("\n" + what)
            ahead = Way("archive, no NVRTC", folder / what, archive, False)
            both = Way("archive and NVRTC", folder / what, archive, True)
            now = Way("NVRTC", folder / what, None, True)
            command = [args.rayspin, "-q", "recon", *command]
            failed = False
            for way in (ahead, both, now):
                runs = [way.run(command, folder) for _ in range(3)]
                failed = failed or any(seconds is None for seconds, _ in runs)
                cells = (stages if seconds is None else f"{seconds:.3f}" for seconds, stages in runs)
                print(f"{way.name:>20}: first, second and third run", ", ".join(cells), "s")
            if not failed:
                compare(ahead, now, command, folder, args.runs)


def compare(ahead, now, command, folder, runs):
    """Prints the median of each stage of both ways, which take turns."""
    taken = {ahead: [], now: []}
    for _ in range(runs):
        for way in taken:
            seconds, stages = way.run(command, folder)
            if seconds is None:
                raise SystemExit(stages)
            taken[way].append(stages)
    compared = [stage for stage in taken[now][-1] if stage not in ON_HOST]
    medians = {way: [statistics.median(run[stage] for run in taken[way]) for stage in compared] for way in taken}
    rows = [*zip(compared, medians[ahead], medians[now]), ("their sum", sum(medians[ahead]), sum(medians[now]))]
    print(f"{'stage, ms':>24} {'archive':>9} {'NVRTC':>9}  ratio")
    for stage, one, other in rows:
        print(f"{stage:>24} {1e3 * one:9.2f} {1e3 * other:9.2f}  {one / other:.3f}")


if __name__ == "__main__":
    main()
