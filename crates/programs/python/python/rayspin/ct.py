"""Line integrals and reconstructions of CT, over the arrays that you have.

Volumes are `[z, y, x]`, projections `[view, row, column]`. Angles are in radian, lengths in mm, attenuations in 1/mm. The axis of
rotation is z; at angle 0 rays run along +y.

>>> import numpy as np
>>> from rayspin import ct
>>> rays = ct.Geometry.cone(
...     np.linspace(0, 2 * np.pi, 60, endpoint=False), 8, 32, 2.0, source_to_axis_mm=300, axis_to_detector_mm=300
... )
>>> grid = rays.grid()  # the voxels that the detector resolves
>>> truth = np.zeros(grid.shape, np.float32)
>>> truth[2:6, 10:22, 12:20] = 0.02  # 1/mm
>>> scan = ct.Scan.from_arrays(ct.Projector(rays, grid, device="cpu").forward(truth), rays)
>>> found = ct.recon(scan, "cgls", grid=grid, iterations=20, device="cpu")
>>> found.volume.shape, bool(abs(found.volume[4, 16, 16] - 0.02) < 0.002)
((8, 32, 32), True)

Scans come from files too: Data Exchange, NXtomo, Zeiss txrm, arrays with a geometry. Methods and corrections are those of the command
`rayspin recon ct`; `methods()` and `corrections()` list them with their parameters.

>>> scan = ct.read_scan("tooth.h5")  # doctest: +SKIP
>>> found = ct.recon(scan, correct=["outliers", "rings"])  # doctest: +SKIP
>>> found.save("tooth.nii.gz")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from ._rayspin import CtGeometry as Geometry
from ._rayspin import CtGrid as Grid
from ._rayspin import CtProjector as Projector
from ._rayspin import CtReconstruction as Reconstruction
from ._rayspin import CtScan as Scan
from ._rayspin import ct_corrections as corrections
from ._rayspin import ct_methods as methods
from ._rayspin import read_ct_scan as read_scan

if TYPE_CHECKING:
    from ._rayspin import plan_recon_ct as plan
    from ._rayspin import recon_ct as recon
else:
    from . import _options

    recon, plan = _options.reconstruction("recon", "ct"), _options.reconstruction("plan", "ct")

__all__ = [
    "Geometry",
    "Grid",
    "Projector",
    "Reconstruction",
    "Scan",
    "corrections",
    "methods",
    "plan",
    "read_scan",
    "recon",
]
