"""Scans of phantoms whose truth is known, in memory.

`mri` knows the phantom's k-space in closed form, `ct` its line integrals. Keywords are the options of the commands
`rayspin simulate mri` and `rayspin simulate ct`, with `_` for `-`; `options("mri")` and `options("ct")` list them with their defaults.
Lengths are in mm, angles in radian.

>>> import rayspin
>>> from rayspin import simulate
>>> made = simulate.mri(matrix=(32, 32), trajectory="radial", shots=40, coils=4)
>>> made.truth.shape, made.maps.shape
((1, 32, 32), (4, 1, 32, 32))
>>> rayspin.recon(made.scan, "cg-sense", iterations=10, device="cpu").image.shape
(1, 32, 32)
>>> made = simulate.ct(geometry="fan", matrix=(64, 64), views=90, lines=True)
>>> made.scan.shape, made.grid.shape, round(float(made.truth.max()), 4)  # 1/mm
((90, 1, 64), (1, 64, 64), 0.0206)
"""

from typing import TYPE_CHECKING

from ._rayspin import CtSimulation, MriSimulation
from ._rayspin import simulate_options as options

if TYPE_CHECKING:
    from ._rayspin import simulate_ct as ct
    from ._rayspin import simulate_mri as mri
else:
    from . import _options

    mri, ct = _options.documented("mri"), _options.documented("ct")

__all__ = ["CtSimulation", "MriSimulation", "ct", "mri", "options"]
