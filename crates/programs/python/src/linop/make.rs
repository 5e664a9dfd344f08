//! What makes operators.

use std::sync::Arc;

use ndarray::Ix1;
use num_complex::Complex;
use pyo3::prelude::*;
use rayspin::core::{Error, Real, Trajectory, format_shape};
use rayspin::device::Array;
use rayspin::kernels::nufft::{self, Options};
use rayspin::linop::{
    BlockDiagonal, Diagonal, FiniteDifference, Fourier, Identity, Nudft, Nufft, Op, SamplingMask, Sense,
    SenseNufft, SenseToeplitz, Stack, ToeplitzNormal, Wavelet, WaveletFamily,
};

use super::{AnyOp, LinearOperator, Made, Number, each, number_type};
use crate::error::{raised, raised_of, wrong_type};
use crate::exchange::copied::{self, asarray, count, counts, doubles, whole_or_none};
use crate::exchange::{Dtype, Given};
use crate::processor::Processor;
use crate::signals::Detached;

/// `$body` with the type `$R` of real numbers of a precision; complex and real types alike.
macro_rules! precision {
    ($dtype:expr, $R:ident => $body:expr) => {
        match $dtype {
            Dtype::F32 | Dtype::C64 => {
                type $R = f32;
                $body
            }
            Dtype::F64 | Dtype::C128 => {
                type $R = f64;
                $body
            }
        }
    };
}

/// A trajectory from points `[sample, dim]` in cycles per field of view.
pub(crate) fn trajectory(points: &Bound<'_, PyAny>) -> PyResult<Trajectory> {
    let points = doubles("points", "[sample, dim]", points)?;
    Trajectory::from_cycles_per_fov(points).map_err(|error| raised_of("points", error))
}

/// How an operator of points was made.
fn made_of_points(
    maker: &'static str,
    points: &Bound<'_, PyAny>,
    trajectory: &Trajectory,
    [shape, batch]: [&[usize]; 2],
    dtype: Dtype,
    processor: &Processor,
) -> PyResult<Made> {
    let py = points.py();
    let made = Made::on(py, maker, processor)?.with(py, "shape", shape)?.with(py, "batch", batch)?;
    with_points(made.with(py, "dtype", dtype.name())?, points, trajectory)
}

fn with_points(made: Made, points: &Bound<'_, PyAny>, trajectory: &Trajectory) -> PyResult<Made> {
    made.with_array("points", points, trajectory.points().as_slice().unwrap_or_default())
}

fn complex_only(dtype: Dtype, name: &str) -> PyResult<Dtype> {
    match dtype {
        Dtype::C64 | Dtype::C128 => Ok(dtype),
        other => Err(wrong_type("dtype", format!("complex64 or complex128 for {name}"), other.name())),
    }
}

fn plan<R: Real>(
    py: Python<'_>,
    processor: &Processor,
    points: &Trajectory,
    matrix: &[usize],
    eps: Option<f64>,
) -> PyResult<Arc<nufft::Nufft<R>>> {
    let options = eps.map_or_else(Options::default, Options::tolerance);
    if let Some(eps) = eps {
        // An error of this check concerns `eps`; an error of the plan concerns the points or the matrix.
        let checked = nufft::Nufft::<R>::upsampling_for(&processor.device, eps, &vec![8; matrix.len()], 8);
        checked.map_err(|error| raised_of("eps", error))?;
    }
    py.detached(|| nufft::Nufft::new(&processor.device, points, matrix, &options))?
        .map(Arc::new)
        .map_err(raised)
}

/// A x = x.
///
/// shape: of x. dtype: float32, float64, complex64 (the default) or complex128.
/// device: "cpu", "cuda", "cuda:1", or "auto", the first GPU that works, else the CPU.
///
/// Returns a `LinearOperator`. Raises ValueError for a shape or device, TypeError for a dtype out of range.
///
/// `(shape: Sequence[int], *, dtype: Any, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (shape, *, dtype=None, device="auto"))]
pub(crate) fn identity(
    py: Python<'_>,
    shape: Vec<i64>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (processor, shape) = (Processor::named(device)?, copied::shape("shape", shape)?);
    let dtype = Dtype::named(dtype, Dtype::C64)?;
    let made =
        Made::on(py, "identity", &processor)?.with(py, "shape", &shape)?.with(py, "dtype", dtype.name())?;
    number_type!(dtype, S => Ok(LinearOperator::new(Identity::<S>::new(&shape), &processor, made)))
}

/// The unitary Fourier transform over the last axes, both sides centred at n // 2:
///
///     y[k] = prod_a n_a^(-1/2) sum_x x[x] exp(-2 pi i sum_a k_a x_a / n_a)
///
/// shape: of the axes that are transformed, 1 to 3. batch: of the axes before them.
/// dtype: complex64 (the default) or complex128. device: as for `identity`.
///
/// Returns a `LinearOperator` from `[batch..., shape...]` to the same. Raises as `identity`.
///
/// `(shape: Sequence[int], *, batch: Sequence[int], dtype: Any, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (shape, *, batch=vec![], dtype=None, device="auto"))]
pub(crate) fn fft(
    py: Python<'_>,
    shape: Vec<i64>,
    batch: Vec<i64>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let (shape, batch) = (copied::shape("shape", shape)?, counts("batch", batch)?);
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "fft")?;
    let made = Made::on(py, "fft", &processor)?.with(py, "shape", &shape)?.with(py, "batch", &batch)?;
    let made = made.with(py, "dtype", dtype.name())?;
    precision!(dtype, R => {
        let op = Fourier::<R>::new(&processor.device, &batch, &shape).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor, made))
    })
}

/// The non-uniform Fourier transform to a tolerance, x in fields of view and 0 at index n // 2:
///
///     y[j] = sum_x image[x] exp(-2 pi i k_j.x)
///
/// points: k_j, real `[sample, dim]`, components in the order x, y, z, in cycles per field of view. The
/// operator holds them for pickles, and cannot be pickled once they have changed.
/// shape: of an image, `(n,)`, `(y, x)` or `(z, y, x)`. batch: of the axes before it.
/// eps: the relative error, about 1e-5 unless given. dtype: complex64 (the default) or complex128. device: as
///     for `identity`.
///
/// Returns a `LinearOperator` from `[batch..., shape...]` to `[batch..., sample]`. Raises ValueError for
/// points of another shape or not finite and a tolerance out of range, and as `identity`.
///
/// `(points: Array, shape: Sequence[int], *, batch: Sequence[int], eps: float | None, dtype: Any, device:
/// str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (points, shape, *, batch=vec![], eps=None, dtype=None, device="auto"))]
pub(crate) fn nufft_operator(
    points: &Bound<'_, PyAny>,
    shape: Vec<i64>,
    batch: Vec<i64>,
    eps: Option<f64>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (processor, trajectory) = (Processor::named(device)?, trajectory(points)?);
    let (shape, batch) = (copied::shape("shape", shape)?, counts("batch", batch)?);
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "nufft")?;
    let made = made_of_points("nufft_operator", points, &trajectory, [&shape, &batch], dtype, &processor)?;
    let made = made.with(points.py(), "eps", eps)?;
    precision!(dtype, R => {
        let plan = plan::<R>(points.py(), &processor, &trajectory, &shape, eps)?;
        Ok(LinearOperator::new(Nufft::new(&batch, plan), &processor, made))
    })
}

/// `linop.nufft` summed term by term: exact, for small problems and for tests.
///
/// points, shape, batch, dtype, device: as for `linop.nufft`.
///
/// Returns a `LinearOperator` from `[batch..., shape...]` to `[batch..., sample]`. Raises as `linop.nufft`.
///
/// `(points: Array, shape: Sequence[int], *, batch: Sequence[int], dtype: Any, device: str) ->
/// LinearOperator`
#[pyfunction]
#[pyo3(signature = (points, shape, *, batch=vec![], dtype=None, device="auto"))]
pub(crate) fn nudft(
    points: &Bound<'_, PyAny>,
    shape: Vec<i64>,
    batch: Vec<i64>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (processor, trajectory) = (Processor::named(device)?, trajectory(points)?);
    let (shape, batch) = (copied::shape("shape", shape)?, counts("batch", batch)?);
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "nudft")?;
    let made = made_of_points("nudft", points, &trajectory, [&shape, &batch], dtype, &processor)?;
    precision!(dtype, R => {
        let op = Nudft::<R>::new(&batch, trajectory, &shape).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor, made))
    })
}

/// The normal operator of a non-uniform Fourier transform F, by convolution on a grid twice as large:
///
///     A x = sum_c conj(m_c) F^H W F (m_c x)
///
/// points, shape, eps, dtype, device: as for `linop.nufft`.
/// weights: W, real `[sample]`; 1 unless given.
/// maps: coil sensitivities m_c, `[coil, shape...]` of the operator's dtype; without maps x has the axes of
///     `batch` before it.
///
/// Returns a `LinearOperator` from images to images, to pass as `normal=` to solvers. Raises as
/// `linop.nufft`.
///
/// `(points: Array, shape: Sequence[int], *, weights: Array | None, maps: Array | None, batch: Sequence[int],
/// eps: float | None, dtype: Any, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (points, shape, *, weights=None, maps=None, batch=vec![], eps=None, dtype=None, device="auto"))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn toeplitz(
    points: &Bound<'_, PyAny>,
    shape: Vec<i64>,
    weights: Option<&Bound<'_, PyAny>>,
    maps: Option<&Bound<'_, PyAny>>,
    batch: Vec<i64>,
    eps: Option<f64>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (py, processor, trajectory) = (points.py(), Processor::named(device)?, trajectory(points)?);
    let (shape, batch) = (copied::shape("shape", shape)?, counts("batch", batch)?);
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "toeplitz")?;
    let mut made = made_of_points("toeplitz", points, &trajectory, [&shape, &batch], dtype, &processor)?;
    made = made.with(py, "eps", eps)?;
    let given = weights;
    let weights = weights.map(|weights| doubles::<Ix1>("weights", "[sample]", weights)).transpose()?;
    if let (Some(given), Some(values)) = (given, &weights) {
        made = made.with_array("weights", given, values.as_slice().unwrap_or_default())?;
    }
    if maps.is_some() && !batch.is_empty() {
        return Err(raised(Error::value("batch", "none with maps", format_shape(&batch))));
    }
    precision!(dtype, R => {
        let device = &processor.device;
        let weights = weights.map(|weights| {
            let values: Vec<R> = weights.iter().map(|&w| w as R).collect();
            Array::from_vec(device, &[values.len()], values)
        });
        let weights = weights.transpose().map_err(raised)?;
        let plan = plan::<R>(py, &processor, &trajectory, &shape, eps)?;
        let normal = py.detached(|| ToeplitzNormal::by_plan(&batch, &plan, &trajectory, weights.as_ref()));
        let normal = normal?.map_err(raised)?;
        match maps {
            None => Ok(LinearOperator::new(normal, &processor, made)),
            Some(maps) => {
                let maps = Arc::new(Given::new("maps", maps)?.keep::<Complex<R>>(&processor)?);
                let op = SenseToeplitz::new(maps.clone(), normal.toeplitz().clone()).map_err(raised)?;
                Ok(LinearOperator::new(op, &processor, made.holding("maps", &maps)))
            }
        }
    })
}

/// Sensitivity encoding: y[c] = m_c x, or with points y[c, j] = sum_x m_c(x) x[x] exp(-2 pi i k_j.x).
///
/// maps: coil sensitivities m_c, complex64 or complex128 `[coil, y, x]` or `[coil, z, y, x]`, which the
///     operator copies.
/// points, eps, device: as for `linop.nufft`.
///
/// Returns a `LinearOperator` of the maps' dtype from `[y, x]` or `[z, y, x]` to `[coil, y, x]`, or to
/// `[coil, sample]`. Raises TypeError for maps of another dtype, and as `linop.nufft`.
///
/// `(maps: Array, points: Array | None, *, eps: float | None, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (maps, points=None, *, eps=None, device="auto"))]
pub(crate) fn sense(
    maps: &Bound<'_, PyAny>,
    points: Option<&Bound<'_, PyAny>>,
    eps: Option<f64>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let given = Given::new("maps", maps)?;
    let dtype = complex_only(given.dtype, "maps")?;
    let py = maps.py();
    let made = Made::on(py, "sense", &processor)?.with(py, "eps", eps)?;
    precision!(dtype, R => {
        let maps: Arc<Array<Complex<R>>> = Arc::new(given.keep(&processor)?);
        let made = made.holding("maps", &maps);
        match points {
            None => Ok(LinearOperator::new(Sense::new(maps).map_err(raised)?, &processor, made)),
            Some(points) => {
                let matrix = maps.shape().get(1..).unwrap_or_default().to_vec();
                let trajectory = trajectory(points)?;
                let made = with_points(made, points, &trajectory)?;
                let plan = plan::<R>(py, &processor, &trajectory, &matrix, eps)?;
                Ok(LinearOperator::new(SenseNufft::new(maps, plan).map_err(raised)?, &processor, made))
            }
        }
    })
}

/// A x = factors x.
///
/// factors: an array of float32, float64, complex64 or complex128, which the operator copies.
/// shape: of x, which ends in the axes of the factors; their own shape unless given. device: as for
///     `identity`.
///
/// Returns a `LinearOperator` of the factors' dtype. Raises as `identity`.
///
/// `(factors: Array, shape: Sequence[int] | None, *, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (factors, shape=None, *, device="auto"))]
pub(crate) fn diagonal(
    factors: &Bound<'_, PyAny>,
    shape: Option<Vec<i64>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let given = Given::new("factors", factors)?;
    let shape = shape.map_or_else(|| Ok(given.shape.clone()), |shape| copied::shape("shape", shape))?;
    let py = factors.py();
    let made = Made::on(py, "diagonal", &processor)?.with(py, "shape", &shape)?;
    number_type!(given.dtype, S => {
        let factors: Arc<Array<S>> = Arc::new(given.keep(&processor)?);
        let made = made.holding("factors", &factors);
        Ok(LinearOperator::new(Diagonal::complex(&shape, factors).map_err(raised)?, &processor, made))
    })
}

/// Samples on a grid: A x = x where the mask is true, 0 elsewhere.
///
/// mask: booleans, an array of NumPy or a list.
/// shape: of x, which ends in the axes of the mask; its own shape unless given.
/// dtype: complex64 (the default) or complex128. device: as for `identity`.
///
/// Returns a `LinearOperator`. Raises TypeError for a mask of numbers, and as `identity`.
///
/// `(mask: NDArray[np.bool_], shape: Sequence[int] | None, *, dtype: Any, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (mask, shape=None, *, dtype=None, device="auto"))]
pub(crate) fn mask(
    mask: &Bound<'_, PyAny>,
    shape: Option<Vec<i64>>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let given = asarray("mask", mask)?;
    if !given.getattr("dtype")?.getattr("kind")?.eq("b")? {
        let found = format!("numbers of {}; pass mask != 0", given.getattr("dtype")?);
        return Err(wrong_type("mask", "booleans", found));
    }
    // A boolean of NumPy may be any byte, one of Rust may not.
    let bytes = given.call_method1("view", ("uint8",))?.extract::<numpy::PyReadonlyArrayDyn<'_, u8>>()?;
    let mask = bytes.as_array().mapv(|byte| byte != 0);
    let shape = shape.map_or_else(|| Ok(mask.shape().to_vec()), |shape| copied::shape("shape", shape))?;
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "mask")?;
    let py = given.py();
    let made =
        Made::on(py, "mask", &processor)?.with(py, "shape", &shape)?.with(py, "dtype", dtype.name())?;
    precision!(dtype, R => {
        let op = Arc::new(SamplingMask::<R>::new(&processor.device, &shape, mask.view()).map_err(raised)?);
        let made = made.holding_of("mask", {
            let op = op.clone();
            move |py| {
                let mask = op.mask().to_host().map_err(raised)?.mapv(|factor| factor != 0.0);
                Ok(numpy::PyArray::from_owned_array(py, mask).into_any().unbind())
            }
        });
        Ok(LinearOperator { op: <Complex<R> as Number>::any(op), processor, made })
    })
}

/// Differences of neighbours: y[a, i] = x[i + 1 along axis a] - x[i], 0 at the end of an axis.
///
/// shape: of x. axes: numbers of axes from 0; all unless given. dtype: as for `identity`, complex64 unless
///     given. device: as for `identity`.
///
/// Returns a `LinearOperator` from `shape` to `[axis, shape...]`. Raises ValueError for an axis that there is
/// not, and as `identity`.
///
/// `(shape: Sequence[int], axes: Sequence[int] | None, *, dtype: Any, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (shape, axes=None, *, dtype=None, device="auto"))]
pub(crate) fn differences(
    py: Python<'_>,
    shape: Vec<i64>,
    axes: Option<Vec<i64>>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (processor, shape) = (Processor::named(device)?, copied::shape("shape", shape)?);
    let axes = axes.map_or_else(|| Ok((0..shape.len()).collect()), |axes| counts("axes", axes))?;
    let dtype = Dtype::named(dtype, Dtype::C64)?;
    let made = Made::on(py, "differences", &processor)?.with(py, "shape", &shape)?.with(py, "axes", &axes)?;
    let made = made.with(py, "dtype", dtype.name())?;
    number_type!(dtype, S => {
        let op = FiniteDifference::<S>::along(&shape, &axes).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor, made))
    })
}

/// A wavelet family by its name. Errors: another name.
pub(crate) fn family(name: &str) -> PyResult<WaveletFamily> {
    match name {
        "haar" => Ok(WaveletFamily::Haar),
        "db2" => Ok(WaveletFamily::Daubechies2),
        _ => Err(raised(Error::value("family", "haar or db2", name))),
    }
}

/// The orthogonal wavelet transform of an image, A^H A x = x.
///
/// shape: of the image, 1 to 3 axes. family: "haar" or "db2". levels: the most levels; as many as the shape
///     allows unless given.
/// dtype: complex64 (the default) or complex128. device: as for `identity`.
///
/// Returns a `LinearOperator` from images to coefficients. Raises ValueError for another family, and as
/// `identity`.
///
/// `(shape: Sequence[int], family: str, levels: int | None, *, dtype: Any, device: str) -> LinearOperator`
#[pyfunction]
#[pyo3(signature = (shape, family="db2", levels=None, *, dtype=None, device="auto"))]
pub(crate) fn wavelet(
    py: Python<'_>,
    shape: Vec<i64>,
    family: &str,
    #[pyo3(from_py_with = whole_or_none)] levels: Option<i64>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (processor, shape) = (Processor::named(device)?, copied::shape("shape", shape)?);
    let levels = levels.map(|levels| count("levels", levels)).transpose()?;
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "wavelet")?;
    let made = Made::on(py, "wavelet", &processor)?.with(py, "shape", &shape)?.with(py, "family", family)?;
    let made = made.with(py, "levels", levels)?.with(py, "dtype", dtype.name())?;
    precision!(dtype, R => {
        let op = Wavelet::<R>::with_levels(&shape, self::family(family)?, levels).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor, made))
    })
}

/// A x = [A_1 x; A_2 x; ...]: all operators on the same x, the results joined in one flat array.
///
/// operators: a list of operators of one input shape, dtype and device.
///
/// Returns a `LinearOperator` to `[sum of the output sizes]`. Raises ValueError for an empty list or shapes
/// that differ, TypeError for other dtypes or devices.
///
/// `(operators: Sequence[LinearOperator]) -> LinearOperator`
#[pyfunction]
pub(crate) fn stack(operators: Vec<Bound<'_, LinearOperator>>) -> PyResult<LinearOperator> {
    joined(&operators, "stack", |first| {
        each!(&first.op, op => {
            let parts = of_type(first, op, &operators)?;
            Ok(Number::any(Arc::new(Stack::new(parts).map_err(raised)?)))
        })
    })
}

/// (A x)[i] = A_i x[i]: operator i on part i of the first axis of x.
///
/// operators: a list of operators of equal shapes, of one dtype and device.
///
/// Returns a `LinearOperator` from `[operator, ...]` to `[operator, ...]`. Raises as `stack`.
///
/// `(operators: Sequence[LinearOperator]) -> LinearOperator`
#[pyfunction]
pub(crate) fn block_diagonal(operators: Vec<Bound<'_, LinearOperator>>) -> PyResult<LinearOperator> {
    joined(&operators, "block_diagonal", |first| {
        each!(&first.op, op => {
            let parts = of_type(first, op, &operators)?;
            Ok(Number::any(Arc::new(BlockDiagonal::new(parts).map_err(raised)?)))
        })
    })
}

fn joined(
    operators: &[Bound<'_, LinearOperator>],
    what: &'static str,
    make: impl Fn(&LinearOperator) -> PyResult<AnyOp>,
) -> PyResult<LinearOperator> {
    let none = || raised(Error::value(what, "at least one operator", "none"));
    let first = operators.first().ok_or_else(none)?;
    let made = Made::by(first.py(), what).of_all(operators)?.with(first.py(), "operators", operators)?;
    Ok(first.get().beside(make(first.get())?, made))
}

fn of_type<S: Number>(
    first: &LinearOperator,
    _: &Op<S>,
    operators: &[Bound<'_, LinearOperator>],
) -> PyResult<Vec<Op<S>>> {
    operators.iter().map(|op| first.same(op.get()).cloned()).collect()
}
