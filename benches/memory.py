"""The memory that `rayspin recon mri` states before it begins, and what the system measured.

    python benches/memory.py [word ...]

Runs the release build (or $RAYSPIN) on simulated scans and on the real ones of $RAYSPIN_DATA (default ../shared/data), where a
word is part of their name or none is given, and prints a table in Markdown: MB stated, MB measured (peak resident set), ratio.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = pathlib.Path(os.environ.get("RAYSPIN_DATA", ROOT.parent / "shared" / "data")) / "mri"
RAYSPIN = os.environ.get("RAYSPIN", str(ROOT / "target" / "release" / "rayspin"))

GRID = ["cartesian", "cartesian --combine maps", "ls -i 2", "cg-sense -i 2", "wavelet -i 2", "tv -i 2", "cg-sense -i 2 --coils 3"]
UNDER = ["grappa", "grappa --coils 4", "cg-sense -i 2 --coils 0.95 --compression geometric", "tv -i 2 --sensitivities walsh"]
UNDER += ["cg-sense -i 2 --sensitivities espirit --map-sets 2"]
SPOKES = ["gridding", "ls -i 2", "cg-sense -i 2", "wavelet -i 2", "tv -i 2", "gridding --coils 3", "cg-sense -i 2 --coils 3"]
SPOKES += ["cg-sense -i 2 --sensitivities espirit"]
NOISE = "--noise-readouts 8 --snr 50"

SIMULATED = [
    ("grid 64², 4 coils", "--matrix 64,64 --coils 4", GRID),
    ("grid 256², 24 coils", "--matrix 256,256 --coils 24", GRID),
    ("grid 64×64×48, 8 coils", "--dims 3 --matrix 64,64,48 --coils 8", GRID),
    ("grid 64², 6 coils, R 2, noise", f"--matrix 64,64 --coils 6 --acceleration 2 {NOISE}", UNDER),
    ("grid 256², 16 coils, R 2, noise", f"--matrix 256,256 --coils 16 --acceleration 2 {NOISE}", UNDER),
    ("radial 64², 4 coils", "-t radial --matrix 64,64 --coils 4", SPOKES),
    ("radial 192², 16 coils, noise", f"-t radial --matrix 192,192 --coils 16 {NOISE}", SPOKES),
    ("kooshball 24³, 4 coils", "-t kooshball --matrix 24,24,24 --coils 4", SPOKES),
    ("kooshball 56³, 8 coils", "-t kooshball --matrix 56,56,56 --coils 8", SPOKES),
]
REAL = [
    ("cardiac_radial_12ch.h5", SPOKES),
    ("spiral_jemris_1ch.h5", ["gridding", "ls -i 2"]),
    ("brain_cartesian_8ch.cfl", GRID),
]


def reconstruct(folder, name, scan, methods):
    for method in methods:
        line = [RAYSPIN, "recon", "mri", "-q", str(scan), "-o", "image.npy", "-m", *method.split()]
        subprocess.run(line, cwd=folder, check=True)
        record = json.loads((folder / "image.json").read_text())
        stated, measured = record["parameters"]["memory stated"], record["peak_memory_bytes"]
        print(f"| {name} | {method} | {stated / 1e6:.1f} | {measured / 1e6:.1f} | {stated / measured:.2f} |", flush=True)


def main():
    words = sys.argv[1:]
    chosen = lambda name: not words or any(word in name for word in words)
    folder = pathlib.Path(tempfile.mkdtemp())
    print("| scan | method | stated | measured | ratio |\n|---|---|---|---|---|")
    for name, options, methods in SIMULATED:
        if chosen(name):
            line = [RAYSPIN, "simulate", "mri", "-q", "--no-record", "-o", "scan.h5", *options.split()]
            subprocess.run(line, cwd=folder, check=True)
            reconstruct(folder, name, "scan.h5", methods)
    for file, methods in REAL:
        if chosen(file) and (DATA / file).exists():
            reconstruct(folder, file, DATA / file, methods)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
