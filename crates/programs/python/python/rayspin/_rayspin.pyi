from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._types import Array, Callback, Corrections, Heard, Map, MaybeNone, Number

__all__ = [
    "Claim",
    "CtGeometry",
    "CtGrid",
    "CtProjector",
    "CtReconstruction",
    "CtScan",
    "CtSimulation",
    "Image",
    "Images",
    "LinearOperator",
    "MriSimulation",
    "Penalty",
    "Plan",
    "Quality",
    "Reconstruction",
    "Scan",
    "Solution",
    "__version__",
    "block_diagonal",
    "cg",
    "claim",
    "command",
    "compare",
    "ct_corrections",
    "ct_methods",
    "custom",
    "diagonal",
    "differences",
    "fft",
    "filter",
    "filters",
    "fista",
    "gpus",
    "groups",
    "identity",
    "l1",
    "l2",
    "largest_eigenvalue",
    "least_squares",
    "mask",
    "methods",
    "nonnegative",
    "nrmse",
    "nudft",
    "nufft_operator",
    "plan_recon",
    "plan_recon_ct",
    "pdhg",
    "psnr",
    "read_ct_scan",
    "read_files",
    "read_image",
    "read_scan",
    "recon",
    "recon_ct",
    "recon_options",
    "remade",
    "render_options",
    "render_volume",
    "sense",
    "set_threads",
    "simulate_ct",
    "simulate_mri",
    "simulate_options",
    "ssim",
    "stack",
    "stream_recon",
    "threads",
    "toeplitz",
    "total_variation",
    "wavelet",
    "wavelet_penalty",
    "written_files",
]

__version__: str

def remade(kind: type, version: int, parts: dict[str, Any]) -> Any: ...

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
    @overload
    def execute(self, data: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]: ...
    @overload
    def execute(self, data: Array, out: Array | None = None) -> Any: ...
    @overload
    def execute_adjoint(self, data: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]: ...
    @overload
    def execute_adjoint(self, data: Array, out: Array | None = None) -> Any: ...
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
    def __copy__(self) -> Plan: ...
    def __deepcopy__(self, _memo: Any) -> Plan: ...

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
    def shape(self) -> tuple[int, ...]: ...
    @property
    def coils(self) -> int: ...
    @property
    def fov_mm(self) -> list[float]: ...
    def save(self, path: str | PathLike[str], *, keep_identity: bool = False) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __copy__(self) -> Scan: ...
    def __deepcopy__(self, _memo: Any) -> Scan: ...

@final
class Reconstruction:
    """The images of a scan and how they came about."""

    @property
    def image(self) -> NDArray[np.complex64]: ...
    @property
    def maps(self) -> NDArray[np.complex64] | MaybeNone: ...
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
    def certificates(self) -> list[dict[str, Any]]: ...
    @property
    def searched(self) -> dict[str, Any] | MaybeNone: ...
    @property
    def spacing_mm(self) -> list[float]: ...
    @property
    def position_mm(self) -> list[float]: ...
    @property
    def directions(self) -> list[list[float]]: ...
    @property
    def stacks(self) -> list[dict[str, Any]]: ...
    @property
    def volumes(self) -> list[dict[str, int]]: ...
    @property
    def record(self) -> dict[str, Any]: ...
    def save(
        self,
        path: str | PathLike[str],
        *,
        bids: bool = False,
        phase: bool = False,
        dicom_template: str | PathLike[str] | None = None,
    ) -> list[str]: ...
    def _repr_html_(self) -> str: ...

def read_scan(
    path: str | PathLike[str],
    *,
    trajectory: str | PathLike[str] | None = None,
    matrix: Sequence[int] | None = None,
    fov_mm: Sequence[float] | None = None,
    units: str | None = None,
    order: str | None = None,
    trajectory_weights: bool = False,
) -> Scan: ...
# Made by stubs.py: recon
@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["cartesian"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    combine: Literal["rss", "maps", "none"] | None = ...,
    partial_fourier: Literal["pocs", "homodyne", "none"] | None = ...,
) -> Reconstruction:
    """Inverse FFT of the grid, coil by coil.

    combine: How coil images become one (rss, maps, none)
    partial_fourier: How the unmeasured side of k-space is filled (pocs, homodyne, none)
    """

@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["grappa"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    combine: Literal["rss", "maps", "none"] | None = ...,
    partial_fourier: Literal["pocs", "homodyne", "none"] | None = ...,
) -> Reconstruction:
    """Missing lines of a regularly undersampled grid from their neighbours, then inverse FFT.

    combine: How coil images become one (rss, maps, none)
    partial_fourier: How the unmeasured side of k-space is filled (pocs, homodyne, none)
    """

@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["gridding"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    combine: Literal["rss", "maps", "none"] | None = ...,
) -> Reconstruction:
    """Density-compensated adjoint NUFFT, coil by coil.

    combine: How coil images become one (rss, maps, none)
    """

@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["ls"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    combine: Literal["rss", "maps", "none"] | None = ...,
    lambda_: float | Literal["auto"] = ...,
    regulariser: Literal["none", "identity", "differences"] = ...,
    anatomy: ArrayLike | None = ...,
    anatomy_edge: float = ...,
    iterations: int = ...,
    tolerance: float = ...,
) -> Reconstruction:
    """Regularised least squares by conjugate gradients, coil by coil.

    combine: How coil images become one (rss, maps, none)
    lambda_: Weight of the penalty, relative to the largest eigenvalue of the normal operator; with an L1 penalty
        also to the image's brightness (99th percentile) (a finite number >= 0; default 0.001)
    regulariser: Quantity that the penalty keeps small; differences are scaled to a distance of 1/256 of the field
        of view (none, identity, differences; default identity)
    anatomy: Reference image of the same matrix; the penalty smooths less across its edges (needs
        regulariser="differences" or method="tv")
    anatomy_edge: Difference between neighbours in the reference image, as a fraction of its brightness, above
        which the penalty smooths less (a positive number; default 0.05)
    iterations: Largest number of iterations (1 to 100000; default 30)
    tolerance: Relative residual (FISTA, L+S: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 1e-05)
    """

@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["cg-sense"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    lambda_: float | Literal["auto"] = ...,
    regulariser: Literal["none", "identity", "differences"] = ...,
    anatomy: ArrayLike | None = ...,
    anatomy_edge: float = ...,
    iterations: int = ...,
    tolerance: float = ...,
) -> Reconstruction:
    """Regularised least squares of one image seen by all coils.

    lambda_: Weight of the penalty, relative to the largest eigenvalue of the normal operator; with an L1 penalty
        also to the image's brightness (99th percentile) (a finite number >= 0; default 0.001)
    regulariser: Quantity that the penalty keeps small; differences are scaled to a distance of 1/256 of the field
        of view (none, identity, differences; default identity)
    anatomy: Reference image of the same matrix; the penalty smooths less across its edges (needs
        regulariser="differences" or method="tv")
    anatomy_edge: Difference between neighbours in the reference image, as a fraction of its brightness, above
        which the penalty smooths less (a positive number; default 0.05)
    iterations: Largest number of iterations (1 to 100000; default 30)
    tolerance: Relative residual (FISTA, L+S: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 1e-05)
    """

@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["wavelet"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    lambda_: float | Literal["auto"] = ...,
    iterations: int = ...,
    tolerance: float = ...,
    wavelet: Literal["haar", "db2"] = ...,
    wavelet_levels: int | None = ...,
    wavelet_seed: int = ...,
) -> Reconstruction:
    """One image seen by all coils with few wavelet coefficients (L1-wavelet, FISTA).

    lambda_: Weight of the penalty, relative to the largest eigenvalue of the normal operator; with an L1 penalty
        also to the image's brightness (99th percentile) (a finite number >= 0; default 0.003)
    iterations: Largest number of iterations (1 to 100000; default 50)
    tolerance: Relative residual (FISTA, L+S: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 0.0001)
    wavelet: Wavelet family (haar, db2; default db2)
    wavelet_levels: Largest number of wavelet levels per axis (at least 1)
    wavelet_seed: Seed of the random shifts of the wavelet transform
    """

@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["tv"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    lambda_: float | Literal["auto"] = ...,
    iterations: int = ...,
    tolerance: float = ...,
    anatomy: ArrayLike | None = ...,
    anatomy_edge: float = ...,
) -> Reconstruction:
    """One image seen by all coils with few edges (total variation, FISTA).

    lambda_: Weight of the penalty, relative to the largest eigenvalue of the normal operator; with an L1 penalty
        also to the image's brightness (99th percentile) (a finite number >= 0; default 0.002)
    iterations: Largest number of iterations (1 to 100000; default 100)
    tolerance: Relative residual (FISTA, L+S: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 0.0003)
    anatomy: Reference image of the same matrix; the penalty smooths less across its edges (needs
        regulariser="differences" or method="tv")
    anatomy_edge: Difference between neighbours in the reference image, as a fraction of its brightness, above
        which the penalty smooths less (a positive number; default 0.05)
    """

@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["low-rank-sparse"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    low_rank: float = ...,
    sparse: float = ...,
    iterations: int = ...,
    tolerance: float = ...,
) -> Reconstruction:
    """All images of a series together: a low-rank background plus a moving part of few temporal frequencies (L+S).

    low_rank: Weight of the background's nuclear norm (not a rank), relative to its largest singular value (a
        finite number >= 0; default 0.004)
    sparse: Weight of the moving part's temporal frequencies (L1 norm), relative to the images' brightness (99th
        percentile) (a finite number >= 0; default 0.01)
    iterations: Largest number of iterations (1 to 100000; default 50)
    tolerance: Relative residual (FISTA, L+S: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 0.001)
    """

# End of recon
@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: None = None,
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    # Of all methods
    trajectory: str | PathLike[str] | None = None,
    trajectory_units: str | None = None,
    sequence: str | PathLike[str] | None = None,
    trajectory_fov: Literal["encoded", "recon"] | None = None,
    trajectory_weights: bool = False,
    matrix: Sequence[int] | None = None,
    fov_mm: float | Sequence[float] | None = None,
    order: str | None = None,
    encoding: int | None = None,
    slices: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    readouts: int | Sequence[int] | None = None,
    contrasts: int | Sequence[int] | None = None,
    cardiac_phases: int | Sequence[int] | None = None,
    sets: int | Sequence[int] | None = None,
    averages: int | Sequence[int] | None = None,
    window: int | None = None,
    stride: int | None = None,
    windows: int | None = None,
    basis: Array | None = None,
    echo_times_ms: float | Sequence[float] | None = None,
    independent: bool = False,
    centre_line: int | None = None,
    centre_partition: int | None = None,
    reversed_centre: Literal["stored", "forward"] | None = None,
    ramp_sampling: Literal["regrid", "none"] | None = None,
    epi_phase: Literal["linear", "constant", "none"] | None = None,
    epi_reference: Literal["auto", "readouts", "entropy"] | None = None,
    maps: Array | None = None,
    intensity: bool = False,
    sensitivities: Literal["walsh", "espirit"] | None = None,
    map_sets: int | None = None,
    map_crop: float | None = None,
    calibration: int | None = None,
    coils: float | None = None,
    compression: Literal["svd", "geometric"] | None = None,
    prewhiten: bool = True,
    noise_covariance: Array | None = None,
    field_map: Array | None = None,
    field_tolerance: float | None = None,
    dwell_us: float | None = None,
    nufft_tolerance: float | None = None,
    density: Literal["pipe-menon", "radial"] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    cache: str | PathLike[str] | None = None,
    combine: Literal["rss", "maps", "none"] | None = ...,
    partial_fourier: Literal["pocs", "homodyne", "none"] | None = ...,
    lambda_: float | Literal["auto"] = ...,
    regulariser: Literal["none", "identity", "differences"] = ...,
    anatomy: ArrayLike | None = ...,
    anatomy_edge: float = ...,
    iterations: int = ...,
    tolerance: float = ...,
    wavelet: Literal["haar", "db2"] = ...,
    wavelet_levels: int | None = ...,
    wavelet_seed: int = ...,
    low_rank: float = ...,
    sparse: float = ...,
) -> Reconstruction: ...
def plan_recon(
    scan: Scan | str | PathLike[str], method: str | None = None, *, device: str = "auto", **options: Any
) -> dict[str, Any]: ...
def stream_recon(
    scan: Scan | str | PathLike[str], method: str | None = None, *, device: str = "auto", **options: Any
) -> Images: ...
def recon_options(kind: str) -> dict[str, dict[str, Any]]: ...

@final
class Images:
    """The images of a scan as they are made."""

    def __iter__(self) -> Images: ...
    def __next__(self) -> NDArray[np.complex64]: ...
    def close(self) -> None: ...
    @property
    def method(self) -> str | None: ...
    @property
    def notes(self) -> list[str]: ...

@final
class Image:
    """An image and its place in the patient."""

    def __new__(
        cls,
        data: Array,
        *,
        spacing_mm: float | Sequence[float] | None = None,
        position_mm: Sequence[float] | None = None,
        directions: Sequence[Sequence[float]] | None = None,
        hounsfield: bool = False,
    ) -> Image: ...
    @property
    def data(self) -> NDArray[Any]: ...
    @property
    def hounsfield(self) -> bool: ...
    @property
    def repetition_time_s(self) -> float | None: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def spacing_mm(self) -> list[float]: ...
    @property
    def position_mm(self) -> list[float]: ...
    @property
    def directions(self) -> list[list[float]]: ...
    @property
    def stacks(self) -> list[dict[str, Any]]: ...
    def save(
        self, path: str | PathLike[str], *, dicom_template: str | PathLike[str] | None = None
    ) -> list[str]: ...

def read_image(path: str | PathLike[str]) -> Image: ...
def filters() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]: ...
@overload
def filter(image: Image, name: str, *, device: str = "auto", progress: Heard = None, **parameters: Any) -> Image: ...
@overload
def filter(
    image: Array, name: str, *, device: str = "auto", progress: Heard = None, **parameters: Any
) -> NDArray[np.float32]: ...
def methods() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]: ...
def command(arguments: Sequence[str]) -> int: ...

@final
class Claim:
    """A claim on outputs, which nobody else gets meanwhile."""

    def release(self) -> None: ...

def claim(outputs: Sequence[str | PathLike[str]]) -> Claim | None: ...
def read_files(path: str | PathLike[str]) -> list[tuple[str, int, str]]: ...
def written_files(path: str | PathLike[str], stacks: int) -> list[tuple[str, int, str]]: ...
def gpus() -> int: ...
def set_threads(threads: int) -> None: ...
def threads() -> int: ...

@final
class LinearOperator:
    """A linear map A between arrays, with its adjoint."""

    __array_ufunc__: None
    @overload
    def __call__(self, x: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]: ...
    @overload
    def __call__(self, x: Array, out: Array | None = None) -> Any: ...
    @overload
    def __matmul__(self, value: LinearOperator, /) -> LinearOperator: ...
    @overload
    def __matmul__(self, value: NDArray[Number], /) -> NDArray[Number]: ...
    @overload
    def __matmul__(self, value: Array, /) -> Any: ...
    @overload
    def __mul__(self, value: complex | LinearOperator, /) -> LinearOperator: ...
    @overload
    def __mul__(self, value: NDArray[Number], /) -> NDArray[Number]: ...
    @overload
    def __mul__(self, value: Array, /) -> Any: ...
    def __rmul__(self, value: complex, /) -> LinearOperator: ...
    def __truediv__(self, value: complex, /) -> LinearOperator: ...
    def __rtruediv__(self, value: LinearOperator, /) -> LinearOperator: ...
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
    def __copy__(self) -> LinearOperator: ...
    def __deepcopy__(self, memo: Any) -> LinearOperator: ...

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

    @overload
    def __call__(self, t: float, x: NDArray[Number]) -> NDArray[Number]: ...
    @overload
    def __call__(self, t: float, x: Array) -> Any: ...

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
    start: Array | None = None,
    iterations: int = 30,
    tolerance: float = 1e-4,
    largest_eigenvalue: float | None = None,
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
    balance: float | None = None,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution: ...
def largest_eigenvalue(a: LinearOperator, *, tolerance: float = 1e-3) -> float: ...

@final
class CtGeometry:
    """The rays of a CT scan: a detector and its place in each view."""

    @classmethod
    def parallel(
        cls,
        angles: ArrayLike,
        rows: int,
        columns: int,
        pitch_mm: float | Sequence[float] | None = None,
        *,
        axis: float | None = None,
        offset_mm: Sequence[float] | None = None,
        tilt: float = 0.0,
        height_mm: float = 0.0,
    ) -> CtGeometry: ...
    @classmethod
    def cone(
        cls,
        angles: ArrayLike,
        rows: int,
        columns: int,
        pitch_mm: float | Sequence[float] | None = None,
        *,
        source_to_axis_mm: float,
        axis_to_detector_mm: float,
        curved: bool = False,
        axis: float | None = None,
        offset_mm: Sequence[float] | None = None,
        tilt: float = 0.0,
        height_mm: float = 0.0,
    ) -> CtGeometry: ...
    @classmethod
    def helix(
        cls,
        angles: ArrayLike,
        rows: int,
        columns: int,
        pitch_mm: float | Sequence[float] | None = None,
        *,
        source_to_axis_mm: float,
        axis_to_detector_mm: float,
        advance_mm: float,
        curved: bool = False,
        axis: float | None = None,
        offset_mm: Sequence[float] | None = None,
        tilt: float = 0.0,
        height_mm: float = 0.0,
    ) -> CtGeometry: ...
    @classmethod
    def from_vectors(
        cls,
        vectors: ArrayLike,
        rows: int,
        columns: int,
        *,
        parallel: bool = False,
        radius_mm: float | None = None,
    ) -> CtGeometry: ...
    @classmethod
    def read_rtk(
        cls,
        path: str | PathLike[str],
        rows: int,
        columns: int,
        pitch_mm: float | Sequence[float] | None = None,
    ) -> CtGeometry: ...
    def select(self, views: Sequence[int]) -> CtGeometry: ...
    def grid(
        self,
        matrix: Sequence[int] | None = None,
        voxel_mm: float | Sequence[float] | None = None,
        centre_mm: Sequence[float] | None = None,
    ) -> CtGrid: ...
    def pixel_mm(self, view: int, row: float, column: float) -> tuple[float, float, float]: ...
    def project(self, view: int, point_mm: Sequence[float]) -> tuple[float, float] | None: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def pitch_mm(self) -> tuple[float, float]: ...
    @property
    def radius_mm(self) -> float | None: ...
    @property
    def is_parallel(self) -> bool: ...
    @property
    def angles(self) -> NDArray[np.float64]: ...
    @property
    def vectors(self) -> NDArray[np.float64]: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __copy__(self) -> CtGeometry: ...
    def __deepcopy__(self, _memo: Any) -> CtGeometry: ...

@final
class CtGrid:
    """The voxels of a CT volume."""

    def __new__(
        cls,
        shape: Sequence[int],
        spacing_mm: float | Sequence[float],
        centre_mm: Sequence[float] | None = None,
    ) -> CtGrid: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def spacing_mm(self) -> tuple[float, float, float]: ...
    @property
    def centre_mm(self) -> tuple[float, float, float]: ...
    @property
    def first_mm(self) -> tuple[float, float, float]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class CtProjector:
    """The line integrals of a volume along the rays of a scan, and their transpose."""

    def __new__(
        cls, geometry: CtGeometry, grid: CtGrid, *, device: str = "auto", dtype: Any = None
    ) -> CtProjector: ...
    @overload
    def forward(self, volume: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]: ...
    @overload
    def forward(self, volume: Array, out: Array | None = None) -> Any: ...
    @overload
    def adjoint(self, projections: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]: ...
    @overload
    def adjoint(self, projections: Array, out: Array | None = None) -> Any: ...
    @property
    def geometry(self) -> CtGeometry: ...
    @property
    def grid(self) -> CtGrid: ...
    @property
    def operator(self) -> LinearOperator: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    def __copy__(self) -> CtProjector: ...
    def __deepcopy__(self, _memo: Any) -> CtProjector: ...

@final
class CtScan:
    """A CT scan: line integrals or counts, angles and rays."""

    @classmethod
    def from_arrays(
        cls,
        projections: Any,
        geometry: CtGeometry | None = None,
        *,
        angles: ArrayLike | None = None,
        flats: Any = None,
        darks: Any = None,
    ) -> CtScan: ...
    def with_geometry(self, geometry: CtGeometry) -> CtScan: ...
    def select(
        self,
        views: slice | Sequence[int] | None = None,
        rows: slice | Sequence[int] | None = None,
        columns: slice | Sequence[int] | None = None,
    ) -> CtScan: ...
    def line_integrals(
        self, *, correct: Corrections | None = None, device: str = "auto"
    ) -> NDArray[np.float32]: ...
    def find_axis(self, *, device: str = "auto") -> float: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @property
    def projections(self) -> NDArray[np.float32]: ...
    @property
    def flats(self) -> NDArray[np.float32] | None: ...
    @property
    def darks(self) -> NDArray[np.float32] | None: ...
    @property
    def angles(self) -> NDArray[np.float64]: ...
    @property
    def geometry(self) -> CtGeometry | None: ...
    @property
    def pixel_mm(self) -> tuple[float, float] | None: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def notes(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __copy__(self) -> CtScan: ...
    def __deepcopy__(self, _memo: Any) -> CtScan: ...

@final
class CtReconstruction:
    """A volume of a CT scan, and how it came about."""

    @property
    def volume(self) -> NDArray[np.float32]: ...
    @property
    def grid(self) -> CtGrid: ...
    @property
    def geometry(self) -> CtGeometry: ...
    @property
    def axis(self) -> float | None: ...
    @property
    def method(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def stages(self) -> list[tuple[str, float]]: ...
    @property
    def residuals(self) -> list[float]: ...
    @property
    def certificates(self) -> list[dict[str, Any]]: ...
    @property
    def record(self) -> dict[str, Any]: ...
    def save(
        self, path: str | PathLike[str], *, dicom_template: str | PathLike[str] | None = None
    ) -> list[str]: ...
    def _repr_html_(self) -> str: ...

def read_ct_scan(
    path: str | PathLike[str],
    *,
    geometry: CtGeometry | None = None,
    arc: float | None = None,
    flats: Any = None,
    darks: Any = None,
) -> CtScan: ...
# Made by stubs.py: recon_ct
@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: Literal["fbp"],
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    window: Literal["ram-lak", "shepp-logan", "cosine", "hamming", "hann"] = ...,
    cutoff: float = ...,
    extend: Literal["auto", "none", "edge", "cylinder"] = ...,
) -> CtReconstruction:
    """Filtered back-projection of parallel and fan beams on a circle.

    window: Window by which the ramp filter is multiplied (ram-lak, shepp-logan, cosine, hamming, hann; default
        ram-lak)
    cutoff: Frequency at which the window ends, as a part of the highest frequency; lower values smooth (above 0
        and at most 1; default 1.0)
    extend: How rows go on beyond the detector before they are filtered, where it does not see the whole object
        (auto, none, edge, cylinder; default auto)
    """

@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: Literal["fdk"],
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    window: Literal["ram-lak", "shepp-logan", "cosine", "hamming", "hann"] = ...,
    cutoff: float = ...,
    extend: Literal["auto", "none", "edge", "cylinder"] = ...,
) -> CtReconstruction:
    """Filtered back-projection of cone beams on a circle (Feldkamp, Davis, Kress).

    window: Window by which the ramp filter is multiplied (ram-lak, shepp-logan, cosine, hamming, hann; default
        ram-lak)
    cutoff: Frequency at which the window ends, as a part of the highest frequency; lower values smooth (above 0
        and at most 1; default 1.0)
    extend: How rows go on beyond the detector before they are filtered, where it does not see the whole object
        (auto, none, edge, cylinder; default auto)
    """

@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: Literal["fourier"],
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    window: Literal["ram-lak", "shepp-logan", "cosine", "hamming", "hann"] = ...,
    cutoff: float = ...,
    extend: Literal["auto", "none", "edge", "cylinder"] = ...,
    accuracy: float = ...,
) -> CtReconstruction:
    """Filtered back-projection of parallel rays through Fourier space: the fastest for several slices.

    window: Window by which the ramp filter is multiplied (ram-lak, shepp-logan, cosine, hamming, hann; default
        ram-lak)
    cutoff: Frequency at which the window ends, as a part of the highest frequency; lower values smooth (above 0
        and at most 1; default 1.0)
    extend: How rows go on beyond the detector before they are filtered, where it does not see the whole object
        (auto, none, edge, cylinder; default auto)
    accuracy: Relative error of the non-uniform transform (1e-6 to 0.1; default 0.0001)
    """

@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: Literal["cgls"],
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    iterations: int = ...,
    tolerance: float = ...,
) -> CtReconstruction:
    """Least squares by conjugate gradients (CGLS); few iterations.

    iterations: Largest number of iterations (1 to 100000; default 10)
    tolerance: Relative residual (TV: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 0.0001)
    """

@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: Literal["sirt"],
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    iterations: int = ...,
    tolerance: float = ...,
    relaxation: float = ...,
) -> CtReconstruction:
    """All rays update the volume at once (SIRT); slow and smooth.

    iterations: Largest number of iterations (1 to 100000; default 100)
    tolerance: Relative residual (TV: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 0.0)
    relaxation: Part of the full step that each update takes; less is slower and less noisy (above 0 and below 2;
        default 1.0)
    """

@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: Literal["os-sart"],
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    iterations: int = ...,
    tolerance: float = ...,
    relaxation: float = ...,
    subsets: int = ...,
) -> CtReconstruction:
    """Subsets of views update the volume one after another (OS-SART, SART).

    iterations: Largest number of iterations (1 to 100000; default 10)
    tolerance: Relative residual (TV: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 0.0)
    relaxation: Part of the full step that each update takes; less is slower and less noisy (above 0 and below 2;
        default 1.0)
    subsets: Number of subsets of views, each of which updates the volume; at most the number of views (1 to
        100000; default 15)
    """

@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: Literal["mlem"],
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    iterations: int = ...,
    tolerance: float = ...,
) -> CtReconstruction:
    """Expectation maximisation (MLEM): no negative numbers.

    iterations: Largest number of iterations (1 to 100000; default 50)
    tolerance: Relative residual (TV: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 0.0)
    """

@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: Literal["tv"],
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    lambda_: float = ...,
    iterations: int = ...,
    tolerance: float = ...,
) -> CtReconstruction:
    """A volume with few edges (total variation, FISTA); for few views.

    lambda_: Weight of the penalty, relative to the largest eigenvalue of AᵀA and to the volume's brightness (99th
        percentile) (a finite number >= 0; default 0.003)
    iterations: Largest number of iterations (1 to 100000; default 100)
    tolerance: Relative residual (TV: relative change) at which iterations stop; 0 runs all of them (0 <=
        tolerance < 1; default 0.0001)
    """

# End of recon_ct
@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: None = None,
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    progress: Heard = None,
    # Of all methods
    matrix: Sequence[int] | None = None,
    voxel_mm: float | Sequence[float] | None = None,
    centre_mm: float | Sequence[float] | None = None,
    stream: bool = False,
    preview: str | PathLike[str] | None = None,
    views: int | Sequence[int] | None = None,
    rows: int | Sequence[int] | None = None,
    flats: Array | None = None,
    darks: Array | None = None,
    columns: int | Sequence[int] | None = None,
    axis: float | Literal["find"] | None = None,
    arc: float | None = None,
    pixel_mm: float | Sequence[float] | None = None,
    source_to_axis_mm: float | None = None,
    axis_to_detector_mm: float | None = None,
    rtk: str | PathLike[str] | None = None,
    certify: int | bool | None = None,
    certify_seed: int | None = None,
    memory: int | None = None,
    window: Literal["ram-lak", "shepp-logan", "cosine", "hamming", "hann"] = ...,
    cutoff: float = ...,
    extend: Literal["auto", "none", "edge", "cylinder"] = ...,
    accuracy: float = ...,
    iterations: int = ...,
    tolerance: float = ...,
    relaxation: float = ...,
    subsets: int = ...,
    lambda_: float = ...,
) -> CtReconstruction: ...
def plan_recon_ct(
    scan: CtScan | str | PathLike[str],
    method: str | None = None,
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    **options: Any,
) -> dict[str, Any]: ...
def ct_methods() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]: ...
def ct_corrections() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]: ...

@final
class Quality:
    """The metrics of an image against the truth."""

    @property
    def nrmse(self) -> float: ...
    @property
    def error_percent(self) -> float: ...
    @property
    def mse(self) -> float: ...
    @property
    def psnr_db(self) -> float: ...
    @property
    def snr_db(self) -> float: ...
    @property
    def ssim(self) -> float | None: ...
    @property
    def max_error(self) -> float: ...
    @property
    def reference_max(self) -> float: ...
    @property
    def voxels(self) -> int: ...
    @property
    def compared(self) -> str: ...
    @property
    def scale(self) -> complex: ...
    @property
    def rule(self) -> str: ...
    @property
    def hint(self) -> str | None: ...

def compare(
    image: Any, truth: Any, *, magnitude: bool = False, fit: bool = False, mask: Any = None
) -> Quality: ...
def nrmse(image: Any, truth: Any) -> float: ...
def ssim(image: Any, truth: Any) -> float: ...
def psnr(image: Any, truth: Any) -> float: ...

@final
class MriSimulation:
    """A simulated MRI scan and what is in it."""

    @property
    def scan(self) -> Scan: ...
    @property
    def truth(self) -> NDArray[np.complex64]: ...
    @property
    def maps(self) -> NDArray[np.complex64]: ...
    @property
    def field_hz(self) -> NDArray[np.float32] | None: ...
    @property
    def noise_std(self) -> float: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def spacing_mm(self) -> tuple[float, float, float]: ...

@final
class CtSimulation:
    """A simulated CT scan and what is in it."""

    @property
    def scan(self) -> CtScan: ...
    @property
    def truth(self) -> NDArray[np.float32]: ...
    @property
    def grid(self) -> CtGrid: ...

def simulate_mri(
    *,
    progress: Heard = None,
    # Made by stubs.py: options of mri
    matrix: Any = ...,
    fov: Any = ...,
    dims: Any = ...,
    coils: Any = ...,
    phantom: Literal["shepp-logan", "thorax"] | None = ...,
    contrast: Literal["standard", "modified"] | None = ...,
    repetitions: Any = ...,
    dynamics: Literal["beat", "enhance"] | None = ...,
    period: Any = ...,
    tr: Any = ...,
    window: Any = ...,
    stride: Any = ...,
    trajectory: Literal["cartesian", "poisson", "radial", "spiral", "epi", "kooshball", "stack-of-stars", "stack-of-spirals", "random"] | None = ...,
    shots: Any = ...,
    angles: Literal["uniform", "golden"] | None = ...,
    acceleration: Any = ...,
    calibration: Any = ...,
    density_slope: Any = ...,
    samples: Any = ...,
    oversampling: Any = ...,
    gradient: Any = ...,
    slew: Any = ...,
    dwell: Any = ...,
    snr: Any = ...,
    noise_readouts: Any = ...,
    noise_correlation: Any = ...,
    seed: Any = ...,
    field_map_hz: Any = ...,
    field_shape: Literal["linear", "quadratic", "smooth"] | None = ...,
    # End of options of mri
) -> MriSimulation: ...
def simulate_ct(
    *,
    progress: Heard = None,
    # Made by stubs.py: options of ct
    geometry: Literal["parallel", "fan", "cone", "helix"] | None = ...,
    views: Any = ...,
    arc: Any = ...,
    detector: Any = ...,
    pixel: Any = ...,
    source_to_axis: Any = ...,
    axis_to_detector: Any = ...,
    curved: bool = ...,
    offset: Any = ...,
    tilt: Any = ...,
    advance: Any = ...,
    phantom: Literal["shepp-logan", "forbild", "defrise"] | None = ...,
    contrast: Literal["standard", "modified"] | None = ...,
    attenuation: Any = ...,
    matrix: Any = ...,
    fov: Any = ...,
    motion: Any = ...,
    cycles: Any = ...,
    kilovolts: Any = ...,
    lines: bool = ...,
    rays: Any = ...,
    photons: Any = ...,
    electronic: Any = ...,
    dark: Any = ...,
    gain: Any = ...,
    drift: Any = ...,
    frames: Any = ...,
    seed: Any = ...,
    # End of options of ct
) -> CtSimulation: ...
def simulate_options(kind: Literal["mri", "ct"]) -> dict[str, dict[str, Any]]: ...
def render_volume(
    mode: str,
    volume: Any,
    spacing_mm: float | Sequence[float],
    *,
    device: str = "auto",
    transfer: ArrayLike | None = None,
    progress: Heard = None,
    **options: Any,
) -> Any: ...
def render_options() -> dict[str, dict[str, Any]]: ...
