"""Tables of CT reconstruction."""

import statistics

from performance import raw
from performance.table import H100, seconds, span, table, title


@table(
    "2026-11-23-epyc-2/projection.txt",
    "Two threads of an AMD EPYC; itk-rtk 2.7.0.post1, whose wheel is for any x86-64 processor",
    "python benches/peers/ct.py 2",
    "256³ voxels, 360 views of 256² pixels. FDK: RTK in memory, Rayspin from file to file (median of three commands).",
)
def ct_cpu(t):
    names = {"project": "line integrals (Joseph)", "backproject": "voxel-driven back-projection", "FDK": "FDK"}
    found = raw.projection_cpu(t.text)
    t.row("cone beam", "Rayspin", "RTK", "RTK / Rayspin")
    for key, name in names.items():
        ours, peer = found[key]["Rayspin"], found[key]["RTK"]
        t.row(name, seconds(ours), seconds(peer), t.ratio(peer / ours, "time", name))


IMAGES = "2026-11-23-epyc-2/ct_images.txt", "Two threads of an AMD EPYC (Zen 5)"


@table(
    *IMAGES,
    "python benches/peers/ct_images.py 3",
    "Rayspin from file to file, the others in memory, all from the same line integrals. The ratio is to Rayspin's first row of the problem. RMSE and "
    "correlation are to the object.",
)
def ct_slices(t):
    t.row("problem", "program", "time", "peer / Rayspin", "RMSE", "correlation")
    for problem, rows in raw.ct_images(t.text)[0].items():
        for program, time, correlation, error in rows:
            ratio = "" if program.startswith("Rayspin") else t.ratio(time / rows[0][1], "time", program)
            t.row(title(problem), program, seconds(time), ratio, error, correlation)


@table(
    *IMAGES,
    "rayspin recon ct m.h5 -m fbp -o m.npy --device cpu --no-record",
    "16 slices of 1024², file to file. Three commands, least to largest. No peer ran beside them.",
)
def ct_slabs(t):
    found = raw.ct_images(t.text)[1]
    t.row("parallel views", "`fbp`", "`fourier`")
    for views in (720, 1800):
        t.row(views, *(span(found[views, method], 2, " s") for method in ("fbp", "fourier")))


@table(
    "2026-11-25-h100/projection.txt",
    f"{H100}; astra-toolbox 2.5.0",
    "python benches/peers/ct_gpu.py",
    "Arrays lie on the GPU. Each program ran twice in turns; a time is the mean of both runs. `gpu-lines` interpolates in f32; `gpu-texture` and "
    "ASTRA interpolate with the texture unit.",
)
def ct_gpu(t):
    names = {"backproject": "back-projection", "project": "line integrals"}
    t.row("cone beam", "`gpu-lines`", "`gpu-texture`", "ASTRA", "ASTRA / `gpu-lines`")
    for (operator, voxels, views, detector), found in raw.projection_gpu(t.text).items():
        if {"gpu-lines", "ASTRA"} <= found.keys():
            ours, texture, astra = (statistics.mean(found[name]) for name in ("gpu-lines", "gpu-texture", "ASTRA"))
            problem = f"{names[operator]}, {voxels}³, {views} views of {detector}²"
            t.row(problem, seconds(ours), seconds(texture), seconds(astra), t.ratio(astra / ours, "time", problem))
