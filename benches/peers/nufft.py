"""NUFFT of Rayspin beside FINUFFT and ducc0 at equal measured error, in turn on the same machine.

    benches/peers/build.sh && cargo build --release -p rayspin-kernels --example nufft_bench
    .tools/bench/bin/python benches/peers/nufft.py [rounds] [threads] [numbers of problems, from 0]

Each program gets the loosest tolerance whose measured error is not above the target; the search starts at three times the target and divides by
1.25. FINUFFT runs at whichever of its upsampling factors (its own choice, 2, 1.25) is fastest there, plan included. Errors are relative l2 errors of
random outputs, in both types, against direct f64 sums over the same inputs. Points are uniform and random.

Each round runs the three programs one after the other. A program plans five times, gives the plan its points five times again, executes each type
once to warm up and five times more; its best counts. The table shows the best over the rounds. "Plan" makes a plan with its points. "Points" is all
that is done once a trajectory: Rayspin's `set_points` and FINUFFT's `setpts` on a plan that is there; ducc0 has no such call, so its plan. "Both" is
points and one transform. The last column is the time of the better peer over ours for "both", the median over the rounds. A batch (x 8) is
transformed in one call.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import ducc0
import finufft
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "target" / "release" / "examples" / "nufft_bench"
RUNS = 5
CHECK = 40
SQUARE, CUBE = (512, 512), (128, 128, 128)
# Matrix, points, precision, target error, batch.
PROBLEMS = [
    (SQUARE, 1_000_000, "f32", 1e-3, 1),
    (SQUARE, 1_000_000, "f32", 1e-5, 1),
    (SQUARE, 1_000_000, "f64", 1e-9, 1),
    ((256, 256), 205_824, "f32", 1e-3, 1),
    (CUBE, 1_000_000, "f32", 1e-3, 1),
    (CUBE, 1_000_000, "f32", 1e-5, 1),
    (CUBE, 1_000_000, "f64", 1e-9, 1),
    (CUBE, 10_000_000, "f32", 1e-3, 1),
    (CUBE, 10_000_000, "f32", 1e-5, 1),
    (SQUARE, 1_000_000, "f32", 1e-3, 8),
    (CUBE, 1_000_000, "f32", 1e-3, 8),
]


def best(call, runs=RUNS):
    """Least milliseconds of `runs` calls, and what the last one returned."""
    least = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        result = call()
        least = min(least, (time.perf_counter() - start) * 1e3)
    return least, result


class Inputs:
    """One problem's points, samples and image, and exact results at random places."""

    def __init__(self, problem):
        self.matrix, self.points, precision, self.target, self.batch = problem
        self.real, self.complex = {"f32": (np.float32, np.complex64), "f64": (np.float64, np.complex128)}[precision]
        rng = np.random.default_rng(1)
        self.x = [rng.uniform(-np.pi, np.pi, self.points).astype(self.real) for _ in self.matrix]
        self.rows = np.stack(self.x, axis=-1)

        def random(shape):
            parts = [rng.uniform(-0.5, 0.5, shape).astype(self.real) for _ in range(2)]
            return parts[0] + self.complex(1j) * parts[1]

        batch = (self.batch,) if self.batch > 1 else ()
        self.values = {1: random((*batch, self.points)), 2: random((*batch, *self.matrix))}
        voxels = rng.integers(0, np.prod(self.matrix), CHECK)
        samples = rng.integers(0, self.points, CHECK)
        self.which = {1: voxels, 2: samples}
        modes = [i - n // 2 for i, n in zip(np.unravel_index(voxels, self.matrix), self.matrix)]
        x64 = [x.astype(np.float64) for x in self.x]
        first = {kind: values[0] if batch else values for kind, values in self.values.items()}
        data = first[1].astype(np.complex128)
        exact1 = [np.sum(data * np.exp(1j * sum(m[v] * x for m, x in zip(modes, x64)))) for v in range(CHECK)]
        image = first[2].astype(np.complex128)
        exact2 = []
        for j in samples:
            value = image
            for x in reversed([x[j] for x in x64]):
                n = value.shape[-1]
                value = value @ np.exp(-1j * x * (np.arange(n) - n // 2))
            exact2.append(value)
        self.exact = {1: np.array(exact1), 2: np.array(exact2)}

    def error(self, kind, result):
        found = result.ravel()[self.which[kind]]
        return np.linalg.norm(found - self.exact[kind]) / np.linalg.norm(self.exact[kind])


class Rayspin:
    settings = [{}]

    def __init__(self, inputs, threads):
        self.words = [BENCH, "--matrix", ",".join(map(str, inputs.matrix)), "--points", inputs.points]
        self.words += ["--precision", {4: "f32", 8: "f64"}[np.dtype(inputs.real).itemsize], "--batch", inputs.batch, "--threads", threads]

    def measure(self, tolerance, check, runs=RUNS):
        words = [*self.words, "--tolerance", tolerance, "--plans", runs, "--runs", runs, "--check", CHECK if check else 0]
        out = json.loads(subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout)
        errors = max(out["type1_error"], out["type2_error"])
        return {"plan": out["plan_ms"], "points": out["points_ms"], 1: out["type1_ms"], 2: out["type2_ms"], "error": errors, "how": f"σ {out['upsampling']} W {out['width']}"}


class Finufft:
    settings = [{}, {"upsampfac": 2.0}, {"upsampfac": 1.25}]

    def __init__(self, inputs, threads):
        self.inputs, self.threads = inputs, threads

    def measure(self, tolerance, check, runs=RUNS, **options):
        given, out = self.inputs, {"error": 0.0, "how": f"σ {options.get('upsampfac', 'own')}"}
        plans, points = [], []
        for kind, sign in ((1, 1), (2, -1)):

            def make():
                plan = finufft.Plan(
                    kind, given.matrix, given.batch, tolerance, sign, dtype=given.complex, nthreads=self.threads, **options
                )
                plan.setpts(*given.x)
                return plan

            least, plan = best(make, runs)
            plans.append(least)
            points.append(best(lambda: plan.setpts(*given.x), runs)[0])
            result = np.empty(given.values[3 - kind].shape, given.complex)
            plan.execute(given.values[kind], result)
            if check:
                out["error"] = max(out["error"], given.error(kind, result))
            out[kind], _ = best(lambda: plan.execute(given.values[kind], result), runs)
        out["plan"], out["points"] = min(plans), min(points)
        return out


class Ducc0:
    settings = [{}]

    def __init__(self, inputs, threads):
        self.inputs, self.threads = inputs, threads

    def measure(self, tolerance, check, runs=RUNS):
        given, out = self.inputs, {"error": 0.0, "how": ""}
        plans = []
        for kind in (1, 2):

            def make():
                return ducc0.nufft.plan(
                    nu2u=kind == 1, coord=given.rows, grid_shape=given.matrix, epsilon=tolerance, nthreads=self.threads
                )

            least, plan = best(make, runs)
            plans.append(least)
            values, result = given.values[kind], np.empty(given.values[3 - kind].shape, given.complex)

            def execute():
                if kind == 1:
                    plan.nu2u(forward=False, points=values, out=result)
                else:
                    plan.u2nu(forward=True, grid=values, out=result)

            execute()
            if check:
                out["error"] = max(out["error"], given.error(kind, result))
            out[kind], _ = best(execute, runs)
        out["plan"] = out["points"] = min(plans)
        return out


def settle(program, target):
    """The setting and loosest tolerance that meet the target in the least time; where none does, those of the least error."""
    met, closest = None, None
    for options in program.settings:
        tolerance = 3 * target
        for _ in range(12):
            try:
                found = program.measure(tolerance, True, runs=2, **options)
            except (RuntimeError, ValueError, subprocess.CalledProcessError):
                break  # A tolerance that the program refuses.
            if closest is None or found["error"] < closest[0]:
                closest = found["error"], (tolerance, options, found)
            if found["error"] <= target:
                total = 2 * found["points"] + found[1] + found[2]
                if met is None or total < met[0]:
                    met = total, (tolerance, options, found)
                break
            tolerance /= 1.25
    return (met or closest)[1]


def main():
    numbers = [int(i) for i in sys.argv[1:]]
    rounds, threads = (numbers + [5, 2][len(numbers) :])[:2]
    print(f"{rounds} rounds, {threads} threads; milliseconds; ratio: the better peer over Rayspin, points and one transform")
    print(f"{'problem':>26} {'':>8} {'error':>8} {'plan':>7} {'points':>7} {'type 1':>8} {'type 2':>8} {'both 1':>8} {'both 2':>8}  ratio 1, 2; tolerance, kernel")
    for problem in [PROBLEMS[i] for i in numbers[2:]] or PROBLEMS:
        inputs = Inputs(problem)
        programs = {"Rayspin": Rayspin(inputs, threads), "FINUFFT": Finufft(inputs, threads), "ducc0": Ducc0(inputs, threads)}
        settled = {name: settle(program, problem[3]) for name, program in programs.items()}
        rows = {name: [] for name in programs}
        for _ in range(rounds):
            for name, program in programs.items():
                tolerance, options, _ = settled[name]
                rows[name].append(program.measure(tolerance, False, **options))
        title = f"{'x'.join(map(str, problem[0]))}, {problem[1] / 1e6:g}e6, {problem[2]} {problem[3]:.0e}" + (f" x {problem[4]}" if problem[4] > 1 else "")
        both = lambda row, kind: row["points"] + row[kind]
        ratios = [
            statistics.median(
                min(both(f, kind), both(d, kind)) / both(r, kind) for r, f, d in zip(rows["Rayspin"], rows["FINUFFT"], rows["ducc0"])
            )
            for kind in (1, 2)
        ]
        for name, found in rows.items():
            tolerance, _, checked = settled[name]
            least = [min(row[key] for row in found) for key in ("plan", "points", 1, 2)]
            sums = [min(both(row, kind) for row in found) for kind in (1, 2)]
            cells = " ".join(f"{value:8.2f}" for value in least[2:] + sums)
            ratio = f"{ratios[0]:5.2f} {ratios[1]:5.2f}" if name == "Rayspin" else " " * 11
            print(f"{title:>26} {name:>8} {checked['error']:8.1e} {least[0]:7.2f} {least[1]:7.2f} {cells}  {ratio}  {tolerance:.1e} {checked['how']}", flush=True)


if __name__ == "__main__":
    main()
