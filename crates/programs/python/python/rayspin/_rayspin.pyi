# Made by stubs.py of the compiled module, whose help states the types.

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
    "open_device",
    "pdhg",
    "plan_recon",
    "plan_recon_ct",
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

@final
class Claim:
    """A claim on outputs, which nobody else gets meanwhile: what `claim` returns."""
    def release(self) -> None:
        """Gives the claim up."""

@final
class CtGeometry:
    """The rays of a CT scan: a detector and its place in each view.

    The axis of rotation is z and passes through the origin. At angle 0 rays run along +y, columns of the
    detector are numbered along +x and rows along +z. The angle grows from x to y. Angles are in radian,
    lengths in mm, projections are arrays `[view, row, column]`. `parallel`, `cone` and `helix` turn source
    and detector together around z:

        source   = -source_to_axis e2 + h e3            (parallel rays run along e2)
        detector = axis_to_detector e2 + offset_u e1 + (h + offset_v) e3
        u = cos(tilt) e1 + sin(tilt) e3,  v = -sin(tilt) e1 + cos(tilt) e3

    with e1 = (cos, sin, 0), e2 = (-sin, cos, 0), e3 = (0, 0, 1) and the height h. `from_vectors` takes any
    path.

    >>> import numpy as np
    >>> from rayspin import ct
    >>> angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    >>> rays = ct.Geometry.cone(angles, 3, 5, 2.0, source_to_axis_mm=600, axis_to_detector_mm=400)
    >>> rays.shape
    (8, 3, 5)
    >>> rays.vectors[0, :6].tolist()  # the source, the middle of the detector
    [0.0, -600.0, 0.0, 0.0, 400.0, 0.0]
    """
    def __copy__(self) -> CtGeometry:
        """The geometry itself, which never changes."""
    def __deepcopy__(self, _memo: Any) -> CtGeometry:
        """As `__copy__`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self) -> int: ...
    @property
    def angles(self) -> NDArray[np.float64]:
        """The angle of each view, radian."""
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
    ) -> CtGeometry:
        """A cone beam on a circle; a fan beam with one row.

        source_to_axis_mm, axis_to_detector_mm: distances in mm. curved: bends the detector around the source.
        The rest, and what it returns and raises, is as for `parallel`.
        """
    @classmethod
    def from_vectors(
        cls,
        vectors: ArrayLike,
        rows: int,
        columns: int,
        *,
        parallel: bool = False,
        radius_mm: float | None = None,
    ) -> CtGeometry:
        """Any path: the vectors `[view, 12]` of ASTRA's `cone_vec`, or of `parallel3d_vec` if `parallel`. Each
        row has the source (or the direction of the rays), the middle of the detector, the step from a pixel
        to its neighbour along a row, and along a column. These need not be at right angles on a flat
        detector, whose projections iterative methods take.

        rows, columns: the detector's pixels. radius_mm: of a detector that is bent. Returns a `Geometry`,
        lengths in the vectors' unit, mm. Raises ValueError for another shape and for vectors that make no
        detector.
        """
    def grid(
        self,
        matrix: Sequence[int] | None = None,
        voxel_mm: float | Sequence[float] | None = None,
        centre_mm: Sequence[float] | None = None,
    ) -> CtGrid:
        """The voxels that the detector resolves at the axis, or as many and as large as `matrix` (x, y, z),
        `voxel_mm` and `centre_mm` (from the axis and the middle of the orbit) say.

        Returns a `Grid`. Raises ValueError for numbers out of range, TypeError for arguments of another type.
        """
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
    ) -> CtGeometry:
        """A cone beam on a helix.

        advance_mm: the height that the helix gains in a turn; the middle view has the height `height_mm`. The
        rest, and what it returns and raises, is as for `cone`.
        """
    @property
    def is_parallel(self) -> bool:
        """Whether the rays of a view are parallel."""
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
    ) -> CtGeometry:
        """Parallel rays.

        angles: one for each view in radian, `[view]`.
        rows, columns: the numbers of the detector's pixels.
        pitch_mm: the distance between pixels, one length or (along columns, along rows); 1 mm unless given.
        axis: the column on which the axis of rotation falls, counted from 0; the middle one unless given.
        offset_mm: the shift (u, v) of the detector. tilt: its rotation in its plane in radian. height_mm: h.

        Returns a `Geometry`. Raises ValueError for numbers out of range or not finite, TypeError for
        arguments of another type. Warns of angles that look like degrees.
        """
    @property
    def pitch_mm(self) -> tuple[float, float]:
        """Distance between pixels along columns and rows (u, v) in mm."""
    def pixel_mm(self, view: int, row: float, column: float) -> tuple[float, float, float]:
        """Returns the centre of a pixel, (x, y, z) in mm. Rows and columns are counted from 0 and may lie
        between pixels. Raises ValueError for a view that there is not.
        """
    def project(self, view: int, point_mm: Sequence[float]) -> tuple[float, float] | None:
        """Returns the row and column at which the ray through a point (x, y, z) in mm meets the detector; None
        where it does not. Raises ValueError for a view that there is not.
        """
    @property
    def radius_mm(self) -> float | None:
        """Radius of a curved detector in mm; none where it is flat."""
    @classmethod
    def read_rtk(
        cls,
        path: str | PathLike[str],
        rows: int,
        columns: int,
        pitch_mm: float | Sequence[float] | None = None,
    ) -> CtGeometry:
        """The rays of a geometry file of RTK (XML); the middle of the detector is the origin of RTK's
        projections.

        Returns a `Geometry`. Raises FileNotFoundError or another OSError where the system refuses the file,
        ValueError for another file.
        """
    def select(self, views: Sequence[int]) -> CtGeometry:
        """The rays of some of the views, numbers from 0, in this order.

        Returns a `Geometry`. Raises ValueError for a view that there is not.
        """
    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of projections, (views, rows, columns)."""
    @property
    def vectors(self) -> NDArray[np.float64]:
        """Source or direction, detector, u and v of each view, `[view, 12]`, as `from_vectors` takes them."""

@final
class CtGrid:
    """The voxels of a volume `[z, y, x]`: their number `shape`, their size `spacing_mm` along (x, y, z), and the
    middle of their box `centre_mm` (x, y, z), in the coordinates of `Geometry`.

    The centre of voxel `[k, j, i]` lies at centre + ((i, j, k) - (n - 1)/2) spacing.

    >>> from rayspin import ct
    >>> ct.Grid((1, 4, 5), (0.5, 0.5, 2.0), (0, 0, 10)).first_mm
    (-1.0, -0.75, 10.0)
    """
    def __new__(
        cls,
        shape: Sequence[int],
        spacing_mm: float | Sequence[float],
        centre_mm: Sequence[float] | None = None,
    ) -> CtGrid: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def centre_mm(self) -> tuple[float, float, float]:
        """The middle of the box, (x, y, z) in mm."""
    @property
    def first_mm(self) -> tuple[float, float, float]:
        """The centre of voxel `[0, 0, 0]`, (x, y, z) in mm."""
    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of voxels along (z, y, x), the shape of volumes."""
    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Voxel size along (x, y, z) in mm."""

@final
class CtProjector:
    """The line integrals of a volume `[z, y, x]` along the rays of a scan, `[view, row, column]`, by Joseph's
    method:

        p(ray) = l sum_i w_i f(i, b_i, c_i)

    The ray crosses plane i of voxels at (b_i, c_i), where f is linear between four voxels; l is its length
    between two planes in mm. Line integrals of an attenuation in 1/mm have no unit. `adjoint` is the exact
    transpose, with the same weights. float64 works on a CPU only.

    Arrays come from NumPy, CuPy, torch or another library with DLPack. They have C order and the projector's
    dtype, and are used where they lie. An array of another shape raises a ValueError, of another dtype or
    device a TypeError.

    >>> import numpy as np
    >>> from rayspin import ct
    >>> rays = ct.Geometry.parallel(np.linspace(0, np.pi, 4, endpoint=False), 1, 9)
    >>> project = ct.Projector(rays, ct.Grid((1, 8, 8), 1.0), device="cpu")
    >>> water = np.full((1, 8, 8), 0.02, np.float32)  # 1/mm
    >>> projections = project.forward(water)
    >>> round(float(projections[0, 0, 4]), 5)  # the middle ray is 8 mm long
    0.16
    >>> back = project.adjoint(projections)
    >>> bool(np.isclose(np.vdot(projections, projections), np.vdot(water, back)))
    True
    """
    def __new__(
        cls,
        geometry: CtGeometry,
        grid: CtGrid,
        *,
        device: str = "auto",
        dtype: Any = None,
    ) -> CtProjector: ...
    def __copy__(self) -> CtProjector:
        """The projector itself, which never changes."""
    def __deepcopy__(self, _memo: Any) -> CtProjector:
        """As `__copy__`."""
    @overload
    def adjoint(self, projections: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]:
        """The exact transpose of `forward`: <forward(a), b> = <a, adjoint(b)>.

        projections: `[view, row, column]`. out: an array that takes the result and is returned; a new one
            unless given.

        Returns `[z, y, x]` of the projector's dtype, in the projections' unit times mm. Raises as `forward`.
        """
    @overload
    def adjoint(self, projections: Array, out: Array | None = None) -> Any: ...
    @property
    def device(self) -> str:
        """Where the projector computes: cpu, cuda:0 and so on."""
    @property
    def dtype(self) -> str:
        """The name of the element type: float32 or float64."""
    @overload
    def forward(self, volume: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]:
        """The line integrals p(ray) of a volume.

        volume: `[z, y, x]`, for example in 1/mm. out: an array that takes the result and is returned; a new
            one unless given.

        Returns `[view, row, column]` of the projector's dtype, an array of the library that `volume` is of.
        Raises ValueError for another shape or order, TypeError for another dtype or device, what is no array,
        and a tensor of torch that requires a gradient.
        """
    @overload
    def forward(self, volume: Array, out: Array | None = None) -> Any: ...
    @property
    def geometry(self) -> CtGeometry:
        """The rays."""
    @property
    def grid(self) -> CtGrid:
        """The voxels."""
    @property
    def operator(self) -> LinearOperator:
        """The projector as an operator of `rayspin.linop`."""

@final
class CtReconstruction:
    """A volume of a CT scan, and how it came about: what `rayspin.ct.recon` returns."""
    def _repr_html_(self) -> str:
        """The picture and the notes, for notebooks."""
    @property
    def axis(self) -> float | None:
        """The column on which the axis falls, where it was given or found."""
    @property
    def certificates(self) -> list[dict[str, Any]]:
        """What `certify` measured: for each transform a dictionary with "transform", "outputs", "error",
        "largest", "tolerance" and "met".
        """
    @property
    def geometry(self) -> CtGeometry:
        """The rays that were used."""
    @property
    def grid(self) -> CtGrid:
        """The voxels."""
    @property
    def method(self) -> str:
        """The method's name."""
    @property
    def notes(self) -> list[str]:
        """What was assumed, one sentence each."""
    @property
    def parameters(self) -> dict[str, Any]:
        """The method's parameters, as they were used."""
    @property
    def record(self) -> dict[str, Any]:
        """The run record, as the command writes it: program, version, device, parameters, stages, residuals,
            notes.
        """
    @property
    def residuals(self) -> list[float]:
        """The relative residuals of the iterations, from 1 on; empty for methods that do not iterate."""
    def save(
        self,
        path: str | PathLike[str],
        *,
        dicom_template: str | PathLike[str] | None = None,
    ) -> list[str]:
        """Writes `volume`, as it stands now, in the format of the file's name (`.nii.gz`, `.npy`, `.png`), any
        that `rayspin convert` writes.

        dicom_template: a DICOM file whose patient and study a .dicom takes over; by default it names none.

        Returns notes on what the format cannot hold. Raises ValueError for a name of no format that holds
        images, for a file from which the scan was read and for a file that is no template, OSError
        (FileNotFoundError, PermissionError) for a file that cannot be written.
        """
    @property
    def stages(self) -> list[tuple[str, float]]:
        """Seconds of each stage, in their order."""
    @property
    def volume(self) -> NDArray[np.float32]:
        """The attenuation in 1/mm, float32 `[z, y, x]`; in Hounsfield units after the correction `hounsfield`."""

@final
class CtScan:
    """A CT scan: line integrals, or counts of photons with the flat and dark fields of the detector; the angles,
    and the rays where they are known. Properties return copies of arrays.

    >>> import numpy as np
    >>> from rayspin import ct
    >>> rays = ct.Geometry.parallel(np.linspace(0, np.pi, 4, endpoint=False), 2, 8)
    >>> counts = np.full((4, 2, 8), 50, np.uint16)
    >>> scan = ct.Scan.from_arrays(counts, rays, flats=100)
    >>> scan.shape, round(float(scan.line_integrals(device="cpu")[0, 0, 0]), 4)  # -ln(50 / 100)
    ((4, 2, 8), 0.6931)
    """
    def __copy__(self) -> CtScan:
        """The scan itself, which never changes."""
    def __deepcopy__(self, _memo: Any) -> CtScan:
        """As `__copy__`."""
    def __len__(self) -> int: ...
    @property
    def angles(self) -> NDArray[np.float64]:
        """The angle of each view, radian."""
    @property
    def darks(self) -> NDArray[np.float32] | None:
        """Dark fields `[frame, row, column]`; none where the projections are line integrals."""
    def find_axis(self, *, device: str = "auto") -> float:
        """The column on which the axis of rotation falls in the middle row of parallel rays, counted from 0 at
        the middle of the first column. Views cover half a turn or more; their steps may be uneven.

        Returns a float, in columns. Raises ValueError for a fan or cone beam, for other views, and where the
        views do not show an axis.
        """
    @property
    def flats(self) -> NDArray[np.float32] | None:
        """Flat fields `[frame, row, column]`; none where the projections are line integrals."""
    @classmethod
    def from_arrays(
        cls,
        projections: Any,
        geometry: CtGeometry | None = None,
        *,
        angles: ArrayLike | None = None,
        flats: Any = None,
        darks: Any = None,
    ) -> CtScan:
        """A scan of `projections` `[view, row, column]` or `[view, column]`: line integrals, or counts if
        `flats` are given. Flat fields (without the object) and dark fields (without the beam; 0 unless they
        are given) are one number, or an image or several `[frame, row, column]`. Either `geometry` or
        `angles` (radian) states the views; without rays `recon` assumes some.

        Returns a `Scan`, which has float32 copies of the arrays: line integrals without unit, or counts.
        Raises ValueError for shapes that do not fit each other and numbers that are not finite, TypeError for
        complex numbers, for an argument that is no array, and for darks without flats.
        """
    @property
    def geometry(self) -> CtGeometry | None:
        """The rays; none where they are not known."""
    def line_integrals(
        self,
        *,
        correct: Corrections | None = None,
        device: str = "auto",
    ) -> NDArray[np.float32]:
        """The line integrals `[view, row, column]`. From counts they are -ln((counts - dark) / (flat - dark)),
        after the corrections that `correct` names, as `recon` takes them.

        Returns float32 `[view, row, column]` without unit. Raises ValueError for an unknown correction,
        TypeError for a parameter of another name or type.
        """
    @property
    def notes(self) -> list[str]:
        """What the reader assumed or repaired."""
    @property
    def pixel_mm(self) -> tuple[float, float] | None:
        """The size of a pixel along columns and rows in mm: of the rays' detector, else as the file states it;
        none where it is not known.
        """
    @property
    def projections(self) -> NDArray[np.float32]:
        """What was measured, `[view, row, column]`: line integrals, or counts where there are flat fields."""
    def save(self, path: str | PathLike[str]) -> None:
        """Writes the scan as Data Exchange HDF5, with the rays of each view. Returns None. Raises ValueError for
        a file from which the scan was read, OSError where the system refuses the file.
        """
    def select(
        self,
        views: slice | Sequence[int] | None = None,
        rows: slice | Sequence[int] | None = None,
        columns: slice | Sequence[int] | None = None,
    ) -> CtScan:
        """Some views, and the rows and columns of the detector that lie side by side: slices, ranges or lists of
        numbers from 0.

        Returns a `Scan`. Raises ValueError for numbers out of range, TypeError for other arguments.
        """
    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the projections, (views, rows, columns)."""
    def with_geometry(self, geometry: CtGeometry) -> CtScan:
        """The same scan with these rays, in place of those that it has. Returns a `Scan`. Raises ValueError if
        their shape is not the scan's.
        """

@final
class CtSimulation:
    """A simulated CT scan and what is in it."""
    @property
    def grid(self) -> CtGrid:
        """The voxels of the truth."""
    @property
    def scan(self) -> CtScan:
        """The scan."""
    @property
    def truth(self) -> NDArray[np.float32]:
        """The attenuation at 60 keV, voxel means in 1/mm, float32 `[z, y, x]`."""

@final
class Image:
    """An image and its place in the patient: what `rayspin.read_image` reads and `save` writes.

    data: float32 or complex64 `[z, y, x]`, `[y, x]` or `[repetition, z, y, x]`; other numbers are converted.
    spacing_mm: the size of a voxel along (x, y, z), or one number for all.
    position_mm: the centre of the centre voxel (index n // 2 along each axis) in the patient's coordinates
        (LPS).
    directions: unit vectors along x, y and z in the patient's coordinates (LPS).
    hounsfield: whether the numbers are Hounsfield units.

    Raises ValueError for an empty array, lengths that are not positive and vectors that are no right angles,
    TypeError for what is no array of numbers.

    >>> import numpy as np, rayspin
    >>> image = rayspin.Image(np.ones((2, 4, 4)), spacing_mm=(1.5, 1.5, 3))
    >>> image.save("ones.nii.gz")  # doctest: +SKIP
    >>> image
    Image([2, 4, 4], real, 1.5 x 1.5 x 3 mm)
    """
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
    def data(self) -> NDArray[Any]:
        """The numbers, float32 or complex64 `[z, y, x]`, or `[repetition, z, y, x]` of several."""
    @property
    def directions(self) -> list[list[float]]:
        """Unit vectors along x, y and z in the patient's coordinates (LPS)."""
    @property
    def hounsfield(self) -> bool:
        """Whether the numbers are Hounsfield units."""
    @property
    def notes(self) -> list[str]:
        """What the reader assumed or repaired."""
    @property
    def position_mm(self) -> list[float]:
        """The centre of the centre voxel (index n // 2 along each axis) in the patient's coordinates (LPS) in
        mm.
        """
    @property
    def repetition_time_s(self) -> float | None:
        """The time between repetitions in s, where it is known."""
    def save(
        self,
        path: str | PathLike[str],
        *,
        dicom_template: str | PathLike[str] | None = None,
    ) -> list[str]:
        """Writes `data`, as it stands now, in the format of the file's name: .nii, .nii.gz, .npy, .h5, .cfl,
        .mha, .tif, .png and others. Signs and phases are kept where the format can.

        dicom_template: a DICOM file whose patient and study a .dicom takes over, and its modality where the
            image has none; by default it names no patient.

        Returns notes on what the format cannot hold. Raises ValueError for a name of no format that holds
        images, for the file that the image was read from and for a file that is no template, OSError
        (FileNotFoundError, PermissionError) for a file that cannot be written.
        """
    @property
    def spacing_mm(self) -> list[float]:
        """Voxel size along x, y and z in mm. Raises ValueError where slices are several stacks, as the other
        places do.
        """
    @property
    def stacks(self) -> list[dict[str, Any]]:
        """The stacks of slices along z, in order, as `Reconstruction.stacks`."""

@final
class Images:
    """The images of a scan as they are made: what `rayspin.images` returns."""
    def __iter__(self) -> Images: ...
    def __next__(self) -> NDArray[np.complex64]: ...
    def close(self) -> None:
        """Ends the run before its last image. Returns None; what was made stays. Raises nothing."""
    @property
    def method(self) -> str | None:
        """The method's name; None before the first image."""
    @property
    def notes(self) -> list[str]:
        """What was assumed before the first image, one sentence each."""

@final
class LinearOperator:
    """A linear map A from arrays of `ishape` to arrays of `oshape`, with its adjoint: <Ax, y> = <x, A.H y>.

    `A(x)` and `A @ x` apply it, `A.H` is the adjoint, `A.N` is A^H A. `A @ B`, `A + B`, `A - B`, `2 * A`, `A
    / 2` and `-A` are operators too. x is an array of NumPy, CuPy or torch with the operator's dtype, in C
    order; the result is of the same library. For other libraries with DLPack, such as JAX, it is NumPy's.
    Calls record no gradients; `rayspin.torch.apply` does.
    """
    @property
    def H(self) -> LinearOperator:
        """Aᴴ."""
    @property
    def N(self) -> LinearOperator:
        """AᴴA, by the operator's own short cut where it has one."""
    def __add__(self, value: LinearOperator, /) -> LinearOperator: ...
    __array_ufunc__: None
    @overload
    def __call__(self, x: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]: ...
    @overload
    def __call__(self, x: Array, out: Array | None = None) -> Any: ...
    def __copy__(self) -> LinearOperator:
        """The operator itself, which never changes."""
    def __deepcopy__(self, memo: Any) -> LinearOperator:
        """The operator itself. One that calls functions is made anew: they may be methods of an object that is
        copied.
        """
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
    def __neg__(self) -> LinearOperator: ...
    def __radd__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __rmatmul__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __rmul__(self, value: complex, /) -> LinearOperator: ...
    def __rsub__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __rtruediv__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __sub__(self, value: LinearOperator, /) -> LinearOperator: ...
    def __truediv__(self, value: complex, /) -> LinearOperator: ...
    def as_scipy(self) -> Any:
        """Returns the operator as SciPy's `LinearOperator` on flat NumPy vectors, for its solvers. Raises
        ImportError without SciPy.
        """
    @property
    def device(self) -> str:
        """Where the operator computes: cpu, cuda:0 and so on."""
    @property
    def dtype(self) -> str:
        """The name of the element type of x and Ax."""
    @property
    def ishape(self) -> tuple[int, ...]:
        """The shape of x."""
    @property
    def oshape(self) -> tuple[int, ...]:
        """The shape of Ax."""

@final
class MriSimulation:
    """A simulated MRI scan and what is in it."""
    @property
    def field_hz(self) -> NDArray[np.float32] | None:
        """The field at the voxel centres in Hz, float32 `[z, y, x]`, where it is inhomogeneous."""
    @property
    def maps(self) -> NDArray[np.complex64]:
        """The coil sensitivities at the voxel centres, complex64 `[coil, z, y, x]`."""
    @property
    def noise_std(self) -> float:
        """Standard deviation of the real part of the noise of a sample."""
    @property
    def notes(self) -> list[str]:
        """What was chosen, one sentence each."""
    @property
    def scan(self) -> Scan:
        """The scan."""
    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Voxel size along (x, y, z) in mm."""
    @property
    def truth(self) -> NDArray[np.complex64]:
        """The object's voxel means, complex64 `[z, y, x]`, or `[image, z, y, x]` of one that changes."""

@final
class Penalty:
    """A penalty g, by its proximal map prox_{tg}(x) = argmin_u 1/2 |u - x|^2 + t g(u), which a call computes:
    `penalty(t, x)`.

    The functions of `rayspin.prox` make penalties, `rayspin.solve.fista` and `pdhg` take them.
    """
    @overload
    def __call__(self, t: float, x: NDArray[Number]) -> NDArray[Number]: ...
    @overload
    def __call__(self, t: float, x: Array) -> Any: ...

@final
class Plan:
    """A non-uniform fast Fourier transform to a tolerance, with finufft's arguments:

        type 1   f[k] = sum_j c[j] exp(isign i k.x_j)      points to grid,   isign +1 unless given
        type 2   c[j] = sum_k f[k] exp(isign i k.x_j)      grid to points,   isign -1 unless given
        type 3   f[k] = sum_j c[j] exp(isign i s_k.x_j)    points to points, isign +1 unless given

    k runs over whole numbers from -(n // 2) to (n - 1) // 2 along each axis of n, in this order.

    nufft_type: 1, 2 or 3.
    n_modes_or_dim: the grid's lengths, (n,), (n1, n2) or (n1, n2, n3), or n for one axis; for type 3 the
        number of dimensions, 1 to 3.
    n_trans: the product of the leading axes that each call must have; any number of transforms unless given.
    eps: the relative error of results in the 2-norm, about 1e-6 or more for complex64 and 1e-13 or more for
        complex128.
    isign: the sign of the exponent; only its sign counts.
    dtype: of data and results, "complex64" or "complex128" (the default), or their NumPy and torch types;
        float32 and float64 name the same precisions.
    device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.

    Raises ValueError for a type, a length, a tolerance or a device out of range, TypeError for arguments of
    another type, RuntimeError for a GPU that fails.

    >>> import numpy as np
    >>> from rayspin.nufft import Plan
    >>> plan = Plan(1, (4,), eps=1e-6, device="cpu")
    >>> plan.setpts(np.array([0.0, np.pi / 2]))
    >>> grid = plan.execute(np.ones(2, np.complex128))  # 1 + exp(i k pi / 2), k = -2, -1, 0, 1
    >>> bool(np.allclose(grid, [0, 1 - 1j, 2, 1 + 1j], atol=1e-5))
    True
    """
    def __new__(
        cls,
        nufft_type: int,
        n_modes_or_dim: int | Sequence[int],
        n_trans: int | None = None,
        eps: float = 1e-06,
        isign: int | None = None,
        dtype: Any = None,
        *,
        device: str = "auto",
    ) -> Plan: ...
    def __copy__(self) -> Plan:
        """A plan with the same points. `setpts` of one leaves the points of the other."""
    def __deepcopy__(self, _memo: Any) -> Plan:
        """As `__copy__`."""
    @property
    def device(self) -> str:
        """Where the plan computes: cpu, cuda:0 and so on."""
    @property
    def dtype(self) -> str:
        """The name of the element type of data: complex64 or complex128."""
    @property
    def eps(self) -> float:
        """The tolerance."""
    @overload
    def execute(self, data: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]:
        """The transform of `data`: from points to grid (type 1), from grid to points (type 2), or from points to
        points (type 3).

        data: `[..., point]` for types 1 and 3, `[..., n1, n2, n3]` for type 2, of the plan's dtype and in C
            order. Leading axes are a batch.
        out: an array that takes the result and is returned, of the result's shape, dtype and library, in C
            order, writable, in memory apart from `data`; a new one unless given.

        Returns `[..., n1, n2, n3]`, `[..., point]` or `[..., frequency]` of the plan's dtype, an array of the
        library and on the device of `data`; of NumPy for libraries besides NumPy, CuPy and torch. Sums are
        not scaled. NumPy arrays are copied to a GPU and back.

        Raises RuntimeError before `setpts`, ValueError for another shape, order or number of transforms,
        TypeError for another dtype, an array of another GPU, what is no array, and a tensor of torch that
        requires a gradient (`rayspin.torch` has these).
        """
    @overload
    def execute(self, data: Array, out: Array | None = None) -> Any: ...
    @overload
    def execute_adjoint(self, data: NDArray[Number], out: NDArray[Number] | None = None) -> NDArray[Number]:
        """The adjoint of `execute`, the conjugate transpose of its sums: <execute(a), b> = <a,
        execute_adjoint(b)>.

        data: of the shape that `execute` returns. out: as `execute` takes it, of the shape of its `data`.

        Returns an array of the shape that `execute` takes. Raises as `execute`.
        """
    @overload
    def execute_adjoint(self, data: Array, out: Array | None = None) -> Any: ...
    @property
    def isign(self) -> int:
        """The sign of the exponent."""
    @property
    def n_modes(self) -> list[int]:
        """The grid's lengths; empty for type 3."""
    @property
    def n_trans(self) -> int | None:
        """The transforms of a call; none where any number is taken."""
    @property
    def nufft_type(self) -> int:
        """The type: 1, 2 or 3."""
    def setpts(
        self,
        x: Any,
        y: Any = None,
        z: Any = None,
        s: Any = None,
        t: Any = None,
        u: Any = None,
    ) -> None:
        """Sets the points x_j, and for type 3 the frequencies s_k, of the exponents exp(isign i k.x_j) and
        exp(isign i s_k.x_j).

        x, y, z: the components of the points, real numbers `[point]` in radian: one array for each dimension,
            x for the first axis of the grid. Points are periodic: those beyond -pi to pi are taken 2 pi away
            for types 1 and 2. Type 3 takes any real numbers.
        s, t, u: the components of the frequencies for type 3, `[frequency]`, in 1 over the unit of the
            points.

        Arrays of float32 or float64 on the CPU or on the plan's GPU are read where they lie, with any stride.
        Arrays of other real types and on another GPU are copied, as are lists. Call it again to plan anew for
        other points; without points all sums are 0. Returns None.

        The plan keeps the arrays, without a copy, for pickles. Pickling raises ValueError if their points
        have changed; arrays on a GPU are not looked at.

        Raises ValueError for components that are missing, too many, of different lengths, of another number
        of axes or not finite; the plan then keeps its points. Raises TypeError for complex numbers and what
        is no array.
        """

@final
class Quality:
    """The metrics of an image I against the truth I0, of N voxels.

    For equal images PSNR and SNR are infinite.
    """
    @property
    def compared(self) -> str:
        """What was compared: real values, complex values or magnitudes."""
    @property
    def error_percent(self) -> float:
        """100 times the NRMSE."""
    @property
    def hint(self) -> str | None:
        """What would compare the images better, where they differ in scale, phase or shading more than in
        anything else.
        """
    @property
    def max_error(self) -> float:
        """The largest |I - I0|."""
    @property
    def mse(self) -> float:
        """Mean square error, sum |I - I0|^2 / N."""
    @property
    def nrmse(self) -> float:
        """Normalised root-mean-square error, sqrt(sum |I - I0|^2 / sum |I0|^2)."""
    @property
    def psnr_db(self) -> float:
        """Peak signal-to-noise ratio in dB, 20 log10(max |I0| / sqrt(MSE))."""
    @property
    def reference_max(self) -> float:
        """max |I0|."""
    @property
    def rule(self) -> str:
        """What was compared, and whether a scale was fitted, in words."""
    @property
    def scale(self) -> complex:
        """The factor that the image was multiplied by, 1 without a fit."""
    @property
    def snr_db(self) -> float:
        """Signal-to-noise ratio in dB, 20 log10(sqrt(sum |I0|^2 / N) / sqrt(MSE))."""
    @property
    def ssim(self) -> float | None:
        """Mean structural similarity; none of complex values, and where no window's centre lies inside the mask.
        """
    @property
    def voxels(self) -> int:
        """Voxels that were compared."""

@final
class Reconstruction:
    """The images of a scan and how they came about: what `rayspin.recon` returns."""
    def _repr_html_(self) -> str:
        """The picture and the notes, for notebooks."""
    @property
    def certificates(self) -> list[dict[str, Any]]:
        """What `certify` measured: for each transform a dictionary with "transform", "outputs", "error",
        "largest", "tolerance" and "met".
        """
    @property
    def directions(self) -> list[list[float]]:
        """Unit vectors along x, y and z in the patient's coordinates (LPS)."""
    @property
    def image(self) -> NDArray[np.complex64]:
        """The image, complex64 `[z, y, x]`, or `[volume, z, y, x]` of several `volumes`."""
    @property
    def maps(self) -> NDArray[np.complex64] | MaybeNone:
        """Sensitivity maps `[coil, z, y, x]`, where the method used any and `keep_maps` is true."""
    @property
    def method(self) -> str:
        """The method's name."""
    @property
    def notes(self) -> list[str]:
        """What was assumed, one sentence each."""
    @property
    def parameters(self) -> dict[str, Any]:
        """The method's parameters, as they were used."""
    @property
    def position_mm(self) -> list[float]:
        """The centre of the centre voxel (index n/2 along each axis) in the patient's coordinates (LPS) in mm."""
    @property
    def record(self) -> dict[str, Any]:
        """The run record, as the command writes it: program, version, device, parameters, stages, residuals,
            notes.
        """
    @property
    def residuals(self) -> list[list[float]]:
        """The relative residuals of each image that was solved for by iterations."""
    def save(
        self,
        path: str | PathLike[str],
        *,
        bids: bool = False,
        phase: bool = False,
        dicom_template: str | PathLike[str] | None = None,
    ) -> list[str]:
        """Writes `image`, as it stands now, in the format of the file's name (`.nii.gz`, `.npy`, `.png`), any
        that `rayspin convert` writes.

        Several `stacks` become a file each, image_1.nii.gz and so on. Arrays and TIFF hold all slices in one
        file. Returns notes on what the format cannot hold, such as the phase.

        bids: NIfTI with names of BIDS: a file for each contrast and set, and a .json that tells the sequence.
        phase: the phase in rad in place of complex numbers or magnitudes; with bids beside the magnitudes.
        dicom_template: a DICOM file whose patient and study a .dicom takes over; by default it names none.

        Raises ValueError for a name of no format that holds images, for a file from which the scan was read
        and for a file that is no template, OSError (FileNotFoundError, PermissionError) for a file that
        cannot be written.
        """
    @property
    def searched(self) -> dict[str, Any] | MaybeNone:
        """The search of lambda_="auto", a dictionary; None without a search. Its "lambda_" is the weight that is
        used. The entry "inside" says whether other weights on both sides of it were tried; if not, it is the
        weight where the search began. The entry "tried" is a list of pairs, a weight and its error: -1 is the
        best prediction of the samples that were held out, and an image of zeros has 0.
        """
    @property
    def spacing_mm(self) -> list[float]:
        """Voxel size along x, y and z in mm. Raises ValueError where slices are several `stacks`, as the other
        places do.
        """
    @property
    def stacks(self) -> list[dict[str, Any]]:
        """The stacks of slices along z, in order: for each a dictionary with "slices" (their number),
        "spacing_mm", "position_mm" and "directions". They are several where slices differ in direction, or do
        not lie behind each other at one distance.
        """
    @property
    def stages(self) -> list[tuple[str, float]]:
        """Seconds of each stage, in their order."""
    @property
    def volumes(self) -> list[dict[str, int]]:
        """The volumes along the first axis of `image`, in order: a dictionary each with the scan's counters
        "set", "cardiac_phase", "repetition" and "contrast". With `window` the repetitions count the windows.
        The list is empty for coefficients of a basis and for coil images.
        """

@final
class Scan:
    """A raw MRI scan in memory: the samples of each coil, where they lie in k-space, and the matrix of the
        image.

    `rayspin.read_scan` reads one from a file, `Scan.from_arrays` makes one of arrays, `rayspin.simulate.mri`
    simulates one, and `rayspin.recon` makes an image of it.
    """
    def __copy__(self) -> Scan:
        """The scan itself, which never changes."""
    def __deepcopy__(self, _memo: Any) -> Scan:
        """As `__copy__`."""
    def __len__(self) -> int: ...
    def arrays(self, image: int = 0) -> tuple[NDArray[np.complex64], NDArray[np.float64] | None]:
        """The samples and the trajectory of one image, which are counted from 0.

        Returns copies. On a grid they are complex64 k-space `[coil, y, x]` or `[coil, z, y, x]`, and None.
        Along a trajectory they are complex64 samples `[coil, sample]` and float64 points `[sample, dim]`, x,
        y and z in cycles per field of view. Raises ValueError for an image that the scan has not.
        """
    @property
    def coils(self) -> int:
        """The number of receive coils."""
    @property
    def fov_mm(self) -> list[float]:
        """The field of view of the first image along x, y and z in mm; of a plane z is its thickness."""
    @staticmethod
    def from_arrays(
        kspace: Array,
        trajectory: Array | None = None,
        *,
        shape: Sequence[int] | None = None,
        fov_mm: Sequence[float] | None = None,
        units: str | None = None,
        times: Array | None = None,
    ) -> Scan:
        """A scan of one image from its samples d(c, j) = sum_x c(x) image(x) exp(-2 pi i k_j.x), x in fields of
        view.

        kspace: on a grid `[coil, y, x]` or `[coil, z, y, x]`, the centre of k-space at index n // 2, zero
            where nothing was measured. With a trajectory `[coil, sample]` or `[coil, spoke, readout]`.
        trajectory: the points k_j, real `[sample, dim]` or `[spoke, readout, dim]`, components in the order
            x, y, z.
        shape: the image's, `(z, y, x)` or `(y, x)`; a trajectory needs it, a grid has its own unless given.
        fov_mm: the field of view along x, y and z in mm; 1 mm for each voxel unless given.
        units: of the trajectory: cycles/fov, cycles/voxel, radians/voxel, or cycles/m, radians/m or
            cycles/cm, which need fov_mm. The range of the points tells them unless given, and `notes` say so.
        times: of the samples in s, as many as samples; a field map needs them.

        Returns a `Scan`, which has copies of the arrays, of NumPy, CuPy, torch or lists. Numbers of another
        precision, such as complex128, are converted to complex64. Samples beyond n/2 cycles of an axis of n
        voxels are left out, and `notes` say so.

        Raises ValueError for shapes that do not fit each other, numbers that are not finite and units that
        are none or not certain, TypeError for what is no array of numbers.

        >>> import numpy as np, rayspin
        >>> grid = np.fft.fftshift(np.fft.fft2(np.ones((2, 8, 8))), axes=(1, 2))
        >>> rayspin.Scan.from_arrays(grid)
        Scan(one image of 2 coils, [8, 8])
        """
    @property
    def images(self) -> int:
        """The number of images: slices, repetitions, contrasts and so on."""
    @property
    def notes(self) -> list[str]:
        """What the reader assumed or repaired."""
    def save(self, path: str | PathLike[str], *, keep_identity: bool = False) -> list[str]:
        """Writes the scan as ISMRMRD (.h5), with a trajectory in cycles per field of view where it was made of
        arrays.

        What a header tells of the patient, the study, the place and the date is left out;
        `keep_identity=True` writes it. Returns notes on what is not written. Raises ValueError for a name of
        no format that holds scans and for a file from which the scan was read, OSError (FileNotFoundError,
        PermissionError) for a file that cannot be written.
        """
    @property
    def shape(self) -> tuple[int, ...]:
        """The matrix of the first image, `(z, y, x)` or `(y, x)`."""

@final
class Solution:
    """What a solver found: an approximate minimum x, and the course of the iteration."""
    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
    @property
    def largest_eigenvalue(self) -> float | None:
        """The largest eigenvalue of A^H A, if the solver needs it."""
    @property
    def objective(self) -> list[float]:
        """The stated objective after each iteration. Where it is small beside |y|^2 / 2, it holds mostly
        rounding: in single precision about 1e-7 |y|^2.

        `cg`: 1/2 <x, Ax> - Re <b, x>. `least_squares` and `fista`: the function at x, with the operator
        `normal` for A^H A. `pdhg`: the function at x, where `nonnegative` counts 0. A function of yours
        counts at its result, which tends to K_i x. A function of yours that returns no value counts as 0.
        With `average`, it is the objective of the last iterate, not of the mean.
        """
    @property
    def residuals(self) -> list[float]:
        """After each iteration, and for `cg` and `least_squares` also before the first, |b - Ax| / |b| of the
        linear system; for `fista` and `pdhg` the relative size of the last step.
        """
    @property
    def x(self) -> Array:
        """The solution, an array of the operator's input shape and dtype, of the data's library."""

def block_diagonal(operators: Sequence[LinearOperator]) -> LinearOperator:
    """(A x)[i] = A_i x[i]: operator i on part i of the first axis of x.

    operators: a list of operators of equal shapes, of one dtype and device.

    Returns a `LinearOperator` from `[operator, ...]` to `[operator, ...]`. Raises as `stack`.
    """

def cg(
    a: LinearOperator,
    b: Array,
    *,
    start: Array | None = None,
    iterations: int = 30,
    tolerance: float = 0.0001,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution:
    """Solves A x = b for Hermitian positive semidefinite A by conjugate gradients: the minimum of 1/2 <x, Ax> -
    Re <b, x>.

    a: an operator with equal input and output shapes, such as `A.N` or `rayspin.toeplitz(...)`.
    b: the right-hand side, an array of the operator's shape and dtype.
    start: where the iteration begins, an array as b; 0 unless given.
    iterations: the most iterations, each one application of A.
    tolerance: stops where |b - Ax| <= tolerance |b|; 0 runs all iterations.
    progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
    callback: a function f(iteration, residual, x), which sees a copy of every iterate.

    Returns a `Solution`; x is an array of b's library.

    Raises TypeError for another dtype or device. Raises ValueError for another shape, numbers that are not
    finite and options out of range. Raises ArithmeticError for an operator that is not Hermitian positive
    semidefinite, KeyboardInterrupt after Ctrl-C, and the exceptions of `progress`, `callback` and your own
    functions.

    >>> import numpy as np
    >>> from rayspin import linop, solve
    >>> A = linop.diagonal(np.array([1.0, 2.0, 4.0]), device="cpu")
    >>> solve.cg(A, np.ones(3)).x.round(6)
    array([1.  , 0.5 , 0.25])

    M. R. Hestenes, E. Stiefel, J Res Natl Bur Stand 49:409, 1952.
    """

def claim(outputs: Sequence[str | PathLike[str]]) -> Claim | None:
    """Claims all of these outputs. Returns None where another process or thread has one of them."""

def command(arguments: Sequence[str]) -> int:
    """Runs the command `rayspin` with these arguments, the program's name first. Returns its exit code: 0, 1 for
    a failure, 2 for wrong input.
    """

def compare(
    image: Any,
    truth: Any,
    *,
    magnitude: bool = False,
    fit: bool = False,
    mask: Any = None,
) -> Quality:
    """Compares an image with the truth, of one shape `[y, x]` with any axes before these. One truth serves for
    all repetitions of an image with one axis more. Two real images are compared with their signs, two complex
    ones with their phases, else magnitudes.

    `magnitude` compares magnitudes in any case. `fit` first multiplies the image by the factor that brings it
    nearest to the truth. `mask` says which voxels count, in the shape of the images or of their last axes.

    Returns a `Quality`. Raises as `nrmse`.
    """

def ct_corrections() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]:
    """The corrections of CT in the order in which they act, and their parameters, which `correct=` takes.
    Returns a dictionary as `rayspin.methods` does.
    """

def ct_methods() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]:
    """The methods of CT and their parameters, which are keywords of `recon`. Returns a dictionary as
    `rayspin.methods` does.
    """

def custom(
    forward: Callable[[Array], Array],
    adjoint: Callable[[Array], Array],
    ishape: Sequence[int],
    oshape: Sequence[int],
    *,
    name: str = "custom",
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator:
    """An operator of yours: A x = forward(x), A^H y = adjoint(y).

    forward, adjoint: functions of one array that return an array of the other shape, of the operator's dtype.
        They get arrays of their own: NumPy's on the CPU; on a GPU arrays of the library whose array the
        operator is applied to.
    ishape, oshape: the shapes of x and A x.
    name: what `repr` and errors call it. dtype, device: as for `identity`, complex64 unless given.

    Methods of an object that holds the operator are freed with the object.

    Returns a `LinearOperator`, which raises what the functions raise, ValueError where they return another
    shape and TypeError for another dtype. The functions must be linear and adjoint to each other; the
    operator does not check it.
    """

def diagonal(factors: Array, shape: Sequence[int] | None = None, *, device: str = "auto") -> LinearOperator:
    """A x = factors x.

    factors: an array of float32, float64, complex64 or complex128, which the operator copies.
    shape: of x, which ends in the axes of the factors; their own shape unless given. device: as for
        `identity`.

    Returns a `LinearOperator` of the factors' dtype. Raises as `identity`.
    """

def differences(
    shape: Sequence[int],
    axes: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator:
    """Differences of neighbours: y[a, i] = x[i + 1 along axis a] - x[i], 0 at the end of an axis.

    shape: of x. axes: numbers of axes from 0; all unless given. dtype: as for `identity`, complex64 unless
        given. device: as for `identity`.

    Returns a `LinearOperator` from `shape` to `[axis, shape...]`. Raises ValueError for an axis that there is
    not, and as `identity`.
    """

def fft(
    shape: Sequence[int],
    *,
    batch: Sequence[int] = ...,
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator:
    """The unitary Fourier transform over the last axes, both sides centred at n // 2:

        y[k] = prod_a n_a^(-1/2) sum_x x[x] exp(-2 pi i sum_a k_a x_a / n_a)

    shape: of the axes that are transformed, 1 to 3. batch: of the axes before them.
    dtype: complex64 (the default) or complex128. device: as for `identity`.

    Returns a `LinearOperator` from `[batch..., shape...]` to the same. Raises as `identity`.
    """

@overload
def filter(
    image: Image,
    name: str,
    *,
    device: str = "auto",
    progress: Heard = None,
    **parameters: Any,
) -> Image:
    """An image or an array after a filter: smoothing, edges, another size, equalised grey values.
        `rayspin.filters()` says what each computes.

    image: an `Image`, or an array `[z, y, x]`, `[y, x]` or `[repetition, z, y, x]`. Repetitions are filtered
        one by one, and of complex numbers the magnitudes. The place of an `Image` stays right.
    name: a name of `rayspin.filters()`.
    device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.
    progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
    parameters: keywords of the filter, as `rayspin.filters()` lists them.

    Returns an `Image` of an `Image`, else an array of NumPy, float32. Raises ValueError for a name or value
    that there is not and numbers that are not finite, TypeError for keywords that the filter has not,
    KeyboardInterrupt after Ctrl-C.

    >>> import numpy as np, rayspin
    >>> spot = np.zeros((9, 9)); spot[4, 4] = 1
    >>> smooth = rayspin.filter(spot, "gaussian", sigma=1.0, device="cpu")
    >>> smooth.shape, bool(abs(smooth.sum() - 1) < 1e-3)
    ((9, 9), True)
    """
@overload
def filter(
    image: Array,
    name: str,
    *,
    device: str = "auto",
    progress: Heard = None,
    **parameters: Any,
) -> NDArray[np.float32]: ...

def filters() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]:
    """The filters of images and their parameters, which are keywords of `filter`. Returns a dictionary as
    `rayspin.methods` does.
    """

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
    tolerance: float = 0.0001,
    average: int = 1,
    largest_eigenvalue: float | None = None,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution:
    """Minimises 1/2 |Ax - y|^2 + weight g(x) by accelerated proximal gradient steps:

        x+ = prox(weight/L, z - (A^H A z - A^H y)/L), z+ = x+ + ((t - 1)/t+) (x+ - x), t+ = (1 + sqrt(1 + 4
        t^2))/2

    a: the operator A.
    y: the data, an array of A's output shape and dtype.
    penalty: g, one of `rayspin.prox`, or a function f(t, x) that returns argmin_u 1/2 |u - x|^2 + t g(u), or
        that array and g of it.
    weight: of g, 0 or more.
    relative: multiplies the weight by L and by s, the 99th percentile of |A^H y| / L. The weight then has no
        unit, for g with g(cx) = |c| g(x).
    normal: A^H A in another way, such as `rayspin.toeplitz(...)`, which is faster along a trajectory.
    start: where the iteration begins, an array of A's input shape; 0 unless given.
    iterations, tolerance: the most iterations; stops where a step moves x by at most tolerance times its
        norm.
    average: after all iterations, x is the mean of the last `average` iterates, for penalties that differ
        each time.
    largest_eigenvalue: L of A^H A; an estimate unless given, which grows if a step meets a larger curvature.
    progress, callback: as for `cg`.

    Returns a `Solution`; x is an array of y's library, of A's input shape. Raises as `cg`.

    >>> import numpy as np
    >>> from rayspin import linop, prox, solve
    >>> A = linop.identity((3,), dtype="float64", device="cpu")
    >>> found = solve.fista(A, np.array([3.0, -0.5, -2.0]), prox.l1(), 1.0)
    >>> found.x.round(4) + 0.0, round(found.objective[-1], 4)  # 1/2 |x - y|^2 + |x|_1
    (array([ 2.,  0., -1.]), 4.125)

    A. Beck, M. Teboulle, SIAM J Imaging Sci 2:183, 2009; B. O'Donoghue, E. Candes, Found Comput Math 15:715,
    2015.
    """

def gpus() -> int:
    """The number of GPUs that this process sees."""

def groups() -> Penalty:
    """g(x) = sum_i sqrt(sum_a |x[a, i]|^2), a the first axis: isotropic total variation where x are differences
    `[axis, ...]`.

    Returns a `Penalty` for arrays `[axis, ...]`, real or complex, such as what `linop.differences` makes.
    """

def identity(shape: Sequence[int], *, dtype: Any = None, device: str = "auto") -> LinearOperator:
    """A x = x.

    shape: of x. dtype: float32, float64, complex64 (the default) or complex128.
    device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.

    Returns a `LinearOperator`. Raises ValueError for a shape or device, TypeError for a dtype out of range.
    """

def l1() -> Penalty:
    """g(x) = sum_i |x_i|, whose proximal map shrinks magnitudes by t: x max(1 - t/|x|, 0).

    Returns a `Penalty` for arrays of any shape, real or complex.
    """

def l2(data: Array) -> Penalty:
    """g(x) = 1/2 |x - data|^2, whose proximal map is (x + t data)/(1 + t).

    data: an array of the shape and dtype of x, which is kept and copied at each use.

    Returns a `Penalty`. Raises TypeError for what is no array or has another dtype.
    """

def largest_eigenvalue(a: LinearOperator, *, tolerance: float = 0.001) -> float:
    """The largest eigenvalue max_x <x, Ax> / <x, x> of a Hermitian positive semidefinite operator, such as
    `A.N`, by the Lanczos process.

    tolerance: its relative error; the estimate is never too large.

    Returns a float. Raises ValueError for an operator whose shapes differ, ArithmeticError for one that is
    not Hermitian.

    >>> import numpy as np
    >>> from rayspin import linop, solve
    >>> round(solve.largest_eigenvalue(linop.diagonal(np.array([1.0, 5.0, 2.0]), device="cpu")), 2)
    5.0
    """

def least_squares(
    a: LinearOperator,
    y: Array,
    *,
    weight: float = 0.0,
    regularisers: Sequence[LinearOperator] = ...,
    normal: LinearOperator | None = None,
    start: Array | None = None,
    iterations: int = 30,
    tolerance: float = 0.0001,
    largest_eigenvalue: float | None = None,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution:
    """Minimises |Ax - y|^2 + weight L sum_i |W_i x|^2 by conjugate gradients on (A^H A + weight L sum_i W_i^H
    W_i) x = A^H y.

    L is the largest eigenvalue of A^H A, so that the weight has no unit: it means the same whatever the scale
    of A and the number of samples.

    a: the operator A.
    y: the data, an array of A's output shape and dtype.
    weight: of the penalty, 0 or more.
    regularisers: the operators W_i, from A's input shape; W = 1 unless given.
    normal: A^H A in another way, such as `rayspin.toeplitz(...)`, which is faster along a trajectory.
    start: where the iteration begins, an array of A's input shape; 0 unless given.
    iterations, tolerance: the most iterations; stops where the residual of the linear system is at most
        tolerance times its right-hand side.
    largest_eigenvalue: L; an estimate, which may be 1 % too small, unless given.
    progress, callback: as for `cg`.

    Returns a `Solution`; x is an array of y's library, of A's input shape. Raises as `cg`.

    >>> import numpy as np
    >>> from rayspin import linop, solve
    >>> A = linop.diagonal(np.array([1.0, 2.0]), device="cpu")
    >>> found = solve.least_squares(A, np.array([3.0, 4.0]), weight=0.25, largest_eigenvalue=4.0)
    >>> found.x.round(6)  # a y / (a^2 + 0.25 * 4)
    array([1.5, 1.6])
    """

def mask(
    mask: NDArray[np.bool_],
    shape: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator:
    """Samples on a grid: A x = x where the mask is true, 0 elsewhere.

    mask: booleans, an array of NumPy or a list.
    shape: of x, which ends in the axes of the mask; its own shape unless given.
    dtype: complex64 (the default) or complex128. device: as for `identity`.

    Returns a `LinearOperator`. Raises TypeError for a mask of numbers, and as `identity`.
    """

def methods() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]:
    """The methods of reconstruction and their parameters, which are keywords of `recon`.

    Returns a dictionary by the methods' names. A value is what the method does, and a dictionary by the names
    of its parameters, whose values have "kind" (number, count, choice or image), "default" (None: the method
    finds its own), "range" and "help".
    """

def nonnegative() -> Penalty:
    """g(x) = 0 where no number is negative, else infinite. The proximal map sets negative numbers to 0.

    Returns a `Penalty` for real arrays of any shape.
    """

def nrmse(image: Any, truth: Any) -> float:
    """The normalised root-mean-square error sqrt(sum |I - I0|^2 / sum |I0|^2) of the values as they are.

    Returns a float. Raises ValueError for images of different shapes or a truth of 0, TypeError for what is
    no array of numbers.
    """

def nudft(
    points: Array,
    shape: Sequence[int],
    *,
    batch: Sequence[int] = ...,
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator:
    """`linop.nufft` summed term by term: exact, for small problems and for tests.

    points, shape, batch, dtype, device: as for `linop.nufft`.

    Returns a `LinearOperator` from `[batch..., shape...]` to `[batch..., sample]`. Raises as `linop.nufft`.
    """

def nufft_operator(
    points: Array,
    shape: Sequence[int],
    *,
    batch: Sequence[int] = ...,
    eps: float | None = None,
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator:
    """The non-uniform Fourier transform to a tolerance, x in fields of view and 0 at index n // 2:

        y[j] = sum_x image[x] exp(-2 pi i k_j.x)

    points: k_j, real `[sample, dim]`, components in the order x, y, z, in cycles per field of view. The
    operator holds them for pickles, and cannot be pickled once they have changed.
    shape: of an image, `(n,)`, `(y, x)` or `(z, y, x)`. batch: of the axes before it.
    eps: the relative error, about 1e-5 unless given. dtype: complex64 (the default) or complex128. device: as
        for `identity`.

    Returns a `LinearOperator` from `[batch..., shape...]` to `[batch..., sample]`. Raises ValueError for
    points of another shape or not finite and a tolerance out of range, and as `identity`.
    """

def open_device(device: str) -> None:
    """Opens the device, or the GPUs, that `device` names. Raises the errors of `rayspin.recon` if one does not
    work.
    """

def pdhg(
    a: LinearOperator,
    y: Array,
    terms: Sequence[tuple[LinearOperator, Penalty | Map, float]],
    *,
    g: Penalty | Map | None = None,
    start: Array | None = None,
    iterations: int = 300,
    tolerance: float = 0.0001,
    balance: float | None = None,
    progress: Heard = None,
    callback: Callback = None,
) -> Solution:
    """Minimises 1/2 |Ax - y|^2 + g(x) + sum_i weight_i f_i(K_i x) by the primal-dual hybrid gradient method.

    a: the operator A.
    y: the data, an array of A's output shape and dtype.
    terms: tuples (K_i, f_i, weight_i) of an operator from A's input shape, a penalty and a positive weight.
        f_i is one of `rayspin.prox` or a function f(t, u), as for `fista`.
    g: a penalty or a function; 0 unless given.
    start: where the iteration begins, an array of A's input shape; 0 unless given.
    iterations, tolerance: the most iterations, each one application of A, every K_i and their adjoints; stops
        where a step moves x and the dual variables by at most tolerance times their norms.
    balance: multiplies the step of x and divides the steps of the dual variables; the norms of A and the K_i
        choose the steps unless given, which suits any scale of A and y.
    progress, callback: as for `cg`.

    Returns a `Solution`; x is an array of y's library, of A's input shape. Raises as `cg`. For one penalty
    without K, `fista` needs far fewer applications of A.

    >>> import numpy as np
    >>> from rayspin import linop, prox, solve
    >>> A, D = (make((8,), dtype="float64", device="cpu") for make in (linop.identity, linop.differences))
    >>> found = solve.pdhg(A, np.repeat([0.0, 1.0], 4), [(D, prox.groups(), 0.4)], iterations=3000, tolerance=1e-8)
    >>> found.x.round(3)  # the halves of the step are nearer by 0.4 / 4 each
    array([0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9])

    A. Chambolle, T. Pock, J Math Imaging Vis 40:120, 2011, algorithm 1.
    """

def plan_recon(
    scan: Scan | str | PathLike[str],
    method: str | None = None,
    *,
    device: str = "auto",
    **options: Any,
) -> dict[str, Any]:
    """What `recon` will take with the same arguments: its method, and the memory and work of each stage. Nothing
    is computed.

    scan, method, device, options: as `rayspin.recon` takes them.

    Returns a dictionary with "method" and "notes". Its "cut" says how the run is taken in parts. Its "shape"
    has the axes of the image; it is None for coil images and several sets of maps. Its "slices" is the number
    of slices that are measured apart, and its "volumes" and "parameters" are those of a `Reconstruction`. Its
    "memory" and "gpu_memory" are the bytes that the process and arrays on the GPU take at most. Its "stages"
    is a list of dictionaries with "name", "memory", "gpu_memory", "transforms", "iterations", "flops" and
    "traffic" (bytes). Raises as `rayspin.recon` does.

    >>> import rayspin
    >>> scan = rayspin.simulate.mri(matrix=(32, 32), coils=2, trajectory="radial").scan
    >>> plan = rayspin.plan(scan, "cg-sense", device="cpu")
    >>> plan["method"], plan["cut"], plan["memory"] > 0
    ('cg-sense', '1 image', True)
    """

def plan_recon_ct(
    scan: CtScan | str | PathLike[str],
    method: str | None = None,
    *,
    device: str = "auto",
    grid: CtGrid | None = None,
    correct: Corrections | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What `ct.recon` will take with the same arguments: its method, and the memory and work of each stage.
    Nothing is computed.

    scan, method, device, grid, correct, options: as `ct.recon` takes them.

    Returns a dictionary as `rayspin.plan` does. Raises as `ct.recon` does.

    >>> from rayspin import ct, simulate
    >>> scan = simulate.ct(matrix=(16, 16, 16), views=8).scan
    >>> ct.plan(scan, device="cpu")["method"]
    'fdk'
    """

def psnr(image: Any, truth: Any) -> float:
    """Peak signal-to-noise ratio 20 log10(max |I0| / sqrt(MSE)) of the numbers that `compare` takes.

    Returns a float in dB. Raises as `nrmse`.
    """

def read_ct_scan(
    path: str | PathLike[str],
    *,
    geometry: CtGeometry | None = None,
    arc: float | None = None,
    flats: Any = None,
    darks: Any = None,
) -> CtScan:
    """Reads a CT scan: Data Exchange or NXtomo (`.h5`), Zeiss (`.txrm`), or an array or image `[view, row,
    column]`. A file without angles, such as an array, needs `geometry`, or the `arc` in radian over which its
    views are spread evenly. `geometry` replaces the rays that a file states. `flats` and `darks` replace its
    flat and dark fields, as `Scan.from_arrays` takes them; without `darks` its own stay. An array without
    `flats` holds line integrals.

    Returns a `Scan`. Raises FileNotFoundError, IsADirectoryError, PermissionError or another OSError where
    the system refuses the file, ValueError for another file, one that is damaged, and rays that do not fit
    it.
    """

def read_files(path: str | PathLike[str]) -> list[tuple[str, int, str]]:
    """The files that are read for an input."""

def read_image(path: str | PathLike[str]) -> Image:
    """Reads an image of any format that `rayspin convert` reads: NIfTI, DICOM files and folders, MetaImage,
    TIFF, ISMRMRD images, arrays and others.

    path: the file. A colon names one of several arrays or series in it, as `data.npz:image`.

    Returns an `Image`. Raises FileNotFoundError, PermissionError or another OSError where the system refuses
    the file, ValueError for a file that holds no image or is damaged.
    """

def read_scan(
    path: str | PathLike[str],
    *,
    trajectory: str | PathLike[str] | None = None,
    matrix: Sequence[int] | None = None,
    fov_mm: Sequence[float] | None = None,
    units: str | None = None,
    order: str | None = None,
    trajectory_weights: bool = False,
) -> Scan:
    """Reads a raw MRI scan with a header (ISMRMRD, fastMRI, Siemens, Bruker, GE), or k-space as an array (BART,
        NumPy, MATLAB, HDF5).

    path: the file; a name after a colon chooses one of several scans or arrays in it.
    trajectory: the file of the points of an array of samples.
    matrix: the image's matrix (x, y) or (x, y, z) for an array.
    fov_mm: the field of view along x, y and z in mm of an array; 1 mm for each voxel unless given.
    units: of the trajectory, as `Scan.from_arrays` takes them.
    order: what each axis of an array counts, such as "x,y,coil"; the format's own unless given. On a grid x,
        y, z and coil, along a trajectory readout, spoke, sample and coil; 1 is an axis of length 1.
    trajectory_weights: whether the trajectory's last column holds density weights, which are left out.

    Returns a `Scan`, whose `notes` say what was assumed or repaired. A scan with a header (ISMRMRD, or a
    scanner's own files: Siemens' .dat, the folder of a scan of Bruker's, GE's .7) states its own matrix,
    field of view and trajectory.

    If the axes of an array count slices, repetitions, contrasts, cardiac phases or sets, all images are read:
    `images` counts them, and `arrays` takes the number of one, in the order of set, cardiac phase,
    repetition, contrast and slice, the last one fastest.

    Raises FileNotFoundError, IsADirectoryError, PermissionError or another OSError where the system refuses
    the file, ValueError for a file of another format, one that is damaged, and for keywords that the file's
    header settles.
    """

@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: Literal["cartesian"],
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    client: Any = None,
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
    client: Any = None,
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
    client: Any = None,
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
    client: Any = None,
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
    client: Any = None,
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
    client: Any = None,
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
    client: Any = None,
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
    client: Any = None,
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
@overload
def recon(
    scan: Scan | str | PathLike[str],
    method: None = None,
    *,
    device: str = "auto",
    keep_maps: bool = True,
    progress: Heard = None,
    client: Any = None,
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
) -> Reconstruction:
    """Images x from the samples d of a scan: for most methods the minimum of |F x - d|^2 plus a penalty, with F
    the encoding by coils and k-space. `rayspin.methods()` says what each method minimises or computes.

    scan: from `read_scan`, `Scan.from_arrays` or `simulate.mri`, or the path of a file, which is then read as
        the run needs it: volumes and windows one after another, and image by image what does not fit
        `memory`.
    method: a name of `rayspin.methods()`; the one that suits the scan unless given, which `notes` say.
    device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU. "cuda:all" and
        "cuda:0,2" are several GPUs: the images of a scan go to them, or the coils of each image where images
        are fewer than GPUs, or too large for one.
    keep_maps: False leaves out the result's `maps`, which take time and memory for large volumes.
    progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
    client: a `distributed.Client`. Its cluster then makes the images, a task for each group of slices;
        `rayspin.dask.recon` is the same with more arguments. `device` names the device of each worker, and
        "auto" takes the worker's own. `memory` limits each worker, and `progress` is called for tasks.
    options: keywords that say what is reconstructed and how, listed below, and parameters of the method, as
        `rayspin.methods()` lists them. lambda_="auto" searches for the weight whose image best predicts
        samples that were held out.

    Returns a `Reconstruction`: `image` is complex64 `[z, y, x]`, or `[volume, z, y, x]`, signal per field
    of view.

    Arrays of NumPy, CuPy and torch, and lists, are copied; numbers of another precision are converted to
    complex64 (maps), float32 (field_map) and complex128 (noise_covariance).

    Raises TypeError for a keyword that the method lacks or a value of another type. Raises ValueError for a
    method, shape, number of coils or value that does not fit the scan. Raises MemoryError where memory is
    short, KeyboardInterrupt after Ctrl-C, and the exceptions of `progress`. If `client` is given, it raises
    ImportError where dask.distributed is not installed, TypeError for what is no client, and TimeoutError
    where no worker has a device that works.

    >>> import rayspin
    >>> scan = rayspin.simulate.mri(matrix=(32, 32), coils=2, trajectory="radial").scan
    >>> found = rayspin.recon(scan, "cg-sense", iterations=5, device="cpu")
    >>> found.image.shape, found.image.dtype, found.maps.shape
    ((1, 32, 32), dtype('complex64'), (2, 1, 32, 32))
    """

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
@overload
def recon_ct(
    scan: CtScan | str | PathLike[str],
    method: None = None,
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
    iterations: int = ...,
    tolerance: float = ...,
    relaxation: float = ...,
    subsets: int = ...,
    lambda_: float = ...,
) -> CtReconstruction:
    """The attenuation f of a volume from line integrals p = A f of a scan: by filtered back-projection, or
    iterations that make |A f - p| small. `ct.methods()` says what each method computes.

    scan: from `ct.read_scan`, `ct.Scan.from_arrays` or `simulate.ct`, or the path of a file: a scan with a
        header, or an array of projections with `arc`.
    method: a name of `ct.methods()`; the one that suits the rays unless given, which `notes` say.
    device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU. "cuda:all" and
        "cuda:0,2" are several GPUs: each makes some slices of the volume, or in iterations projects along
        the rays of some views.
    grid: the voxels, or `matrix`, `voxel_mm` and `centre_mm`; those that the detector resolves unless given.
    correct: names of `ct.corrections()`, or `{name: {parameter: value}}`.
    progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.
    options: keywords that say what is reconstructed and how, listed below, and parameters of the method, as
        `ct.methods()` lists them.

    Returns a `Reconstruction`: `volume` is float32 `[z, y, x]` in 1/mm.

    Raises TypeError for a keyword that the method has not or a value of another type. Raises ValueError for a
    method, shape or value that does not fit the scan. Raises MemoryError where memory is short,
    KeyboardInterrupt after Ctrl-C, and the exceptions of `progress`.
    """

def recon_options(kind: str) -> dict[str, dict[str, Any]]:
    """The keywords of `recon` and `ct.recon` that its table of options has."""

def remade(kind: type, version: int, parts: dict[str, Any]) -> Any:
    """Makes the object of a pickle: `pickle.loads`, `copy.copy` and `copy.deepcopy` call it.

    kind: the object's class. version: of the pickle. parts: the parts of the object, by name.

    Returns the object. Raises ValueError for a pickle of another version and for parts that do not fit each
    other. Raises TypeError for parts of another type and for another class. Making the object raises its own
    exceptions, such as RuntimeError where its GPU is not there.
    """

def render_options() -> dict[str, dict[str, Any]]:
    """The options of pictures. Returns a dictionary as `simulate.options` does."""

def render_volume(
    mode: str,
    volume: Any,
    spacing_mm: float | Sequence[float],
    *,
    device: str = "auto",
    transfer: ArrayLike | None = None,
    progress: Heard = None,
    **options: Any,
) -> Any:
    """Draws a volume `[z, y, x]` with voxels of `spacing_mm` (x, y, z) in the `mode` xray, mip, volume or
    surface of `rayspin render`.
    """

def sense(
    maps: Array,
    points: Array | None = None,
    *,
    eps: float | None = None,
    device: str = "auto",
) -> LinearOperator:
    """Sensitivity encoding: y[c] = m_c x, or with points y[c, j] = sum_x m_c(x) x[x] exp(-2 pi i k_j.x).

    maps: coil sensitivities m_c, complex64 or complex128 `[coil, y, x]` or `[coil, z, y, x]`, which the
        operator copies.
    points, eps, device: as for `linop.nufft`.

    Returns a `LinearOperator` of the maps' dtype from `[y, x]` or `[z, y, x]` to `[coil, y, x]`, or to
    `[coil, sample]`. Raises TypeError for maps of another dtype, and as `linop.nufft`.
    """

def set_threads(threads: int) -> None:
    """Sets the number of threads that compute on the CPU and read files. The environment variable
    RAYSPIN_THREADS sets it when rayspin is imported.

    threads: from 1 to 4 for each core.

    Returns None. Raises ValueError for another number, RuntimeError if threads of another number have
    started: call it before a scan is read or anything is computed.

    >>> import subprocess, sys
    >>> text = "import rayspin; rayspin.set_threads(1); print(rayspin.threads())"
    >>> subprocess.run([sys.executable, "-c", text], capture_output=True, text=True).stdout
    '1\\n'
    """

def simulate_ct(
    *,
    progress: Heard = None,
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
) -> CtSimulation:
    """A CT scan of a phantom: exact line integrals p, or counts of photons with mean N exp(-p) and noise.

    options: keywords that `simulate.options("ct")` lists, the options of the command `rayspin simulate ct`.
        Angles are in radian.
    progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.

    Returns a `CtSimulation`: the scan, its truth and its voxels. Raises as `simulate.mri`.
    """

def simulate_mri(
    *,
    progress: Heard = None,
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
) -> MriSimulation:
    """An MRI scan of a phantom: samples d(c, k) = integral of c(x) image(x) exp(-2 pi i k.x), in closed form,
        with noise if `snr` is given.

    options: keywords that `simulate.options("mri")` lists, the options of the command `rayspin simulate mri`.
    progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.

    Returns an `MriSimulation`: the scan, its truth, maps and field. Raises TypeError for an option that there
    is not or a value of another type, ValueError for a value out of range or an option that does nothing
    beside the others.
    """

def simulate_options(kind: Literal["mri", "ct"]) -> dict[str, dict[str, Any]]:
    """The options of `simulate.mri` or `simulate.ct`, by kind: "mri" or "ct".

    Returns a dictionary by the options' names. A value has "default" (text; None where it follows from the
    others), "names" (the names to choose from), "unit" ("radian" for angles, else None; "help" states other
    units), and "help". Raises ValueError for another kind.
    """

def ssim(image: Any, truth: Any) -> float:
    """Mean structural similarity with Gaussian windows of 11 x 11 pixels and the truth's range (Wang 2004).
    Complex values enter as magnitudes.

    Returns a float, 1 for equal images. Raises as `nrmse`.
    """

def stack(operators: Sequence[LinearOperator]) -> LinearOperator:
    """A x = [A_1 x; A_2 x; ...]: all operators on the same x, the results joined in one flat array.

    operators: a list of operators of one input shape, dtype and device.

    Returns a `LinearOperator` to `[sum of the output sizes]`. Raises ValueError for an empty list or shapes
    that differ, TypeError for other dtypes or devices.
    """

def stream_recon(
    scan: Scan | str | PathLike[str],
    method: str | None = None,
    *,
    device: str = "auto",
    **options: Any,
) -> Images:
    """The images of a scan one after another, as they are made: the volumes of a series. One is held
    at a time.

    scan, method, device, options: as `rayspin.recon` takes them. The path of a file is read repetition by
        repetition.

    Returns an iterator of complex64 images `[z, y, x]`, with the attributes `method` and `notes` and the
    function `close`. The run goes on in a thread of its own, one image ahead of the caller; `close`, the end
    of the iterator, or Ctrl-C ends it. Raises as `rayspin.recon` does: at once for the keywords, and at the
    first image for the scan.

    >>> import rayspin
    >>> scan = rayspin.simulate.mri(matrix=(24, 24), coils=2, repetitions=3).scan
    >>> for image in rayspin.images(scan, "cartesian", device="cpu"):
    ...     print(image.shape)
    (1, 24, 24)
    (1, 24, 24)
    (1, 24, 24)
    """

def threads() -> int:
    """The number of threads that compute on the CPU. Returns a whole number."""

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
) -> LinearOperator:
    """The normal operator of a non-uniform Fourier transform F, by convolution on a grid twice as large:

        A x = sum_c conj(m_c) F^H W F (m_c x)

    points, shape, eps, dtype, device: as for `linop.nufft`.
    weights: W, real `[sample]`; 1 unless given.
    maps: coil sensitivities m_c, `[coil, shape...]` of the operator's dtype; without maps x has the axes of
        `batch` before it.

    Returns a `LinearOperator` from images to images, to pass as `normal=` to solvers. Raises as
    `linop.nufft`.
    """

def total_variation(shape: Sequence[int], steps: int = 10) -> Penalty:
    """g(x) = sum_i sqrt(sum_a |(D_a x)_i|^2), the isotropic total variation of an image with differences D_a
    along its axes.

    shape: of the image.
    steps: of the inner iteration that approximates the proximal map; more are more accurate.

    Returns a `Penalty` for arrays of this shape, real or complex. Raises ValueError for another shape or
    number of steps.
    """

def wavelet(
    shape: Sequence[int],
    family: str = "db2",
    levels: int | None = None,
    *,
    dtype: Any = None,
    device: str = "auto",
) -> LinearOperator:
    """The orthogonal wavelet transform of an image, A^H A x = x.

    shape: of the image, 1 to 3 axes. family: "haar" or "db2". levels: the most levels; as many as the shape
        allows unless given.
    dtype: complex64 (the default) or complex128. device: as for `identity`.

    Returns a `LinearOperator` from images to coefficients. Raises ValueError for another family, and as
    `identity`.
    """

def wavelet_penalty(
    shape: Sequence[int],
    family: str = "db2",
    levels: int | None = None,
    seed: int | None = None,
) -> Penalty:
    """g(x) = sum_i |(W x)_i| over the details of an orthogonal wavelet transform W.

    shape: of the image, of 1 to 3 axes.
    family: "haar" or "db2".
    levels: the most levels; as many as the shape allows unless given.
    seed: shifts the image anew at each use, which spares artefacts of blocks; no shifts unless given.

    Returns a `Penalty` for complex arrays of this shape. Raises ValueError for another family, shape or
    number of levels.
    """

def written_files(path: str | PathLike[str], stacks: int) -> list[tuple[str, int, str]]:
    """The files that an image of this many stacks of slices is written to."""
