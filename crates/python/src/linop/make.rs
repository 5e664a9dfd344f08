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

use super::{AnyOp, LinearOperator, Number, each, number_type};
use crate::call::Detached;
use crate::copied::doubles;
use crate::error::{raised, wrong_type};
use crate::exchange::{Dtype, Given};
use crate::processor::Processor;

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
    Trajectory::from_cycles_per_fov(doubles("points", "[sample, dim]", points)?).map_err(raised)
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
    py.detached(|| nufft::Nufft::new(&processor.device, points, matrix, &options))
        .map(Arc::new)
        .map_err(raised)
}

/// x itself.
#[pyfunction]
#[pyo3(signature = (shape, *, dtype=None, device="auto"))]
pub(crate) fn identity(
    shape: Vec<usize>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    number_type!(Dtype::named(dtype, Dtype::C64)?, S => Ok(LinearOperator::new(Identity::<S>::new(&shape), &processor)))
}

/// The unitary Fourier transform over the last axes, centred at n // 2, of arrays `[batch..., shape...]`.
#[pyfunction]
#[pyo3(signature = (shape, *, batch=vec![], dtype=None, device="auto"))]
pub(crate) fn fft(
    shape: Vec<usize>,
    batch: Vec<usize>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "fft")?;
    precision!(dtype, R => {
        let op = Fourier::<R>::new(&processor.device, &batch, &shape).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor))
    })
}

/// The non-uniform Fourier transform of images `[batch..., shape...]` to samples `[batch..., sample]` at points `[sample, dim]` in
/// cycles per field of view, to the tolerance `eps`.
#[pyfunction]
#[pyo3(signature = (points, shape, *, batch=vec![], eps=None, dtype=None, device="auto"))]
pub(crate) fn nufft_operator(
    points: &Bound<'_, PyAny>,
    shape: Vec<usize>,
    batch: Vec<usize>,
    eps: Option<f64>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (processor, trajectory) = (Processor::named(device)?, trajectory(points)?);
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "nufft")?;
    precision!(dtype, R => {
        let plan = plan::<R>(points.py(), &processor, &trajectory, &shape, eps)?;
        Ok(LinearOperator::new(Nufft::new(&batch, plan), &processor))
    })
}

/// `nufft` summed term by term: exact, for small problems and for tests.
#[pyfunction]
#[pyo3(signature = (points, shape, *, batch=vec![], dtype=None, device="auto"))]
pub(crate) fn nudft(
    points: &Bound<'_, PyAny>,
    shape: Vec<usize>,
    batch: Vec<usize>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (processor, trajectory) = (Processor::named(device)?, trajectory(points)?);
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "nudft")?;
    precision!(dtype, R => {
        let op = Nudft::<R>::new(&batch, trajectory, &shape).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor))
    })
}

/// The normal operator of the non-uniform Fourier transform, with weights of the samples and coil sensitivities where they are given,
/// by convolution: Σ_j conj(c_j) FᴴWF(c_j x).
#[pyfunction]
#[pyo3(signature = (points, shape, *, weights=None, maps=None, batch=vec![], eps=None, dtype=None, device="auto"))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn toeplitz(
    points: &Bound<'_, PyAny>,
    shape: Vec<usize>,
    weights: Option<&Bound<'_, PyAny>>,
    maps: Option<&Bound<'_, PyAny>>,
    batch: Vec<usize>,
    eps: Option<f64>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let (py, processor, trajectory) = (points.py(), Processor::named(device)?, trajectory(points)?);
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "toeplitz")?;
    let weights = weights.map(|weights| doubles::<Ix1>("weights", "[sample]", weights)).transpose()?;
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
        let normal = normal.map_err(raised)?;
        match maps {
            None => Ok(LinearOperator::new(normal, &processor)),
            Some(maps) => {
                let maps = Given::new("maps", maps)?.keep::<Complex<R>>(&processor)?;
                let op = SenseToeplitz::new(maps, normal.toeplitz().clone()).map_err(raised)?;
                Ok(LinearOperator::new(op, &processor))
            }
        }
    })
}

/// Sensitivity encoding: images to coil images c_j x by maps `[coil, shape...]`, or, with points `[sample, dim]`, to samples
/// `[coil, sample]`.
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
    precision!(dtype, R => {
        let maps: Array<Complex<R>> = given.keep(&processor)?;
        match points {
            None => Ok(LinearOperator::new(Sense::new(maps).map_err(raised)?, &processor)),
            Some(points) => {
                let matrix = maps.shape().get(1..).unwrap_or_default().to_vec();
                let plan = plan::<R>(points.py(), &processor, &trajectory(points)?, &matrix, eps)?;
                Ok(LinearOperator::new(SenseNufft::new(maps, plan).map_err(raised)?, &processor))
            }
        }
    })
}

/// x times `factors`, whose shape is the trailing axes of `shape`.
#[pyfunction]
#[pyo3(signature = (factors, shape=None, *, device="auto"))]
pub(crate) fn diagonal(
    factors: &Bound<'_, PyAny>,
    shape: Option<Vec<usize>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let given = Given::new("factors", factors)?;
    let shape = shape.unwrap_or_else(|| given.shape.clone());
    number_type!(given.dtype, S => {
        let factors: Array<S> = given.keep(&processor)?;
        Ok(LinearOperator::new(Diagonal::complex(&shape, factors).map_err(raised)?, &processor))
    })
}

/// Samples on a grid: x where `mask` is true and 0 elsewhere. The mask's shape is the trailing axes of `shape`.
#[pyfunction]
#[pyo3(signature = (mask, shape=None, *, dtype=None, device="auto"))]
pub(crate) fn mask(
    mask: numpy::PyReadonlyArrayDyn<'_, bool>,
    shape: Option<Vec<usize>>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let mask = mask.as_array();
    let shape = shape.unwrap_or_else(|| mask.shape().to_vec());
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "mask")?;
    precision!(dtype, R => {
        let op = SamplingMask::<R>::new(&processor.device, &shape, mask).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor))
    })
}

/// Differences of neighbours along `axes`, all where none are named: `[axis, shape...]`.
#[pyfunction]
#[pyo3(signature = (shape, axes=None, *, dtype=None, device="auto"))]
pub(crate) fn differences(
    shape: Vec<usize>,
    axes: Option<Vec<usize>>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let axes = axes.unwrap_or_else(|| (0..shape.len()).collect());
    number_type!(Dtype::named(dtype, Dtype::C64)?, S => {
        let op = FiniteDifference::<S>::along(&shape, &axes).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor))
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

/// The orthogonal wavelet transform of images of 1 to 3 axes.
#[pyfunction]
#[pyo3(signature = (shape, family="db2", levels=None, *, dtype=None, device="auto"))]
pub(crate) fn wavelet(
    shape: Vec<usize>,
    family: &str,
    levels: Option<usize>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: &str,
) -> PyResult<LinearOperator> {
    let processor = Processor::named(device)?;
    let dtype = complex_only(Dtype::named(dtype, Dtype::C64)?, "wavelet")?;
    precision!(dtype, R => {
        let op = Wavelet::<R>::with_levels(&shape, self::family(family)?, levels).map_err(raised)?;
        Ok(LinearOperator::new(op, &processor))
    })
}

/// [A_1; A_2; ...]: all operators on the same x, the results joined in one flat array.
#[pyfunction]
pub(crate) fn stack(operators: Vec<Bound<'_, LinearOperator>>) -> PyResult<LinearOperator> {
    joined(&operators, "stack", |first| {
        each!(&first.op, op => {
            let all = of_type(first, op, &operators)?;
            Ok(first.with(Number::any(Arc::new(Stack::new(all).map_err(raised)?))))
        })
    })
}

/// Operator i on part i of the first axis of x.
#[pyfunction]
pub(crate) fn block_diagonal(operators: Vec<Bound<'_, LinearOperator>>) -> PyResult<LinearOperator> {
    joined(&operators, "block_diagonal", |first| {
        each!(&first.op, op => {
            let all = of_type(first, op, &operators)?;
            Ok(first.with(Number::any(Arc::new(BlockDiagonal::new(all).map_err(raised)?))))
        })
    })
}

fn joined(
    operators: &[Bound<'_, LinearOperator>],
    what: &str,
    make: impl Fn(&LinearOperator) -> PyResult<LinearOperator>,
) -> PyResult<LinearOperator> {
    let none = || raised(Error::value(what, "at least one operator", "none"));
    make(operators.first().ok_or_else(none)?.get())
}

fn of_type<S: Number>(
    first: &LinearOperator,
    _: &Op<S>,
    operators: &[Bound<'_, LinearOperator>],
) -> PyResult<Vec<Op<S>>> {
    operators.iter().map(|op| first.same(op.get()).cloned()).collect()
}
