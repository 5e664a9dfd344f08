"""A Rayspin benchmark and OpenCV, the same threads, in turn on the same machine.

Each round runs all once, one after the other, timed alike (`cpu_time.py`); the table shows the best and the median over rounds of each one's
median, and the median of the ratios. With --processor-time, which is for one thread on a machine that others use, too, times are those
that the processor gave: Rayspin's the mean of a round, OpenCV's the median.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import cpu_time
import cv2

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "target" / "release" / "examples"
PROCESSOR_TIME = "--processor-time" in sys.argv
CLOCK = time.process_time if PROCESSOR_TIME else time.perf_counter


def rayspin(bench, threads):
    command = [EXAMPLES / bench, str(threads)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [(row["name"], row["cpu_ms" if PROCESSOR_TIME else "ms"]) for row in map(json.loads, lines)]


def take(bench, what, peers):
    """Times the example `bench` and what `peers()` has under the names that it prints: a call, or several by their own names."""
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    rounds, threads = (numbers + [5, 2][len(numbers) :])[:2]
    cv2.setNumThreads(threads)
    calls = peers()
    times = {}
    for _ in range(rounds):
        for name, ms in rayspin(bench, threads):
            peer = calls[name]
            for kind, call in peer.items() if isinstance(peer, dict) else [("", peer)]:
                times.setdefault(f"{name}{kind}", []).append((ms, 1e3 * cpu_time.seconds(lambda _: call(), CLOCK)))
    print(f"{what:>26} {'Rayspin ms':>20} {'OpenCV ms':>20} OpenCV / Rayspin")
    for name, pairs in times.items():
        ours, theirs = zip(*pairs)
        cells = [f"{min(t):.2f} ({statistics.median(t):.2f})" for t in (ours, theirs)]
        print(f"{name:>26} {cells[0]:>20} {cells[1]:>20} {statistics.median(y / x for x, y in pairs):>16.2f}")
    print(f"best (median) of {rounds} rounds; OpenCV {cv2.__version__}, {threads} threads")
