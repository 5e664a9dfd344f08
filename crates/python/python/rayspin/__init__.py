"""Rayspin: raw MRI and CT scans into images, on CPUs and NVIDIA GPUs.

>>> import rayspin
>>> scan = rayspin.read_scan("scan.h5")  # doctest: +SKIP
>>> found = rayspin.recon(scan, method="cg-sense", iterations=20)  # doctest: +SKIP
>>> found.save("image.nii.gz")  # doctest: +SKIP

`rayspin.nufft` has plans with finufft's habits, `rayspin.linop` linear operators, `rayspin.solve` and `rayspin.prox` solvers and
penalties. `rayspin.torch` and `rayspin.mrinufft` are imported by name.
"""

from . import _compiler

_compiler.name_it()

from . import ct, linop, metrics, nufft, prox, render, simulate, solve  # noqa: E402
from ._rayspin import (  # noqa: E402
    Reconstruction,
    Scan,
    __version__,
    fft,
    methods,
    nudft,
    read_scan,
    recon,
    set_threads,
    threads,
    toeplitz,
)

__all__ = [
    "Reconstruction",
    "Scan",
    "__version__",
    "ct",
    "fft",
    "linop",
    "methods",
    "metrics",
    "nudft",
    "nufft",
    "prox",
    "read_scan",
    "recon",
    "render",
    "set_threads",
    "simulate",
    "solve",
    "threads",
    "toeplitz",
]
