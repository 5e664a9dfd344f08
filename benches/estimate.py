"""Seconds that `rayspin recon mri` takes on the CPU, and those that `--device auto` takes for the most that it can be.

    python benches/estimate.py

Runs the release build (or $RAYSPIN) on simulated scans: work and traffic of the run's budget, seconds of its stages but for reading
and writing, and the bound of crates/programs/cli/src/commands/plan.rs over them.
"""

import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RAYSPIN = os.environ.get("RAYSPIN", str(ROOT / "target" / "release" / "rayspin"))
RATE, HELPING = 4e9, 16

SCANS = {
    "--matrix 192,192 --coils 8": ["cartesian", "cg-sense -i 10", "cartesian --combine maps --sensitivities walsh"],
    "--matrix 256,256 --coils 8 --acceleration 2 --calibration 24": ["grappa", "cg-sense -i 20", "tv -i 20 --sensitivities walsh"],
    "-t radial --matrix 128,128 --coils 8 --shots 80": ["gridding", "cg-sense -i 20", "ls -i 5", "wavelet -i 20", "tv -i 20"],
    "-t kooshball --matrix 40,40,40 --coils 6 --shots 2000": ["gridding", "cg-sense -i 5"],
}


def main():
    print("| scan | method | Gflop | GB | seconds | bound | bound/seconds |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *words: subprocess.run([RAYSPIN, *words, "-q", "--device", "cpu"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for scan, methods in SCANS.items():
            run("simulate", "mri", "-o", "scan.h5", *scan.split())
            for method in methods:
                run("recon", "mri", "scan.h5", "-o", "image.npy", "--method", *method.split())
                record = json.loads((pathlib.Path(folder) / "image.json").read_text())
                stages = record["parameters"]["budget"]["stages"]
                work, traffic = (sum(s[name] for s in stages) for name in ("flops", "traffic"))
                apart = ("read", "write", "start")
                seconds = sum(s["seconds"] for s in record["stages"] if s["name"] not in apart)
                bound = (work + traffic) / (RATE * min(record["threads"], HELPING))
                print(f"| {scan} | {method} | {work / 1e9:.3f} | {traffic / 1e9:.3f} | {seconds:.3f} | {bound:.3f} | {bound / seconds:.1f} |")


main()
