"""Rayspin: raw MRI scans into images, on CPUs and NVIDIA GPUs.

>>> import rayspin
>>> scan = rayspin.read_scan("scan.h5")  # doctest: +SKIP
>>> found = rayspin.recon(scan, method="cg-sense", iterations=20)  # doctest: +SKIP
>>> found.save("image.nii.gz")  # doctest: +SKIP
"""

from . import nufft
from ._rayspin import Reconstruction, Scan, __version__, methods, read_scan, recon

__all__ = ["Reconstruction", "Scan", "__version__", "methods", "nufft", "read_scan", "recon"]
