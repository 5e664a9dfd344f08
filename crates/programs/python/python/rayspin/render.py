"""Pictures of volumes `[z, y, x]`, as the command `rayspin render` draws them.

`spacing_mm` is the size of a voxel, one length or (x, y, z). x runs to the patient's left, y to the back, z to the head. `view`
("front", "left", ...) or the angles `azimuth` and `elevation` in radian say where the picture is seen from; `size` is its width, or
(columns, rows), in pixels. `turntable=n` draws n views around the patient: results have a leading axis then. `options()` lists all
keywords. `hu=True` says that values are Hounsfield units.

>>> import numpy as np
>>> from rayspin import render
>>> volume = np.zeros((20, 30, 40), np.float32)
>>> volume[5:15, 10:20, 10:30] = 0.02  # 1/mm
>>> picture = render.drr(volume, 0.5, size=64, view="front", device="cpu")
>>> picture.shape, round(float(picture.max()), 4)  # 10 voxels of 0.5 mm along y
((64, 64), 0.1)
>>> render.surface(volume, 0.5, size=(32, 24), device="cpu").shape
(24, 32, 3)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._rayspin import render_options as options
from ._rayspin import render_volume
from ._types import Heard

__all__ = ["drr", "mip", "options", "surface", "transfer"]


def drr(
    volume: Any, spacing_mm: float | Sequence[float], *, device: str = "auto", progress: Heard = None, **options: Any
) -> NDArray[np.float32]:
    """A radiograph: the line integral of the attenuation in 1/mm (or of Hounsfield units with `hu=True`) along the ray of each pixel.

    volume: real `[z, y, x]`, which is copied. spacing_mm: the size of a voxel, one length or (x, y, z).
    device: "cpu", "cuda", "cuda:1", or "auto". progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
    options: those of `options()`; angles are in radian.

    Returns float32 `[row, column]` without unit; `[view, row, column]` with `turntable`. Raises TypeError for an option that there is not, a
    value of another type and complex numbers, ValueError for another shape, numbers that are not finite and options out of range.
    """
    found: NDArray[np.float32] = render_volume(
        "xray", volume, spacing_mm, device=device, progress=progress, **options
    )
    return found


def mip(
    volume: Any, spacing_mm: float | Sequence[float], *, device: str = "auto", progress: Heard = None, **options: Any
) -> NDArray[np.float32]:
    """The largest value along the ray of each pixel; the smallest of the volume where a ray misses it.

    Arguments are as for `drr`. Returns float32 `[row, column]` in the unit of the volume; `[view, row, column]` with `turntable`. Raises as
    `drr`.
    """
    found: NDArray[np.float32] = render_volume(
        "mip", volume, spacing_mm, device=device, progress=progress, **options
    )
    return found


def transfer(
    volume: Any,
    spacing_mm: float | Sequence[float],
    points: ArrayLike | None = None,
    *,
    device: str = "auto",
    progress: Heard = None,
    **options: Any,
) -> NDArray[np.uint8]:
    """Emission and absorption of voxels that a transfer function colours.

    `points` `[point, 5]` hold growing values, red, green and blue from 0 to 1, and the opacity per mm; else `preset` (bone, skin or lung)
    colours Hounsfield units (`hu=True`), or attenuations in 1/mm, which become such. The rest is as for `drr`.

    Returns uint8 `[row, column, 3]`, red, green and blue; `[view, row, column, 3]` with `turntable`. Raises as `drr`.
    """
    found: NDArray[np.uint8] = render_volume(
        "volume", volume, spacing_mm, device=device, transfer=points, progress=progress, **options
    )
    return found


def surface(
    volume: Any, spacing_mm: float | Sequence[float], *, device: str = "auto", progress: Heard = None, **options: Any
) -> NDArray[np.uint8]:
    """The shaded isosurface of the value `iso`.

    Without `iso` the value is 300 in Hounsfield units (`hu=True`), else half the 99.5th percentile. The rest is as for `drr`.

    Returns uint8 `[row, column, 3]`, red, green and blue; `[view, row, column, 3]` with `turntable`. Raises as `drr`.
    """
    found: NDArray[np.uint8] = render_volume(
        "surface", volume, spacing_mm, device=device, progress=progress, **options
    )
    return found
