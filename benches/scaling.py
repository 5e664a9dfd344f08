"""One and two processes on two cores: parts of `rayspin batch` and workers of `rayspin.dask`, strong and weak scaling.

    python benches/scaling.py PROGRAM [NOTE] > benches/results/DAY-MACHINE/scaling.txt

PROGRAM is the command `rayspin`; this Python has rayspin, dask and distributed. A note goes to the head of the file. Each time is
the wall clock until all processes have ended. Ways take turns, and outputs are removed between them.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SCAN = "simulate mri -q --no-record -o scans/s0.h5 --matrix 48,48,48 --dims 3 -t kooshball --shots 800 --coils 6 --snr 50"
TINY = "simulate mri -q --no-record -o tiny/s0.h5 --matrix 16,16 --coils 1"
METHOD = ["-m", "cg-sense", "--iterations", "30", "--tolerance", "0"]
COPIES, RUNS = 8, 3


def parts(program, count, threads, scans):
    """Seconds of `count` processes with a part of these scans each."""
    line = [program, "batch", *scans, "-o", "out/{stem}.npy", "-q", "--device", "cpu", "--threads", str(threads)]
    start = time.perf_counter()
    running = [subprocess.Popen([*line, "--shard", f"{n + 1}/{count}", "--", *METHOD], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n in range(count)]
    assert all(process.wait() == 0 for process in running)
    return time.perf_counter() - start


def dask(count, scans, method, **options):
    """Seconds of a call, with workers that have started."""
    from distributed import Client, LocalCluster

    import rayspin.dask

    with LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None, env={"RAYSPIN_THREADS": "1"}) as cluster, Client(cluster) as client:
        # Imports and threads of the workers are there.
        rayspin.dask.batch("tiny/s0.h5", "warm/{stem}.npy", "cartesian", client=client)
        client.run(lambda: __import__("rayspin").threads())
        start = time.perf_counter()
        rows = rayspin.dask.batch(scans, "out/{stem}.npy", method, client=client, **options)
        seconds = time.perf_counter() - start
        assert all(row["result"] == "reconstructed" for row in rows)
        return seconds


def main():
    program = os.path.abspath(sys.argv[1])
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    model = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    print(f"# One and two processes on two cores: {model}, {os.cpu_count()} cores; {version}; {COPIES} copies of one scan in /dev/shm")
    print("# $ python benches/scaling.py PROGRAM")
    print(f"# $ rayspin {SCAN}")
    print("# $ rayspin batch scans/*.h5 -o out/{stem}.npy -q --device cpu --threads T --shard I/P -- " + " ".join(METHOD))
    print("# dask: workers of one thread, started before; the same method and iterations; 100 scans of 16 x 16 on a grid are tasks without work")
    for extra in sys.argv[2:]:
        print(f"# {extra}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.chdir(folder)
        for words, name, copies in ((SCAN, "scans", COPIES), (TINY, "tiny", 100)):
            os.mkdir(name)
            subprocess.run([program, *words.split()], check=True)
            for number in range(1, copies):
                shutil.copy(f"{name}/s0.h5", f"{name}/s{number}.h5")
        size = pathlib.Path("scans/s0.h5").stat().st_size
        print(f"bytes of a scan {size}, of an image {48**3 * 8}")
        every = [f"scans/s{number}.h5" for number in range(COPIES)]
        call = {"iterations": 30, "tolerance": 0.0}
        ways = {
            "strong, 8 scans, 1 process of 1 thread": lambda: parts(program, 1, 1, every),
            "strong, 8 scans, 2 processes of 1 thread": lambda: parts(program, 2, 1, every),
            "strong, 8 scans, 1 process of 2 threads": lambda: parts(program, 1, 2, every),
            "weak, 4 scans, 1 process of 1 thread": lambda: parts(program, 1, 1, every[:4]),
            "weak, 8 scans, 2 processes of 1 thread": lambda: parts(program, 2, 1, every),
            "dask, 8 scans, 1 worker of 1 thread": lambda: dask(1, every, "cg-sense", **call),
            "dask, 8 scans, 2 workers of 1 thread": lambda: dask(2, every, "cg-sense", **call),
            "dask, 100 tiny scans, 1 worker of 1 thread": lambda: dask(1, "tiny/*.h5", "cartesian"),
            "dask, 100 tiny scans, 2 workers of 1 thread": lambda: dask(2, "tiny/*.h5", "cartesian"),
        }
        times = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, way in ways.items():
                shutil.rmtree("out", ignore_errors=True)
                times[name].append(way())
        for name, seconds in times.items():
            print(f"{name}: {statistics.median(seconds):.3f} s ({', '.join(f'{one:.3f}' for one in seconds)})")


if __name__ == "__main__":
    main()
