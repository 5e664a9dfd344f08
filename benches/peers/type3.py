"""Type 3 NUFFT of Rayspin against FINUFFT's at equal measured error, two threads each, in turn on the same machine.

    cargo build --release -p rayspin-kernels --example type3_bench
    python benches/peers/type3.py [rounds] [numbers of problems, from 0]

Positions are uniform in a box, frequencies in another; the product of their widths along an axis is the problem's extent.
Each program plans once to warm up and three times more, executes once and five times more; its best counts. Rounds are as in nufft.py. Errors
are relative l2 errors of random outputs against direct f64 sums.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import finufft
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "target" / "release" / "examples" / "type3_bench"
THREADS = 2
RUNS = 5
PLANS = 3
CHECK = 40
# Extent, positions and frequencies, precision, target error.
PROBLEMS = [
    ((512, 512), 1_000_000, "f32", 1e-3),
    ((512, 512), 1_000_000, "f32", 1e-5),
    ((512, 512), 1_000_000, "f64", 1e-9),
    ((64, 64, 64), 1_000_000, "f32", 1e-3),
    ((64, 64, 64), 1_000_000, "f32", 1e-5),
    ((64, 64, 64), 1_000_000, "f64", 1e-9),
]


def rayspin(problem, tolerance, runs, check):
    extent, points, precision, _ = problem
    words = [BENCH, "--extent", ",".join(map(str, extent)), "--positions", points, "--frequencies", points]
    words += ["--precision", precision, "--tolerance", tolerance, "--plans", PLANS, "--runs", runs, "--check", check, "--threads", THREADS]
    out = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


class Finufft:
    """One problem's inputs, the same for every tolerance and round."""

    def __init__(self, problem):
        self.extent, points, precision, self.target = problem
        self.real, self.complex = {"f32": (np.float32, np.complex64), "f64": (np.float64, np.complex128)}[precision]
        rng = np.random.default_rng(1)
        self.x = [rng.uniform(-np.pi, np.pi, points).astype(self.real) for _ in self.extent]
        self.s = [rng.uniform(-n / 2, n / 2, points).astype(self.real) for n in self.extent]
        parts = [rng.uniform(-0.5, 0.5, points).astype(self.real) for _ in range(2)]
        self.values = parts[0] + self.complex(1j) * parts[1]
        self.which = rng.integers(0, points, CHECK)
        x, values = [x.astype(np.float64) for x in self.x], self.values.astype(np.complex128)
        self.exact = np.array(
            [np.sum(values * np.exp(-1j * sum(float(s[j]) * x for s, x in zip(self.s, x)))) for j in self.which]
        )

    def run(self, tolerance, upsampling, runs):
        """Best plan and execute milliseconds, and the measured error."""
        options = {"upsampfac": upsampling} if upsampling else {}
        dims = len(self.extent)
        planned = []
        for _ in range(1 + PLANS):
            start = time.perf_counter()
            plan = finufft.Plan(3, dims, 1, tolerance, -1, dtype=self.complex, nthreads=THREADS, **options)
            plan.setpts(*self.x, *[None] * (3 - dims), *self.s)
            planned.append((time.perf_counter() - start) * 1e3)
        result = plan.execute(self.values)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            plan.execute(self.values)
            times.append((time.perf_counter() - start) * 1e3)
        error = np.linalg.norm(result[self.which] - self.exact) / np.linalg.norm(self.exact)
        return min(planned[1:]), min(times), error

    def fastest(self):
        """The error, tolerance and upsampling that meet the target in the least time; where none meets it, those of the least
        error; None where FINUFFT refuses every tolerance."""
        best = closest = None
        for upsampling in (0, 2.0, 1.25):
            tolerance = 3 * self.target
            for _ in range(8):
                try:
                    _, took, error = self.run(tolerance, upsampling, 2)
                except RuntimeError:
                    break  # A tolerance that FINUFFT refuses.
                if closest is None or error < closest[1]:
                    closest = (took, error, tolerance, upsampling)
                if error <= self.target:
                    best = min(best or (took, error, tolerance, upsampling), (took, error, tolerance, upsampling))
                    break
                tolerance /= 1.8
        chosen = best or closest
        return chosen and chosen[1:]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    problems = [PROBLEMS[int(i)] for i in sys.argv[2:]] or PROBLEMS
    print(f"{'type 3':>28} {'error':>17} {'plan ms':>15} {'execute ms':>17} {'FINUFFT / Rayspin: plan':>24} {'execute':>8}")
    for problem in problems:
        theirs = Finufft(problem)
        chosen = theirs.fastest()
        own_tolerance = 1.3 * problem[3]
        error = float("inf")
        while error > problem[3]:
            own_tolerance /= 1.3
            error = rayspin(problem, own_tolerance, 1, CHECK)["type3_error"]
        a, b = [], []
        for _ in range(rounds):
            ours = rayspin(problem, own_tolerance, RUNS, 0)
            a.append((ours["plan_ms"], ours["type3_ms"]))
            if chosen:
                b.append(theirs.run(chosen[1], chosen[2], RUNS))
        name = f"{'x'.join(map(str, problem[0]))}, {problem[1] / 1e6:g}e6, {problem[2]} {problem[3]:.0e}"
        own = [min(x[i] for x in a) for i in range(2)]
        if chosen is None:
            print(f"{name:>28} {f'{error:.1e}':>17} {own[0]:>15.1f} {own[1]:>17.1f}  FINUFFT refuses this tolerance", flush=True)
            continue
        their_error, tolerance, upsampling = chosen
        columns = [f"{own[i]:.1f} / {min(x[i] for x in b):.1f}" for i in range(2)]
        ratios = [statistics.median(y[i] / x[i] for x, y in zip(a, b)) for i in range(2)]
        print(
            f"{name:>28} {f'{error:.1e} / {their_error:.1e}':>17} {columns[0]:>15} {columns[1]:>17}"
            f" {ratios[0]:>24.2f} {ratios[1]:>8.2f}",
            flush=True,
        )
        print(
            f"{'':>28} Rayspin: tolerance {own_tolerance:.1e}; FINUFFT: tolerance {tolerance:.1e},"
            f" upsampling {upsampling or 'own'}",
            flush=True,
        )
    print(f"Rayspin / FINUFFT {finufft.__version__}, {THREADS} threads, {rounds} rounds")


if __name__ == "__main__":
    main()
