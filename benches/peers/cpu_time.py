"""How peers from Python are timed on a CPU: as `rayspin_lab::measure` times our own work (crates/ladders/lab/src/measure.rs).

A call warms up, another tells how many make a round of 2 ms; a round warms up; the median of 15 rounds counts, fewer where they take longer than
2 s, three at least.
"""

import math
import statistics
import time


def seconds(call, clock=time.perf_counter):
    """Of `call(turn)`, which is given 0, 1, 2 … so that it can take buffers by turns."""
    turn = 0

    def many(runs):
        nonlocal turn
        start = clock()
        for _ in range(runs):
            call(turn)
            turn += 1
        return clock() - start

    many(1)
    runs = min(1000, max(1, math.ceil(2e-3 / max(many(1), 1e-7))))
    if runs > 1:
        many(runs)
    times, end = [], time.perf_counter() + 2
    while len(times) < 15 and (len(times) < 3 or time.perf_counter() < end):
        times.append(many(runs) / runs)
    return statistics.median(times)
