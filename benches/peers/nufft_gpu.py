"""cuFINUFFT beside Rayspin on one GPU, problem by problem: python nufft_gpu.py path/to/nufft_gpu_bench [NAME...]

Needs torch (arrays, timing, exact sums) and cufinufft, compiled by `cufinufft.sh`, or its wheel. Both programs take points and data of the same kinds, in the GPU's memory, the same arrays
in every call. `gpu_time.py` says how they are timed, in a graph, which leaves out what a call costs the host, and in a stream.

cuFINUFFT has the fastest of its settings: all methods for the type, upsampling 2 and 1.25, of a batch 1, 4, 8 or all items at once, each at
the loosest tolerance whose error is not above the problem's, or not above Rayspin's error where that is larger. Where no setting is as exact,
the most exact one counts. Errors are of 20 random outputs against exact sums, of a batch of the first item.

"plan" is the wall clock of a new plan with its points from arrays of the host, of f64 for Rayspin and of the transform's precision for
cuFINUFFT; "setpts" that of new points of a plan, which are in the GPU's memory. Both are the best of two, of cuFINUFFT the longer one of
its two types: Rayspin's plan serves both.
"""

import pathlib
import re
import subprocess
import sys
import time

import torch  # isort: skip; first, since it loads the libraries of CUDA that cufinufft needs
import cufinufft
import gpu_time
import numpy as np

CUBE = (128, 128, 128)
KOOSH = ("radial", 20_000, 256)
PROBLEMS = [
    ("a128-3", CUBE, ("uniform", 10_000_000), 1, 1e-3, False),
    ("a128-5", CUBE, ("uniform", 10_000_000), 1, 1e-5, False),
    ("a64-3", (64, 64, 64), ("uniform", 1_000_000), 1, 1e-3, False),
    ("a64-5", (64, 64, 64), ("uniform", 1_000_000), 1, 1e-5, False),
    ("a256-3", (256, 256, 256), ("uniform", 20_000_000), 1, 1e-3, False),
    ("a256-5", (256, 256, 256), ("uniform", 20_000_000), 1, 1e-5, False),
    ("b16-3", CUBE, ("uniform", 1_000_000), 16, 1e-3, False),
    ("b16-5", CUBE, ("uniform", 1_000_000), 16, 1e-5, False),
    ("c1-3", CUBE, KOOSH, 1, 1e-3, False),
    ("c16-3", CUBE, KOOSH, 16, 1e-3, False),
    ("d12u-3", (256, 256), ("uniform", 102_912), 12, 1e-3, False),
    ("d12r-3", (256, 256), ("radial", 402, 512), 12, 1e-3, False),
    ("e512-4", (512, 512), ("uniform", 5_000_000), 1, 1e-4, False),
    ("e256-4", (256, 256), ("uniform", 102_912), 1, 1e-4, False),
    ("f512-3", (512, 512), ("uniform", 1_000_000), 1, 1e-3, False),
    ("g128-9", CUBE, ("uniform", 1_000_000), 1, 1e-9, True),
    ("g512-9", (512, 512), ("uniform", 1_000_000), 1, 1e-9, True),
    ("h1-3", CUBE, ("uniform", 1_000_000), 1, 1e-3, False),
]
GPU = torch.device("cuda")
SINGLE, DOUBLE = (torch.float32, torch.complex64, "complex64"), (torch.float64, torch.complex128, "complex128")
CHECKED = 20


def points(kind, dims, generator):
    """Radians per voxel, [dim][point], in f64; the components in the order of the axes of the modes."""
    if kind[0] == "uniform":
        return 2 * np.pi * (torch.rand(dims, kind[1], dtype=torch.float64, device=GPU, generator=generator) - 0.5)
    _, spokes, readout = kind
    i = torch.arange(spokes * readout, device=GPU)
    spoke, radius = (i // readout).double(), (i % readout).double() / readout - 0.5
    angle = spoke * (np.pi * (np.sqrt(5) - 1))
    up = (spoke + 0.5) / spokes if dims == 3 else torch.zeros_like(spoke)
    flat = torch.sqrt(1 - up * up)
    x, y = radius * torch.cos(angle) * flat, radius * torch.sin(angle) * flat
    return 2 * np.pi * torch.stack([radius * up, y, x] if dims == 3 else [y, x])


def phases(k, modes, sign, indices=None):
    """e^{i sign k·x} of some points k at the voxels `indices`, or of all voxels."""
    axes = [torch.arange(n, device=GPU, dtype=torch.float64) - n // 2 for n in modes]
    if indices is None:
        total = torch.ones(1, dtype=torch.complex128, device=GPU)
        for axis, component in zip(axes, k):
            total = (total[..., None] * torch.exp(1j * sign * component * axis)).reshape(-1)
        return total
    at = torch.zeros(k.shape[1], dtype=torch.float64, device=GPU)
    for axis, component, index in zip(axes, k, indices):
        at = at + component * axis[index]
    return torch.exp(1j * sign * at)


class Problem:
    """One problem's arrays and exact outputs for one type, the same for every setting."""

    def __init__(self, kind, modes, points_of, coils, double):
        generator = torch.Generator(device=GPU).manual_seed(1)
        self.kind, self.modes, self.coils = kind, modes, coils
        self.real, self.complex, self.name = DOUBLE if double else SINGLE
        k = points(points_of, len(modes), generator)
        self.k = [component.to(self.real).contiguous() for component in k]
        self.host = [component.cpu().numpy() for component in self.k]
        count = k.shape[1]
        del k
        batch = (coils,) if coils > 1 else ()
        shapes = {1: ((*batch, count), (*batch, *modes)), 2: ((*batch, *modes), (*batch, count))}[kind]
        self.give = torch.randn(shapes[0], dtype=self.complex, device=GPU, generator=generator)
        self.out = torch.zeros(shapes[1], dtype=self.complex, device=GPU)
        first = (self.give[0] if batch else self.give).to(torch.complex128)
        wide = torch.stack([component.double() for component in self.k])
        size = int(np.prod(modes)) if kind == 1 else count
        self.at = torch.randint(size, (CHECKED,), device=GPU, generator=generator)
        exact = []
        for at in self.at.tolist():
            if kind == 1:
                exact.append((first * phases(wide, modes, 1, np.unravel_index(at, modes))).sum())
            else:
                exact.append((first.reshape(-1) * phases(wide[:, at], modes, -1)).sum())
        self.exact = torch.stack(exact)

    def plan(self, asked, options):
        stream = torch.cuda.current_stream().cuda_stream
        return cufinufft.Plan(
            self.kind, self.modes, n_trans=self.coils, eps=asked, dtype=self.name, gpu_stream=stream, **options
        )

    def error(self, plan):
        self.out.fill_(float("nan"))
        plan.execute(self.give, self.out)
        torch.cuda.synchronize()
        found = (self.out[0] if self.coils > 1 else self.out).reshape(-1)[self.at].to(torch.complex128)
        error = float(torch.linalg.norm(found - self.exact) / torch.linalg.norm(self.exact))
        return error if error == error else float("inf")

    def time(self, plan, rounds=gpu_time.ROUNDS):
        """Milliseconds in a graph, where that can be captured, and in a stream."""
        graph, stream = gpu_time.timed(lambda _: plan.execute(self.give, self.out), rounds=rounds)
        return (None if graph is None else 1e3 * graph), 1e3 * stream

    def loosest(self, target, options):
        """The loosest tolerance that meets the target and its error, else the most exact one found; None where the setting is refused."""
        best = None
        asked = 3 * target
        while asked > target / 20:
            try:
                plan = self.plan(asked, options)
                plan.setpts(*self.k)
                error = self.error(plan)
            except RuntimeError:
                return best
            if best is None or error < best[1]:
                best = (asked, error)
            if error <= target:
                break
            asked /= 1.5
        return best

    def fastest(self, target):
        """Of all settings: milliseconds in a graph and in a stream, error, tolerance asked and options."""
        found = []
        for method in (1, 2, 3) if self.kind == 1 else (1, 2):
            for upsampling in (2.0, 1.25):
                options = {"gpu_method": method, "upsampfac": upsampling}
                loosest = self.loosest(target, options)
                if loosest is None:
                    continue
                for batch in sorted({1, min(4, self.coils), min(8, self.coils), self.coils}):
                    options = {**options, "gpu_maxbatchsize": batch}
                    try:
                        plan = self.plan(loosest[0], options)
                        plan.setpts(*self.k)
                        graph, stream = self.time(plan, rounds=3)
                    except RuntimeError:
                        continue
                    met = loosest[1] <= target
                    found.append(((not met, 0 if met else loosest[1], stream if graph is None else graph), loosest, options))
        if not found:
            raise RuntimeError("no setting runs")
        _, (asked, error), options = min(found, key=lambda one: one[0])
        plan = self.plan(asked, options)
        plan.setpts(*self.k)
        return self.time(plan), error, asked, options

    def plan_ms(self, asked, options):
        """A new plan with points of the host, and new points of a plan."""
        new, again = [], []
        for _ in range(2):
            torch.cuda.synchronize()
            start = time.perf_counter()
            plan = self.plan(asked, options)
            plan.setpts(*(torch.from_numpy(component).to(GPU) for component in self.host))
            torch.cuda.synchronize()
            new.append(1e3 * (time.perf_counter() - start))
            start = time.perf_counter()
            plan.setpts(*self.k)
            torch.cuda.synchronize()
            again.append(1e3 * (time.perf_counter() - start))
            del plan
        return min(new), min(again)


def words(options):
    method = {1: "points", 2: "shared", 3: "output"}[options["gpu_method"]]
    return f"{method} σ {options['upsampfac']:g} batch {options['gpu_maxbatchsize']}"


def both(times):
    return " / ".join("–" if time is None else f"{time:.3f}" for time in times)


def exponents(errors):
    return " / ".join(f"{error:.1e}" for error in errors)


def rayspin(bench, name):
    """Milliseconds of a plan, of types 1 and 2 in a graph and in a stream, and their errors."""
    lines = subprocess.run([bench, name, "--check", str(CHECKED)], capture_output=True, text=True, check=True).stdout
    row = next(line for line in lines.splitlines() if line.startswith(name))
    found = re.search(r"plan (\S+) type1 (\S+) type2 (\S+) .* stream (\S+) (\S+) ms, errors (\S+) (\S+),", row)
    plan, *times, error1, error2 = map(float, found.groups())
    return plan, times[:2], times[2:], (error1, error2)


def main():
    bench, names = sys.argv[1], sys.argv[2:]
    built = pathlib.Path(cufinufft.__file__).parent / "built.txt"
    how = built.read_text().strip() if built.exists() else "the wheel"
    print(f"cufinufft {cufinufft.__version__}, {how}; {gpu_time.versions()}\n")
    print(
        "| problem | tolerance | Rayspin ms 1 / 2: graph; stream | errors | plan | cuFINUFFT ms 1 / 2: graph; stream | errors | settings "
        "| asked | plan; setpts | ratio 1 / 2: graph; stream |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    torch.cuda.set_stream(torch.cuda.Stream())
    for name, modes, points_of, coils, tolerance, double in PROBLEMS:
        if names and name not in names:
            continue
        plan, graphs, streams, errors = rayspin(bench, name)
        ours = f"{both(graphs)}; {both(streams)} | {exponents(errors)} | {plan}"
        try:
            theirs = []
            for kind, error in zip((1, 2), errors):
                problem = Problem(kind, modes, points_of, coils, double)
                times, found, asked, options = problem.fastest(max(tolerance, error))
                theirs.append((*times, found, words(options), f"{asked:.1e}", *problem.plan_ms(asked, options)))
                del problem
        except Exception as error:  # the peer's failure is a result too
            print(f"| {name} | {tolerance:g} | {ours} | {type(error).__name__}: {error} | | | | | |", flush=True)
            continue
        their_graphs, their_streams, found, settings, asked, new, points_again = zip(*theirs)
        # What cannot be captured is compared with our own stream.
        in_graph = [s / o if g is None else g / w for g, s, w, o in zip(their_graphs, their_streams, graphs, streams)]
        in_stream = [theirs / ours for theirs, ours in zip(their_streams, streams)]
        print(
            f"| {name} | {tolerance:g} | {ours} | {both(their_graphs)}; {both(their_streams)} | {exponents(found)} "
            f"| {', '.join(settings)} | {', '.join(asked)} | {max(new):.1f}; {max(points_again):.1f} "
            f"| {in_graph[0]:.2f} / {in_graph[1]:.2f}; {in_stream[0]:.2f} / {in_stream[1]:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
