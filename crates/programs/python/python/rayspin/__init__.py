"""Rayspin: raw MRI and CT scans into images, on CPUs and NVIDIA GPUs.

>>> import rayspin
>>> scan = rayspin.read_scan("scan.h5")  # doctest: +SKIP
>>> found = rayspin.recon(scan, method="cg-sense", iterations=20)  # doctest: +SKIP
>>> found.save("image.nii.gz")  # doctest: +SKIP

`rayspin.nufft` has plans with finufft's habits, `rayspin.linop` linear operators, `rayspin.solve` and `rayspin.prox` solvers and
penalties. `rayspin.torch` and `rayspin.mrinufft` are imported by name.
"""

from typing import TYPE_CHECKING

from . import _compiler

_compiler.name_it()

from . import ct, linop, metrics, nufft, prox, render, simulate, solve  # noqa: E402
from ._rayspin import (  # noqa: E402
    Image,
    Images,
    Reconstruction,
    Scan,
    __version__,
    fft,
    filter,
    filters,
    methods,
    nudft,
    read_image,
    read_scan,
    set_threads,
    threads,
    toeplitz,
)
from ._rayspin import remade as remade  # noqa: E402 - what pickles name

if TYPE_CHECKING:
    from ._rayspin import plan_recon as plan
    from ._rayspin import recon
    from ._rayspin import stream_recon as images
else:
    from . import _options

    recon, plan = _options.reconstruction("recon", "mri"), _options.reconstruction("plan", "mri")
    images = _options.reconstruction("images", "mri")

__all__ = [
    "Image",
    "Images",
    "Reconstruction",
    "Scan",
    "__version__",
    "ct",
    "fft",
    "filter",
    "filters",
    "images",
    "linop",
    "methods",
    "metrics",
    "nudft",
    "nufft",
    "plan",
    "prox",
    "read_image",
    "read_scan",
    "recon",
    "render",
    "set_threads",
    "simulate",
    "solve",
    "threads",
    "toeplitz",
]
