"""Wall times of whole commands on a GPU, the stages of one more run of each, and what the driver alone takes to start and to end.

    python benches/whole_commands.py target/release/rayspin FOLDER

FOLDER holds cardiac_radial_12ch.h5, and k128.h5 and k256.h5 as the raw file says. It should be on a RAM disk.
"""

import json
import os
import statistics
import subprocess
import sys
import time

RUNS = 8
SCANS = [("cardiac", "cardiac_radial_12ch.h5 -i 30"), ("128^3 x 8", "k128.h5 -i 30"), ("256^3 x 32, 10 iterations", "k256.h5 -i 10 --tolerance 0")]

# A process that opens the first GPU as a program does, prints when it is done, and leaves at once.
DRIVER = """
import ctypes, os, time
start = time.time()
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
device, context = ctypes.c_int(), ctypes.c_void_p()
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
print(time.time() - start, time.time(), flush=True)
os._exit(0)
"""


def driver():
    starts, ends = [], []
    for _ in range(RUNS):
        found = subprocess.run([sys.executable, "-c", DRIVER], capture_output=True, text=True, check=True)
        start, done = map(float, found.stdout.split())
        starts.append(start)
        ends.append(time.time() - done)
    print(f"driver alone: start {statistics.median(starts):.3f} s, end {statistics.median(ends):.3f} s, medians of {RUNS}")


def commands(rayspin, device):
    print(f"== --device {device}")
    for name, words in SCANS:
        command = [rayspin, "recon", "mri", *words.split(), "-m", "cg-sense", "--device", device, "-o", "o.npy", "-q"]
        walls = []
        for _ in range(RUNS):
            start = time.perf_counter()
            subprocess.run([*command, "--no-record"], check=True)
            walls.append(time.perf_counter() - start)
        first, later = walls[0], sorted(walls[1:])
        print(f"{name} first {first:.3f} s, then median {statistics.median(later):.3f} ({later[0]:.3f} to {later[-1]:.3f})")
        subprocess.run([*command, "--record", "r.json"], check=True)
        with open("r.json", encoding="utf-8") as file:
            record = json.load(file)
        print("total", round(record["total_seconds"], 3), [(stage["name"], round(stage["seconds"], 3)) for stage in record["stages"]], flush=True)


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    os.chdir(sys.argv[2])
    driver()
    for each in ("cuda", "auto"):
        commands(program, each)
