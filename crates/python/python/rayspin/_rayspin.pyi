from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from ._types import Array, Callback, Heard, Map

__all__ = [
    "LinearOperator", "Penalty", "Plan", "Reconstruction", "Scan", "Solution", "__version__", "block_diagonal", "cg", "command", "custom",
    "diagonal", "differences", "fft", "fista", "groups", "identity", "l1", "l2", "largest_eigenvalue", "least_squares", "mask", "methods",
    "nonnegative", "nudft", "nufft_operator", "pdhg", "read_scan", "recon", "sense", "stack", "toeplitz", "total_variation", "wavelet",
    "wavelet_penalty",
]

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

    @staticmethod
    def from_arrays(
        kspace: Array,
        trajectory: Array | None = None,
        *,
        shape: Sequence[int] | None = None,
        fov_mm: Sequence[float] | None = None,
        units: str | None = None,
        times: Array | None = None,
    ) -> Scan: ...
    def arrays(self, image: int = 0) -> tuple[NDArray[np.complex64], NDArray[np.float64] | None]: ...
    @property
    def images(self) -> int: ...
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
    @property
    def record(self) -> dict[str, Any]: ...
    def save(self, path: str | PathLike[str]) -> list[str]: ...
    def _repr_html_(self) -> str: ...

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
    maps: Array | None = None,
    field_map: Array | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    coils: float | None = None,
    nufft_tolerance: float | None = None,
    progress: Heard = None,
    **parameters: Any,
) -> Reconstruction: ...
def methods() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]: ...
def command(arguments: Sequence[str]) -> int: ...

@final
class LinearOperator:
    """A linear map A between arrays, with its adjoint."""

    __array_ufunc__: None
    def __call__(self, x: Array, out: Array | None = None) -> Array: ...
    @overload
    def __matmul__(self, value: LinearOperator, /) -> LinearOperator: ...
    @overload
    def __matmul__(self, value: Array, /) -> Array: ...
    @overload
    def __mul__(self, value: complex | LinearOperator, /) -> LinearOperator: ...
    @overload
    def __mul__(self, value: Array, /) -> Array: ...
    def __rmul__(self, value: complex, /) -> LinearOperator: ...
    def __neg__(self) -> LinearOperator: ...
    def __add__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __sub__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __radd__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __rsub__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __rmatmul__(self, value: LinearOperator, /) -> LinearOperator: ...
    @property
    def H(self) -> LinearOperator: ...
    @property
    def N(self) -> LinearOperator: ...
    @property
    def ishape(self) -> tuple[int, ...]: ...
    @property
    def oshape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    def as_scipy(self) -> Any: ...

def identity(shape: Sequence[int], *, dtype: Any = None, device: str = "auto") -> LinearOperator: ...
def fft(
    shape: Sequence[int], *, batch: Sequence[int] = ..., dtype: Any = None, device: str = "auto"
) -> LinearOperator: ...
def nufft_operator(
    points: Array,
    shape: Sequence[int],
    *,
    batch: Sequence[int] = ...,
    eps: float | None = None,
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator: ...
def nudft(
    points: Array, shape: Sequence[int], *, batch: Sequence[int] = ..., dtype: Any = None, device: str = "auto"
) -> LinearOperator: ...
def toeplitz(
    points: Array,
    shape: Sequence[int],
    *,
    weights: Array | None = None,
    maps: Array | None = None,
    batch: Sequence[int] = ...,
    eps: float | None = None,
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator: ...
def sense(
    maps: Array, points: Array | None = None, *, eps: float | None = None, device: str = "auto"
) -> LinearOperator: ...
def diagonal(factors: Array, shape: Sequence[int] | None = None, *, device: str = "auto") -> LinearOperator: ...
def mask(
    mask: NDArray[np.bool_], shape: Sequence[int] | None = None, *, dtype: Any = None, device: str = "auto"
) -> LinearOperator: ...
def differences(
    shape: Sequence[int], axes: Sequence[int] | None = None, *, dtype: Any = None, device: str = "auto"
) -> LinearOperator: ...
def wavelet(
    shape: Sequence[int], family: str = "db2", levels: int | None = None, *, dtype: Any = None, device: str = "auto"
) -> LinearOperator: ...
def stack(operators: Sequence[LinearOperator]) -> LinearOperator: ...
def block_diagonal(operators: Sequence[LinearOperator]) -> LinearOperator: ...
def custom(
    forward: Callable[[Array], Array],
    adjoint: Callable[[Array], Array],
    ishape: Sequence[int],
    oshape: Sequence[int],
    *,
    name: str = "custom",
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator: ...

@final
class Penalty:
    """A penalty g, by its proximal map."""

    def __call__(self, t: float, x: Array) -> Array: ...

def l1() -> Penalty: ...
def groups() -> Penalty: ...
def nonnegative() -> Penalty: ...
def l2(data: Array) -> Penalty: ...
def wavelet_penalty(
    shape: Sequence[int], family: str = "db2", levels: int | None = None, seed: int | None = None
) -> Penalty: ...
def total_variation(shape: Sequence[int], steps: int = 10) -> Penalty: ...

@final
class Solution:
    """What a solver found."""

    @property
    def x(self) -> Array: ...
    @property
    def residuals(self) -> list[float]: ...
    @property
    def objective(self) -> list[float]: ...
    @property
    def converged(self) -> bool: ...
    @property
    def largest_eigenvalue(self) -> float | None: ...

def cg(
    a: LinearOperator,
    b: Array,
    *,
    start: Array | None = None,
    iterations: int = 30,
    tolerance: float = 1e-4,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution: ...
def least_squares(
    a: LinearOperator,
    y: Array,
    *,
    weight: float = 0.0,
    regularisers: Sequence[LinearOperator] = ...,
    normal: LinearOperator | None = None,
    iterations: int = 30,
    tolerance: float = 1e-4,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution: ...
def fista(
    a: LinearOperator,
    y: Array,
    penalty: Penalty | Map,
    weight: float,
    *,
    relative: bool = False,
    normal: LinearOperator | None = None,
    start: Array | None = None,
    iterations: int = 100,
    tolerance: float = 1e-4,
    average: int = 1,
    largest_eigenvalue: float | None = None,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution: ...
def pdhg(
    a: LinearOperator,
    y: Array,
    terms: Sequence[tuple[LinearOperator, Penalty | Map, float]],
    *,
    g: Penalty | Map | None = None,
    start: Array | None = None,
    iterations: int = 300,
    tolerance: float = 1e-4,
    balance: float = 1.0,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution: ...
def largest_eigenvalue(a: LinearOperator, *, tolerance: float = 1e-3) -> float: ...
