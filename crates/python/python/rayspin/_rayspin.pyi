from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Plan", "Reconstruction", "Scan", "__version__", "command", "methods", "read_scan", "recon"]

__version__: str

@final
class Plan:
    """A non-uniform fast Fourier transform: type 1 (points to grid), type 2 (grid to points) or type 3 (points to points)."""

    def __new__(
        cls,
        nufft_type: int,
        n_modes_or_dim: int | Sequence[int],
        n_trans: int | None = None,
        eps: float = 1e-6,
        isign: int | None = None,
        dtype: Any = None,
        *,
        device: str = "auto",
    ) -> Plan: ...
    def setpts(
        self, x: Any, y: Any = None, z: Any = None, s: Any = None, t: Any = None, u: Any = None
    ) -> None: ...
    def execute(self, data: Any, out: Any = None) -> Any: ...
    def execute_adjoint(self, data: Any, out: Any = None) -> Any: ...
    @property
    def nufft_type(self) -> int: ...
    @property
    def n_modes(self) -> list[int]: ...
    @property
    def n_trans(self) -> int | None: ...
    @property
    def eps(self) -> float: ...
    @property
    def isign(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...

@final
class Scan:
    """A raw MRI scan."""

    @property
    def notes(self) -> list[str]: ...
    def __len__(self) -> int: ...

@final
class Reconstruction:
    """The images of a scan and how they came about."""

    @property
    def image(self) -> NDArray[np.complex64]: ...
    @property
    def maps(self) -> NDArray[np.complex64] | None: ...
    @property
    def method(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def stages(self) -> list[tuple[str, float]]: ...
    @property
    def residuals(self) -> list[list[float]]: ...
    @property
    def spacing_mm(self) -> list[float]: ...
    @property
    def position_mm(self) -> list[float]: ...
    @property
    def directions(self) -> list[list[float]]: ...
    def save(self, path: str | PathLike[str]) -> list[str]: ...

def read_scan(
    path: str | PathLike[str],
    *,
    trajectory: str | PathLike[str] | None = None,
    matrix: Sequence[int] | None = None,
) -> Scan: ...
def recon(
    scan: Scan,
    method: str | None = None,
    *,
    device: str = "auto",
    progress: Callable[[str, int, int], object] | None = None,
    **parameters: Any,
) -> Reconstruction: ...
def methods() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]: ...
def command(arguments: Sequence[str]) -> int: ...
