#!/usr/bin/env python3
"""The defaults of methods beside the best lambda, on simulated scans whose truth is known and on real ones.

    benches/defaults.py RAYSPIN FOLDER [REAL_SCAN...] > table.txt

Simulated scans: error (NRMSE, scale fitted) with true coil maps. "best" is the least error over 11 values of lambda, each with the
iterations of the rule; "rule" is the error with what the command chooses, "auto" with --lambda auto. Real scans have no truth: their
rows show lambda of the rule and of --lambda auto, which predicts samples that are held out.
"""
import concurrent.futures, json, os, subprocess, sys

program, folder, real = sys.argv[1], sys.argv[2], sys.argv[3:]
os.makedirs(folder, exist_ok=True)
SCANS = {
    "grid, every 2nd line": "--acceleration 2 --calibration 24",
    "grid, every 3rd line": "--acceleration 3 --calibration 24",
    "Poisson disc 3": "-t poisson --acceleration 3 --calibration 24",
    "Poisson disc 5": "-t poisson --acceleration 5 --calibration 24",
    "Poisson disc 8": "-t poisson --acceleration 8 --calibration 12",
    "spiral, full": "-t spiral --shots 16",
    "spiral, every 2nd": "-t spiral --shots 16 --acceleration 2",
    "spiral, every 4th": "-t spiral --shots 16 --acceleration 4",
    "300 spokes": "-t radial --angles golden --shots 300",
    "96 spokes": "-t radial --angles golden --shots 96",
    "48 spokes": "-t radial --angles golden --shots 48",
    "24 spokes": "-t radial --angles golden --shots 24",
}
METHODS = ["cg-sense", "wavelet", "tv"]
LAMBDAS = ["1e-6", "3e-6", "1e-5", "3e-5", "1e-4", "3e-4", "1e-3", "3e-3", "1e-2", "3e-2", "1e-1"]


def run(*arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")


def recon(scan, name, options):
    record = f"{folder}/{name}.json"
    run("recon", "mri", scan, "-q", "--device", "cpu", "--threads", "1", "-o", f"{folder}/{name}.npy", "--record", record, *options)
    os.remove(f"{folder}/{name}.npy")
    with open(record) as file:
        return json.load(file)


def error(record):
    return record["quality"][0]["metrics"]["nrmse"]


def simulated(job):
    (title, options), snr, number = job
    scan, truth, maps = (f"{folder}/{number}{end}" for end in (".h5", ".t.npy", ".m.cfl"))
    run("simulate", "mri", "-q", "-o", scan, "--truth", truth, "--maps", maps, "--matrix", "192,192", "--coils", "8", "--snr", snr, *options.split())
    known = ["--maps", maps, "--reference", truth, "--fit"]
    chosen = recon(scan, f"{number}.chosen", known)
    rows = []
    for method in METHODS:
        rule = recon(scan, f"{number}.{method}", [*known, "-m", method])
        auto = recon(scan, f"{number}.{method}.auto", [*known, "-m", method, "-l", "auto"])
        iterations = ["-i", str(rule["parameters"]["iterations"])]
        each = {l: error(recon(scan, f"{number}.{method}.{l}", [*known, "-m", method, "-l", l, *iterations])) for l in LAMBDAS}
        best = min(each, key=each.get)
        found = lambda r: f"{r['parameters']['lambda']:8.1e} {100 * error(r):5.1f} %"
        rows.append(f"{title:21} {snr:>5} {method:9} {float(best):8.0e} {100 * each[best]:5.1f} %   {found(rule)}   {found(auto)}"
                    f"   {'chosen' if chosen['parameters']['method'] == method else ''}".rstrip())
    return rows


def on_real(scan):
    rows = []
    for method in METHODS:
        name = os.path.basename(scan) + "." + method
        rule, auto = recon(scan, name, ["-m", method]), recon(scan, name + ".auto", ["-m", method, "-l", "auto"])
        tried = auto["parameters"]["lambda searched"]["tried"]
        rows.append(f"{os.path.basename(scan):26} {method:9} rule {rule['parameters']['lambda']:8.1e}   auto {auto['parameters']['lambda']:8.1e}"
                    f"   prediction {' '.join(f'{l:.0e}:{e:.3f}' for l, e in sorted(tried))}")
    return rows


print("scan                    SNR method        best lambda         rule's lambda      auto's lambda")
jobs = [(scan, snr, f"{i}_{snr}") for i, scan in enumerate(SCANS.items()) for snr in ("15", "60", "1e5")]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for rows in pool.map(simulated, jobs):
        print("\n".join(rows), flush=True)
    print("\nreal scans: -1 is the best prediction of samples held out, 0 an empty image")
    for rows in pool.map(on_real, real):
        print("\n".join(rows), flush=True)
