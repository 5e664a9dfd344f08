"""Tables of NUFFTs, direct sums and FFTs."""

import re

from performance import raw
from performance.table import H100, count, number, seconds, size, table

# Transforms at equal errors


def transforms(t, columns):
    """Times of three programs; the ratios of the raw file, and the first column of its own."""
    t.row(f"ms: {' / '.join(columns)}", "Rayspin", "FINUFFT", "ducc0", "errors", "ratio 1", "ratio 2")
    programs = "Rayspin", "FINUFFT", "ducc0"
    for problem, found in raw.nufft_cpu(t.text).items():
        grid, samples, rest = problem.split(", ", 2)
        rest = re.sub(r" 1e-0?(\d+)", r" at 1e-\1", re.sub(r" x (\d+)$", r", \1 images", rest))
        name = f"{size(grid)}, {count(int(float(samples)))} points, {rest}"
        ours, *peers = (found[program][columns[0]] for program in programs)
        times = [" / ".join(number(found[program][column]) for column in columns) for program in programs]
        if t.compare(min(peers) / ours, f"{columns[0]} alone", name):
            times[0] = f"**{number(ours)}**{times[0].removeprefix(number(ours))}"
        errors = ", ".join(f"{found[program]['error']:.1e}" for program in programs)
        t.row(name, *times, errors, *(t.ratio(ratio, f"{columns[0]} and type {i}", name) for i, ratio in enumerate(found["Rayspin"]["ratios"], 1)))


@table(
    "2026-11-22-epyc-2/nufft.txt",
    "Two threads of an AMD EPYC (Zen 5, AVX-512); FINUFFT 2.6.0-dev and ducc0 0.42.0, compiled for the processor",
    "python benches/peers/nufft.py 3 2",
    "Best of three rounds. The ratio is the median over the rounds, for points and one transform, with the faster peer. A time for points is bold "
    "where a peer is faster. Other programs were compiled beside the rows from 10⁷ points at 1e-3 on.",
)
def nufft_epyc(t):
    transforms(t, ["points", "type 1", "type 2"])


@table(
    "2026-11-22-xeon-2/nufft.txt",
    "Two threads of an Intel Xeon (AVX-512); FINUFFT of commit 9810998d and ducc0 0.42.0, compiled for the processor",
    "python benches/peers/nufft.py 3 2 0 4; python benches/peers/nufft.py 3 2 2 6",
    "Best of three rounds. The ratio is the median over the rounds, for a new plan and one transform, with the faster peer. A time for a "
    "plan is bold where a peer is faster.",
    build="an earlier build than in the table above",
)
def nufft_xeon(t):
    transforms(t, ["plan", "type 1", "type 2"])


@table(
    "2026-11-21-xeon-16/scaling.txt",
    "16 cores of an Intel Xeon; FINUFFT 2.5.1",
    "python benches/peers/scaling.py 0.5",
    "Milliseconds, Rayspin / FINUFFT; a pair is bold where FINUFFT is faster.",
)
def nufft_threads(t):
    threads = 1, 2, 4, 8, 16
    t.row("NUFFT", *(f"{n} thread{'s' * (n > 1)}" for n in threads))
    for problem, found in raw.scaling(t.text).items():
        if "FINUFFT" in found:
            name, cells = problem.removeprefix("NUFFT ").replace("1e6", "10⁶"), []
            for n, ours, peer in zip(threads, found["Rayspin"], found["FINUFFT"], strict=True):
                lost = t.compare(peer / ours, "a plan" if name.endswith("plan") else "a transform", f"{name}, {n} threads")
                cells.append(f"**{number(ours)} / {number(peer)}**" if lost else f"{number(ours)} / {number(peer)}")
            t.row(name, *cells)


PROBLEMS = {
    "a128": "128³, 10⁷ uniform points",
    "a64": "64³, 10⁶ uniform points",
    "a256": "256³, 2·10⁷ uniform points",
    "b16": "128³, 10⁶ uniform points, 16 coils",
    "c1": "128³, kooshball of 20,000 × 256",
    "c16": "128³, kooshball of 20,000 × 256, 16 coils",
    "d12u": "256², 102,912 uniform points, 12 coils",
    "d12r": "256², radial 402 × 512, 12 coils",
    "e512": "512², 5·10⁶ uniform points",
    "e256": "256², 102,912 uniform points",
    "f512": "512², 10⁶ uniform points",
    "g128": "128³, 10⁶ uniform points",
    "g512": "512², 10⁶ uniform points",
    "h1": "128³, 10⁶ uniform points",
}
DOUBLE = "g128", "g512"
BEST = (
    "Milliseconds, types 1 / 2. Both programs run in CUDA graphs, cuFINUFFT at its fastest method, upsampling and batch. A plan is a new plan with its "
    "points, which come from the host; `setpts` takes points in the GPU's memory."
)


def nufft_gpu(t):
    t.row("problem", "Rayspin", "cuFINUFFT", "ratio 1", "ratio 2", "errors of Rayspin", "of cuFINUFFT", "plan of Rayspin", "of cuFINUFFT", "its `setpts`")
    for key, found in raw.nufft_gpu(t.text):
        problem, digits = key.split("-")
        name = f"{PROBLEMS[problem]}, {'f64' if problem in DOUBLE else 'f32'} at 1e-{digits}"
        times = (" / ".join(number(float(time)) for time in found[who]) for who in ("ours", "peer"))
        ratios = (t.ratio(ratio, f"type {i}", name) for i, ratio in enumerate(found["ratios"], 1))
        t.row(name, *times, *ratios, found["errors"], found["peer errors"], found["plan"], *found["peer plan"].split("; "))


@table("2026-11-22-h100/nufft.txt", f"{H100}; cuFINUFFT 2.5.1, compiled for the GPU", "python3 benches/peers/nufft_gpu.py nufft_gpu_bench", BEST)
def nufft_h100(t):
    nufft_gpu(t)


@table(
    "2026-11-22-h200/nufft.txt",
    "One NVIDIA H200; cuFINUFFT 2.5.1, compiled for the GPU",
    "python3 benches/peers/nufft_gpu.py nufft_gpu_bench d12u-3 d12r-3 e512-4 e256-4 f512-3 g128-9 g512-9 h1-3",
    BEST,
)
def nufft_h200(t):
    nufft_gpu(t)


# New points of a plan

STEPS = {"new": "new plan", "setpts": "`setpts`", "+type 1": "`setpts` and type 1", "+type 2": "`setpts` and type 2"}
POINTS = "The tolerance is 1e-4; errors were not made equal. Milliseconds, Rayspin / peer: ratio. Medians of seven rounds or more."


def points(t, peer):
    t.row("points", "arrays", *STEPS.values())
    for (grid, samples, data, arrays), found in raw.points(t.text).items():
        name, cells = f"{count(samples)} in {size(grid)}", []
        for step, label in STEPS.items():
            (ours,), (theirs,) = found["Rayspin"][step], found[peer][step]
            cells.append(f"{number(ours)} / {number(theirs)}: {t.ratio(theirs / ours, label, f'{name}, {arrays}, {data}')}")
        t.row(name, f"{arrays}, {data}", *cells)


EPYC = "Two threads of an AMD EPYC (AVX-512); FINUFFT of commit 9810998d"


@table("2026-11-29-epyc-2/points.txt", f"{EPYC}, compiled for the processor", "python benches/peers/points.py cpu 2", POINTS)
def points_epyc(t):
    points(t, "finufft")


XEON = "Two threads of an Intel Xeon (Sapphire Rapids); FINUFFT of commit 9810998d"


@table("2026-11-27-h100/points_cpu.txt", f"{XEON}, compiled for the processor", "taskset -c 0,1 python benches/peers/points.py cpu 2", POINTS)
def points_xeon(t):
    points(t, "finufft")


BOTH = "The tolerance is 1e-4; errors were not made equal."


def points_both(t):
    ratios = {}
    for (grid, samples, _, _), found in raw.points(t.text).items():
        for step in ("+type 1", "+type 2"):
            runs = zip(found["Rayspin"][step], found["finufft"][step], found["ducc0"][step], strict=True)
            ratios.setdefault(f"{count(samples)} in {size(grid)}", {}).setdefault(step, []).extend(min(peers) / ours for ours, *peers in runs)
    t.row("points", *(STEPS[step] for step in ("+type 1", "+type 2")))
    for name, steps in ratios.items():
        t.row(name, *(f"{t.ratio(min(values), STEPS[step], name)} to {max(values):.2f}×" for step, values in steps.items()))


@table(
    "2026-11-29-epyc-2/points.txt",
    f"{EPYC} and ducc0 0.42.0, compiled for the processor",
    "python benches/peers/points.py cpu 2",
    f"Ratios to the faster of both peers; ranges are over both precisions. {BOTH}",
)
def points_ducc0_epyc(t):
    points_both(t)


@table(
    "2026-11-27-h100/points_ducc0.txt",
    f"{XEON} and ducc0 0.42.0, compiled for the processor",
    "taskset -c 0,1 python benches/peers/points.py cpu 2; taskset -c 2,3 python benches/peers/points.py cpu 2",
    f"Ratios to the faster of both peers; ranges are over both runs and both precisions. {BOTH}",
)
def points_ducc0(t):
    points_both(t)


@table(
    "2026-11-27-h100/points.txt",
    f"{H100} with 16 Xeon cores; cuFINUFFT 2.5.1, compiled for the GPU",
    "python benches/peers/points.py cuda",
    POINTS,
)
def points_h100(t):
    points(t, "cufinufft")


@table(
    "2026-11-27-h100/learned.txt",
    f"{H100}; mri-nufft 1.5.1 with cuFINUFFT 2.5.1, torchkbnufft 1.5.2",
    "python benches/peers/learned.py",
    "128³ voxels to 10⁶ new points (type 2), and the gradients of image and points. Rayspin and mri-nufft have the tolerance 1e-4, torchkbnufft its "
    "defaults, whose error is larger.",
)
def learned(t):
    rows = re.findall(r"^(\w[\w-]*)\s+([\d.]+) ms \((.*)\)", t.text, re.MULTILINE)
    t.row("an iteration of a learned trajectory", "median", "least to largest", "peer / Rayspin")
    for program, ms, ends in rows:
        ratio = "" if program == "Rayspin" else t.ratio(float(ms) / float(rows[0][1]), "time", program)
        t.row(program, f"{number(float(ms))} ms", f"{ends} ms", ratio)


# Direct sums


@table(
    "2026-11-21-h100/nudft_wgmma.txt",
    H100,
    "nudft_gpu 128x128x128 65536 VARIANT",
    "Q and Fᴴd of 128³ voxels and 65,536 samples by sums over all pairs; medians. The last rows are matrix products of torch by cuBLAS, a part of that "
    "work: one multiply-add for each pair, without the phases.",
)
def direct_sums(t):
    t.row("128³ voxels, 65,536 samples", "time", "pairs a second", "error")
    body = raw.part(t.text, "| variant", "matrix [256, 256]")
    for variant, operation, times, rate, error in re.findall(r"\| (gpu-\S+ f\d\d) \| (\w+) \| \d+ \| (.*?) \| (\S+) \| (\S+) \|", body):
        t.row(f"Rayspin `{variant}`, {'Q' if operation == 'Q' else 'Fᴴd'}", f"{number(float(times.split()[0]))} ms", rate, error)
    for kind, fast, ms, rate in re.findall(r"torch\.(\w+)\s+tf32=(\w+) \S+: ([\d.]+) ms, (\S+) multiply-adds", t.text):
        t.row(f"cuBLAS, {kind}{' as TF32' * (fast == 'True')}, the product alone", f"{number(float(ms))} ms", rate.replace("e+", "e"), "")


@table(
    "2026-11-21-h100/direct.txt",
    H100,
    "cargo run -p rayspin-solve --example direct_gpu",
    "Q, the kernel of its convolution, Fᴴd and conjugate gradients of 128³ voxels and 400,000 samples. The first run compiles kernels.",
    build="a development build of that day",
)
def direct_solution(t):
    t.row("run", "Q", "kernel", "Fᴴd", "10 iterations", "all")
    for run, *times in re.findall(r"\| (first|second|third) \| " + r"([\d.]+) \| " * 5, t.text):
        t.row(run, *(seconds(float(time)) for time in times))


# FFTs


@table(
    "2026-11-22-epyc-2/fft.txt",
    "Two threads of an AMD EPYC (Zen 5, AVX-512); FFTW 3.3.10 and ducc0 0.42.0, compiled for the processor, SciPy 1.17.1 as its wheel",
    "python benches/peers/fft.py 3 2",
    "Complex64, milliseconds. Best of three rounds.",
)
def fft_cpu(t):
    peers = ("FFTW", "ducc0", "SciPy")
    t.row("FFT", "Rayspin", *peers, *(f"{peer} / Rayspin" for peer in peers))
    for problem, times, ratios in raw.fft_cpu(t.text):
        *many, grid = problem.split(" x ")
        name = " of ".join([*many, size(grid)])
        t.row(name, *(number(times[program]) for program in ("Rayspin", *peers)), *(t.ratio(ratios[peer], peer, name) for peer in peers))


def gpu_fft(t, operator):
    for kind, problem, ours, peer in raw.gpu_fft(t.text):
        if kind == operator:
            shape = re.search(r"\[(.*)\]", problem)
            name = problem.replace(shape[0], size(shape[1])).replace(" x ", " × ").replace(" 1 × ", " ")
            t.row(name, seconds(ours * 1e-6), seconds(peer * 1e-6), t.ratio(peer / ours, "cuFFT", name))


CUFFT = "2026-11-22-h100/fft.txt", f"{H100}; cuFFT 12.0 of CUDA 13.0", "gpu_fft"


@table(*CUFFT, "Arrays lie on the GPU.")
def fft_gpu(t):
    t.row("FFT", "Rayspin", "cuFFT", "cuFFT / Rayspin")
    gpu_fft(t, "fft")


@table(*CUFFT, "Rayspin computes the normal operator of SENSE. cuFFT computes only the FFTs of the doubled grids.")
def toeplitz_gpu(t):
    t.row("normal operator by Toeplitz", "Rayspin", "cuFFT, its FFTs alone", "cuFFT / Rayspin")
    gpu_fft(t, "toeplitz")
