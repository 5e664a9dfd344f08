#!/usr/bin/env python3
"""The defaults of `os-sart` beside other subsets and steps and beside the other methods, on simulated scans whose truth is known.

    benches/ct_defaults.py RAYSPIN FOLDER > table.txt

Errors are NRMSE in percent. Each pass over all views takes the same time, whatever the subsets and the step.
"""
import os, subprocess, sys

program, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
SCANS = {
    "parallel, 180 views": "-g parallel --matrix 128,128 --views 180",
    "fan, 360 views": "-g fan --matrix 128,128 --views 360",
    "fan, 60 views": "-g fan --matrix 128,128 --views 60",
    "fan, 24 views": "-g fan --matrix 128,128 --views 24",
    "fan, 1/10 photons": "-g fan --matrix 128,128 --views 180 --photons 1e4",
    "fan, short scan": "-g fan --matrix 128,128 --views 180 --arc 220",
    "cone, 90 views": "-g cone --matrix 48,48,48 --views 90",
}
METHODS = ["fbp", "cgls", "sirt"]
CHOICES = [(10, 0.5), (10, 1.0), (15, 1.0), (20, 0.5), (20, 1.0), (20, 1.5), (40, 0.5), (40, 1.0), (1000, 0.25), (1000, 0.5)]


def run(*arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def error(scan, truth, method):
    volume = f"{folder}/volume.npy"
    run("recon", "ct", scan, "-q", "--device", "cpu", "-o", volume, "--no-record", "-m", *method.split())
    line = next(line for line in run("metrics", volume, truth).splitlines() if "NRMSE" in line)
    return line.split()[2]


names = [*METHODS, *(f"{subsets}/{step}" for subsets, step in CHOICES)]
print(f"{'scan':22}" + "".join(f"{name:>10}" for name in names), flush=True)
for name, options in SCANS.items():
    scan, truth = f"{folder}/scan.h5", f"{folder}/truth.npy"
    run("simulate", "ct", "-q", "-o", scan, "--truth", truth, "--no-record", *options.split())
    methods = [method.replace("fbp", "fdk") if "cone" in options else method for method in METHODS]
    methods += [f"os-sart --subsets {subsets} --relaxation {step}" for subsets, step in CHOICES]
    print(f"{name:22}" + "".join(f"{error(scan, truth, method):>10}" for method in methods), flush=True)
