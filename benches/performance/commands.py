"""Tables of calls, whole commands, first runs and memory."""

import re
import statistics

from performance import raw
from performance.table import H100, number, seconds, span, table, title

# Calls

BESIDE = "2026-11-25-h100/python_beside_rust.txt"
VERSIONS = "SigPy 0.1.27, torchkbnufft 1.5.2, torch 2.11.0"
CALL = 'Medians of seven rounds. "Error" is against a transform in double precision. SigPy and torchkbnufft run at their defaults, the others at 1e-4.'


def calls(t, text):
    names = {"small": "16², 4 points", "12 x 256^2": "12 images of 256², 200,000 points"}
    t.row("type 2", "library", "arrays", "time", "error", "peer / Rayspin")
    for problem, rows in raw.calls(text).items():
        ours = {arrays: time for library, arrays, time, _ in rows if library == "Rayspin"}
        for library, arrays, time, error in rows:
            peer = library not in ("Rayspin", "Rust")
            ratio = t.ratio(time / ours[arrays], names[problem], f"{library}, {arrays}") if peer else ""
            t.row(names[problem], {"Rust": "Rayspin from Rust"}.get(library, library), arrays, seconds(time), error, ratio)


@table("2026-11-29-h200/arrays.txt", "One NVIDIA H200 with 16 cores, the middle one of the three runs of the raw file", "python benches/peers/arrays.py cuda", CALL)
def calls_gpu_now(t):
    calls(t, t.text)


@table("2026-11-27-h100/arrays.txt", f"{H100}; cuFINUFFT 2.5.1, compiled for the GPU", "python benches/peers/arrays.py cuda", CALL)
def calls_gpu(t):
    calls(t, t.text)


@table(
    "2026-11-26-h100/python_arrays.txt",
    f"{H100}, another machine; cuFINUFFT 2.5.1, compiled for the GPU; {VERSIONS}, CuPy 14.2.0",
    "python benches/peers/arrays.py cuda",
    CALL,
)
def calls_gpu_peers(t):
    calls(t, t.text)


@table(
    BESIDE,
    f"16 Xeon cores; finufft 2.5.1, {VERSIONS}, all as wheels",
    "./nufft_calls cuda; ./cardiac_calls cardiac_radial_12ch.h5 cuda; python benches/peers/arrays.py cuda; the same with cpu",
    CALL,
)
def calls_cpu(t):
    calls(t, raw.part(t.text, "cpu", "#"))


@table("2026-11-29-h200/arrays_cpu.txt", "16 cores beside an NVIDIA H200; finufft 2.5.1 as a wheel", "python benches/peers/arrays.py cpu", CALL)
def calls_cpu_now(t):
    calls(t, t.text)


@table(
    BESIDE,
    H100,
    "./cardiac_calls cardiac_radial_12ch.h5 cuda; the function cardiac of arrays.py, four times; and once more",
    "15 iterations of CG-SENSE of the cardiac scan, from arrays to arrays. Medians.",
    build="the second build of the raw file",
)
def calls_cardiac(t):
    t.row("language", "runs", "from arrays to arrays", "stages of the reconstruction")
    for language, pairs in raw.cardiac_calls(raw.part(t.text, "# $ ./cardiac_calls")).items():
        t.row(language, len(pairs), *(f"{number(statistics.median(pair[i] for pair in pairs))} ms" for i in (0, 1)))


# Whole commands

RAM_DISK = f"{H100} with 16 Xeon cores, files on a RAM disk"


@table(
    "2026-11-27-h100/whole_commands.txt",
    f"{RAM_DISK}, two machines",
    "rayspin recon mri SCAN -m cg-sense -i 30 --device cuda -o o.npy --no-record -q",
    "The kooshball of 256³ has `-i 10 --tolerance 0`. The first run compiles kernels; the median has seven runs more. Stages are of another run.",
)
def commands_gpu(t):
    scans = {"cardiac": "cardiac", "128^3 x 8": "kooshball 128³, 8 coils", "256^3 x 32, 10 iterations": "kooshball 256³, 32 coils"}
    stages = "start GPU", "read", "plan", "coil sensitivities", "conjugate gradients"
    t.row("scan", "machine", "first run", "median", "least to largest", *stages)
    for machine, scan, first, median, ends, found in raw.whole_commands(t.text):
        t.row(scans[scan], machine.split()[1], seconds(first), seconds(median), f"{ends} s", *(seconds(found[stage]) for stage in stages))


@table(
    "2026-11-29-h200/whole_commands.txt",
    "One NVIDIA H200 with 16 cores, files on a RAM disk",
    'for b in new old new old; do echo "## $b"; python3 benches/whole_commands.py $b /dev/shm; done',
    "The same commands on another machine, with two later builds in turns; the medians of both turns. Stages are of the last turn. The last column is the wall "
    "clock of a process that starts the driver and leaves: a command cannot take less.",
    build="the builds of the raw file",
)
def commands_h200(t):
    scans = {"cardiac": "cardiac", "128^3 x 8": "kooshball 128³, 8 coils", "256^3 x 32, 10 iterations": "kooshball 256³, 32 coils"}
    stages = "start GPU", "read", "plan", "coil sensitivities", "conjugate gradients"
    drivers = [float(start) + float(end) for start, end in re.findall(r"driver alone: start ([\d.]+) s, end ([\d.]+) s", t.text)]
    medians, last = {}, {}
    for part in t.text.split("## ")[1:]:
        build = part.split()[0]
        for options, scan, _, median, _, found in raw.whole_commands(part):
            medians.setdefault((scan, options, build), []).append(median)
            last[scan, options, build] = found
    t.row("scan", "options", "before", "now", *stages, "driver alone")
    for scan, options in dict.fromkeys((scan, options) for scan, options, _ in medians):
        both = (", ".join(f"{median:.3f}" for median in medians[scan, options, build]) + " s" for build in ("old", "new"))
        found = last[scan, options, "new"]
        t.row(scans[scan], f"`{options}`", *both, *(seconds(found[stage]) for stage in stages), seconds(statistics.median(drivers)))


TURNS = "2026-11-25-h100/file_to_file.txt"
NOW = 'the build "now" of the raw file'


@table(
    TURNS,
    RAM_DISK,
    "rayspin -q recon mri S.h5 -o o.nii.gz -m cg-sense OPTIONS --record o.json",
    "Four runs of the first machine of the raw file, least to largest, after one that compiles kernels.",
    build=NOW,
)
def commands_virtual(t):
    stages = "read", "virtual coils", "conjugate gradients"
    runs = raw.walls_in_turns(t.text.split("# Again on another machine")[0])["c160", "now"][1:]
    t.row("scan", "wall clock", *stages)
    cells = (span([found[stage] for _, found in runs], 3, " s") for stage in stages)
    t.row("kooshball 160³, 32 coils made 12, 10 iterations", span([wall for wall, _ in runs], 3, " s"), *cells)


@table(
    TURNS,
    RAM_DISK,
    'rayspin batch "k[1-8].h5" -o "out/{stem}.nii.gz" -- -m cg-sense --tolerance 0 --iterations 30',
    "Eight copies of the kooshball of 128³ and 8 coils, on the first machine of the raw file. Its two lines of the batch do not name their builds; they are "
    "taken in the order of the file, before and now.",
    build=NOW,
)
def commands_batch(t):
    first = t.text.split("# Again on another machine")[0]
    (_, scans), (_, process) = re.findall(r"^8 scans in ([\d.]+) s", first, re.MULTILINE), re.findall(r"^real\s+0m([\d.]+)s", first, re.MULTILINE)
    t.row("scans", "time of the scans", "a scan", "whole process")
    t.row(8, f"{scans} s", seconds(float(scans) / 8), f"{number(float(process))} s")


@table(
    "2026-11-26-h100/file_to_file.txt",
    f"{H100} with 16 Xeon cores",
    "rayspin -q recon mri k128.h5 -o o.nii.gz -m cg-sense --tolerance 0 --iterations 30 --record o.json",
    "The kooshball of 128³ and 8 coils; three runs, and eight with `-m gridding`. Medians.",
)
def commands_process(t):
    rows = re.findall(r"^/dev/shm/k128.h5 wall ([\d.]+) before ([\d.]+) total ([\d.]+) stages [\d.]+ after ([\d.]+)", t.text, re.MULTILINE)
    t.row("method", "wall clock", "before the record", "in the record", "end of the process")
    for name, part in (("gridding", rows[:8]), ("CG-SENSE", rows[8:])):
        t.row(name, *(seconds(statistics.median(float(row[i]) for row in part)) for i in range(4)))


@table(
    "2026-11-24-h100/file_to_file.txt",
    RAM_DISK,
    "rayspin simulate ct --lines --rays 1 --detector 1024,1024 --views 720; recon ct -m fdk",
    "FDK of 512³ voxels from 720 views of 1024². The total is the record's.",
    build='the build "after" of the raw file',
)
def commands_fdk(t):
    stages = "read", "filter", "back-projection", "write"
    t.row("run", "total", *stages)
    lines = [line for line in raw.part(t.text, "== FDK").splitlines() if line.startswith("total")]
    for run, line in zip(("first", "second", "third"), lines, strict=True):
        found = raw.stages(line)
        t.row(run, f"{number(float(line.split()[1]))} s", *(seconds(found[stage]) for stage in stages))


@table(
    "2026-11-24-h100/file_to_file.txt",
    RAM_DISK,
    "render v.npy",
    "`rayspin render` of a volume of 512³. Wall clock of three runs of each file, in turns.",
    build='the build "before" of the raw file',
)
def commands_render(t):
    rows = re.findall(r"^render (\S+) ([\d.]+)$", t.text, re.MULTILINE)
    t.row("file", "first run", "second run", "third run")
    for file in dict.fromkeys(file for file, _ in rows):
        t.row(f"`{file}`", *(f"{time} s" for name, time in rows if name == file))


@table(
    "2026-11-26-h100/read_threads.txt",
    "16 Xeon cores beside an H100, the file in memory",
    "rayspin recon mri k128.h5 -o o.nii.gz -m gridding --device cpu --threads N --dry-run",
    "The stage `read` of a kooshball scan of 262 MB ends with the arrays that the next stage takes; the reader's part ends with the readouts. Medians "
    "of four runs, in seconds.",
)
def read_threads(t):
    t.row("threads", "`read`", "least to largest", "the reader's part")
    for threads, read, reader in raw.threads(t.text):
        t.row(threads, number(statistics.median(read)), span(read, 3), number(statistics.median(reader)))


# First runs


@table(
    "2026-11-24-h100/first_run.txt",
    f"{H100} with 16 Xeon cores, shared; NVRTC 13.0",
    "rayspin -q recon mri S.h5 -o o.nii.gz -m METHOD [--tolerance 0 --iterations 30 (k256: 10)] --device cuda [--memory 60G] --record o.json",
    "Wall clock in seconds. The home folder is empty before a first run. With `--memory 60G` a kernel is compiled when it is needed.",
)
def first_mri(t):
    names = {
        "k128": "kooshball 128³, 8 coils",
        "k256": "kooshball 256³, 32 coils",
        "k96": "kooshball 96³, 8 coils",
        "r": "radial, 8 coils",
        "c": "Cartesian, 8 coils",
    }
    t.row("scan and method", "first", "second, third", "`--memory 60G`: first", "second, third")
    for scan, method, ahead, single in raw.first_runs(t.text):
        t.row(f"{names[scan]}, `{method}`", *(cell for runs in (ahead, single) for cell in (number(runs[0]), f"{number(runs[1])}, {number(runs[2])}")))


@table(
    "2026-11-26-h100/first_run_ct.txt",
    f"{H100} with 16 Xeon cores; NVRTC 13.0",
    "RAYSPIN_KERNEL_CACHE=/tmp/kc rayspin -q recon ct f256.h5 -m fdk --device cuda -o f.nii.gz --record f.json",
    "FDK of 256³ voxels, in seconds. The cache of kernels is empty before the first run.",
)
def first_ct(t):
    rows = re.findall(r"^([\d.]+)\s+read ([\d.]+), compile kernels ([\d.]+)", t.text, re.MULTILINE)
    t.row("run", "wall clock", "read", "compile kernels")
    for run, cells in zip(("first", "second", "third"), rows, strict=True):
        t.row(run, *cells)


@table(
    "2026-11-26-h100/precompiled.txt",
    f"{H100} with 16 Xeon cores; NVRTC 13.0",
    "python3 benches/precompiled.py --runs 15",
    "Wall clock of the first, second and third run, in seconds. The archive holds kernels that are compiled beforehand.",
)
def first_precompiled(t):
    ways = "archive, no NVRTC", "archive and NVRTC", "NVRTC"
    t.row("run", *ways[:2], "NVRTC, no archive")
    for run, times in raw.precompiled(t.text).items():
        t.row(title(run), *(", ".join(number(time) for time in times[way]) for way in ways))


# Memory


@table(
    "2026-11-21-cpu/memory.txt",
    "Two threads of an AMD EPYC",
    "python benches/memory.py",
    "Memory of the host: measured, and stated over measured. A row has one scan and several methods, least to largest.",
)
def memory_stated(t):
    found = {}
    for scan, _, stated, measured in raw.memory(t.text):
        found.setdefault(scan, []).append((stated, measured))
    t.row("scan", "methods", "measured, MB", "stated / measured")
    for scan, pairs in found.items():
        name = f"`{scan}`" if "_" in scan else scan
        t.row(name, len(pairs), span([measured for _, measured in pairs], 1), span([stated / measured for stated, measured in pairs], 2))
