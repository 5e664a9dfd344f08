"""Tables of MRI reconstruction."""

import statistics

from performance import raw
from performance.table import H100, number, seconds, span, table, title

EPYC = "Two threads of an AMD EPYC (Zen 4)"
FOLDER_CPU = "2026-11-21-cpu"


@table(
    f"{FOLDER_CPU}/cardiac.txt",
    "Two threads of an AMD EPYC; SigPy 0.1.27, BART of Debian",
    ".tools/bench/bin/python benches/peers/cardiac.py",
    "Five runs of each program, in turns; medians. SigPy is timed without the start of Python. Another program computes the objective in double "
    "precision, of images that all programs make with Rayspin's maps.",
)
def mri_cardiac(t):
    t.row("cardiac radial CG-SENSE, 12 coils, 15 iterations, file to file", "time", "objective", "peer / Rayspin")
    for run in raw.programs(t.text):
        name = run["program"]
        ratio = "" if name == "Rayspin" else t.ratio(run["over_rayspin"], "time", name)
        t.row(name, seconds(run["median"]), f"{run['objective']:.6f}", ratio)


def file_to_file(t, programs):
    t.row("scan", *programs, *(f"{program} / Rayspin" for program in programs[1:]))
    for scan, kinds in raw.file_to_file(t.text).items():
        times = {row[0]: row[1] for row in kinds["whole"]}
        ratios = (t.ratio(times[program] / times["Rayspin"], program, title(scan)) for program in programs[1:])
        t.row(title(scan), *(seconds(times[program]) for program in programs), *ratios)


def images(t, programs):
    """Differences from Rayspin's image, and errors against the object; a peer's error below Rayspin's is a loss, too."""
    t.row("scan", "maps", "value", *programs)
    for scan, kinds in raw.file_to_file(t.text).items():
        for kind, whose in (("whole", "of each program"), ("maps", "the same for all")):
            found = {row[0]: row for row in kinds[kind]}
            t.row(title(scan), whose, "difference from Rayspin's image", "", *(found[program][2] for program in programs[1:]))
            if not found["Rayspin"][3]:
                continue
            ours, *cells = (found[program][3] for program in programs)
            for i, program in enumerate(programs[1:]):
                lost = t.compare(float(cells[i]) / float(ours), f"error of the image, {program}, maps {whose}", title(scan))
                cells[i] = f"**{cells[i]}**" if lost else cells[i]
            t.row(title(scan), whose, "error against the object", ours, *cells)


FILES_CPU = (
    "2026-11-25-epyc-2/peers_file_to_file.txt",
    f"{EPYC}; SigPy 0.1.27, BART 0.8.00 of Debian",
    "python benches/peers/file_to_file.py --runs 3 --threads 2 --iterations 30",
)
FILES_GPU = (
    "2026-11-26-h100/file_to_file_sigpy.txt",
    f"{H100} with 16 Xeon cores; SigPy 0.1.27 with CuPy 14.2.0",
    "python3 benches/peers/file_to_file.py --device cuda --threads 16",
)
IMAGES = "Relative l2 difference and error. An error is bold where it is less than Rayspin's."


@table(*FILES_CPU, "Medians of three runs. The times include the start of Python, and BART's conversion of the file except in its last column.")
def mri_files_cpu(t):
    file_to_file(t, ["Rayspin", "SigPy", "BART", "BART without conversion"])


@table(*FILES_CPU, IMAGES)
def mri_images_cpu(t):
    images(t, ["Rayspin", "SigPy", "BART"])


@table(*FILES_GPU, "Medians of three runs, of two for 128³. Both programs had compiled their kernels in an earlier run. BART did not run.")
def mri_files_gpu(t):
    file_to_file(t, ["Rayspin", "SigPy"])


@table(*FILES_GPU, IMAGES)
def mri_images_gpu(t):
    images(t, ["Rayspin", "SigPy"])


@table(
    "2026-11-26-epyc-2/kooshball_maps.txt",
    "Two threads of an AMD EPYC; the errors do not depend on the machine",
    "rayspin recon mri k64.h5 -o o.npy --save-maps own.npy -m cg-sense --iterations 30 --tolerance 0 --lambda 1e-4 --device cpu",
    "Relative l2 error of magnitudes at the best scale.",
    build="a development build of that day",
)
def mri_maps(t):
    errors = {whose: error for whose, error, _ in raw.maps(t.text)}
    ours = errors["Rayspin now"]
    t.row("image of the kooshball scan of 64³", "error against the object", "peer / Rayspin")
    t.row("Rayspin, its own maps", ours, "")
    for peer in ("SigPy 0.1.27", "BART 0.8 (nufft -i, caldir)"):
        t.row(f"{peer}, its own maps", errors[peer], t.ratio(float(errors[peer]) / float(ours), "error of the image", peer))
    t.row("the coils' shading alone, without any other error", errors["shading alone"], "")
    scaled = "with the simulation's maps over their root of sum of squares"
    t.row(f"Rayspin, {scaled.removeprefix('with ')}", errors[scaled], "")


@table(
    f"{FOLDER_CPU}/scans.txt",
    "Two threads of an AMD EPYC; SigPy 0.1.27, BART of Debian",
    ".tools/bench/bin/python benches/peers/scans.py",
    "All programs have the same maps and weight. Iterations are Rayspin's, SigPy's and BART's. The last column is the difference (NRMSE) of SigPy's "
    "and BART's image from Rayspin's.",
)
def mri_scans(t):
    t.row("real scan and method", "Rayspin", "SigPy", "BART", "SigPy / Rayspin", "BART / Rayspin", "iterations", "difference")
    for scan, rows in raw.scans(t.text).items():
        ratios = [t.ratio(row[1] / rows[0][1], row[0], scan) for row in rows[1:]]
        times = (f"{number(row[1])} s" for row in rows)
        t.row(scan, *times, *ratios, ", ".join(row[2] for row in rows), ", ".join(row[5] for row in rows[1:]))


@table(
    "2026-11-26-epyc-2/cardiac.txt",
    EPYC,
    "rayspin -q recon mri cardiac_radial_12ch.h5 -m cg-sense --device cpu --threads 2 --iterations N --tolerance 0 -o o.npy --no-record",
    "Ten runs of the whole command. No peer ran beside it.",
    build='the build "now" of the raw file',
)
def mri_cardiac_command(t):
    t.row("N", "median", "least to largest")
    for (iterations, build), times in raw.rounds(t.text).items():
        if build == "now":
            t.row(iterations, seconds(statistics.median(times)), span(times, 2, " s"))


@table(
    "2026-11-22-h100/whole.txt",
    f"{H100}, and the 16 Xeon cores of its host",
    "python3 benches/whole_run.py",
    "Medians of seven runs; kernels are compiled.",
)
def mri_devices(t):
    t.row("CG-SENSE", "value", "16 cores", "H100", "cores / H100")
    for scan, found in raw.whole_runs(t.text).items():
        for i, value in enumerate(("file to file", "solver alone")):
            ratio = t.ratio(found["cpu / cuda"][i], "the GPU beside the cores", f"{title(scan)}, {value}")
            t.row(title(scan), value, seconds(found["cpu"][i]), seconds(found["cuda"][i]), ratio)


@table(
    f"{FOLDER_CPU}/stream.txt",
    "Two threads of an AMD EPYC (Zen 5)",
    "benches/stream.sh target/release/rayspin",
    "A sliding window makes 201 images of 192² from 8 coils, 21 spokes an image. Three runs, least to largest.",
)
def mri_sliding_cpu(t):
    found = raw.streams(t.text)
    t.row("options", "images a second, NPY", "images a second, compressed NIfTI")
    for options in dict.fromkeys(options for options, _ in found):
        t.row(f"`{options}`", *(span(found[options, f"frames.{end}"], 1) for end in ("npy", "nii.gz")))


@table(
    "2026-11-27-h100/sliding.txt",
    f"{H100} with 16 Xeon cores",
    "rayspin recon mri d.h5 -o d.npy --window 21 --stride 8 --device cuda",
    "The options follow in the table. The simulated scan is made as in the table above. Medians of 20 runs.",
    build='the build "new" of the raw file',
)
def mri_sliding_gpu(t):
    t.row("options", "images a second", "plans of the NUFFT", "reconstruction", "whole process")
    for options, (plans, reconstruct, _, process), rate in raw.sliding(t.text, "new"):
        t.row(f"`{options}`", rate, seconds(plans), seconds(reconstruct), seconds(process))
