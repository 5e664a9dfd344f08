//! `rayspin.prox`: penalties by their proximal maps.

use std::cell::OnceCell;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{Error, Result};
use rayspin::device::{Array, Device};
use rayspin::linop::FiniteDifference;
use rayspin::solve::{Distance, GroupNorms, Magnitudes, Proximal, TotalVariation};

use crate::call::{self, attached};
use crate::error::{described, raised, wrong_type};
use crate::exchange::copied::{self, count, whole, whole_or_none};
use crate::exchange::{Given, Output};
use crate::linop::{self, Number, expect_to_be_called, number_type};
use crate::processor::Processor;
use crate::remade::{self, Parts, Reduced, Remade, own};
use crate::signals::Signals;

/// A penalty g, by its proximal map prox_{tg}(x) = argmin_u 1/2 |u - x|^2 + t g(u), which a call computes:
/// `penalty(t, x)`.
///
/// The functions of `rayspin.prox` make penalties, `rayspin.solve.fista` and `pdhg` take them.
///
/// `__call__(t: float, x: NDArray[Number]) -> NDArray[Number]`
/// `__call__(t: float, x: Array) -> Any`
#[pyclass(frozen, module = "rayspin.prox")]
pub(crate) struct Penalty(Kind);

enum Kind {
    Magnitudes,
    Groups,
    NonNegative,
    Distance(Py<PyAny>),
    Wavelet { shape: Vec<usize>, family: String, levels: Option<usize>, seed: Option<u64> },
    TotalVariation { shape: Vec<usize>, steps: usize },
}

#[pymethods]
impl Penalty {
    /// prox_{tg}(x) = argmin_u 1/2 |u - x|^2 + t g(u).
    ///
    /// t: the weight of g, 0 or more. x: an array of float32, float64, complex64 or complex128 in C order, of
    /// the penalty's shape where it has one.
    ///
    /// Returns an array of x's shape, dtype, library and device. Raises TypeError for another dtype,
    /// ValueError for another shape or order, for a negative t, and for numbers that the penalty has not:
    /// `nonnegative` takes real, `wavelet` complex ones.
    fn __call__<'py>(&self, t: f64, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if !(t >= 0.0 && t.is_finite()) {
            return Err(raised(Error::value("t", "a number from 0", t)));
        }
        let given = Given::new("x", x)?;
        let processor = Processor::at(given.place)?;
        number_type!(given.dtype, S => {
            let shape = given.shape.clone();
            let mut output = Output::<S>::new(None, &shape, &given, &processor)?;
            let input = given.read::<S>(&processor)?;
            let target = &mut output.array;
            let data = self.data::<S>(x.py(), &processor)?;
            call::run(x, &Signals::default(), || {
                target.copy_from(&input)?;
                let kept = OnceCell::new();
                self.proximal::<S>(&processor.device, data, &kept)?.apply(t, target)
            })?;
            drop(input);
            output.finish()
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    fn __repr__(&self) -> String {
        format!("Penalty({})", self.name())
    }
}

/// The functions of `rayspin.prox`, by their names in this module.
const MAKERS: [&str; 6] = ["l1", "groups", "nonnegative", "l2", "wavelet_penalty", "total_variation"];

impl Remade for Penalty {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, own) = (object.py(), object.get());
        let arguments = PyDict::new(py);
        match &own.0 {
            Kind::Magnitudes | Kind::Groups | Kind::NonNegative => {}
            Kind::Distance(data) => arguments.set_item("data", data)?,
            Kind::Wavelet { shape, family, levels, seed } => {
                arguments.set_item("shape", shape)?;
                arguments.set_item("family", family)?;
                arguments.set_item("levels", levels)?;
                arguments.set_item("seed", seed)?;
            }
            Kind::TotalVariation { shape, steps } => {
                arguments.set_item("shape", shape)?;
                arguments.set_item("steps", steps)?;
            }
        }
        let parts = PyDict::new(py);
        let maker = if own.name() == "wavelet" { "wavelet_penalty" } else { own.name() };
        parts.set_item("maker", maker)?;
        parts.set_item("arguments", arguments)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let maker: String = parts.get("maker")?;
        if !MAKERS.contains(&&maker[..]) {
            return Err(raised(Error::value("maker", MAKERS.join(", "), maker)));
        }
        own(parts.python(), &maker)?.call((), Some(parts.within("arguments")?.dict()))
    }
}

impl Penalty {
    fn name(&self) -> &'static str {
        match &self.0 {
            Kind::Magnitudes => "l1",
            Kind::Groups => "groups",
            Kind::NonNegative => "nonnegative",
            Kind::Distance(_) => "l2",
            Kind::Wavelet { .. } => "wavelet",
            Kind::TotalVariation { .. } => "total_variation",
        }
    }

    /// The data of a distance.
    fn data<S: Number>(&self, py: Python<'_>, processor: &Processor) -> PyResult<Option<Arc<Array<S>>>> {
        match &self.0 {
            Kind::Distance(data) => {
                Given::new("data", data.bind(py))?.keep(processor).map(Arc::new).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn proximal<'a, S: Number>(
        &self,
        device: &Device,
        data: Option<Arc<Array<S>>>,
        kept: &'a OnceCell<FiniteDifference<S>>,
    ) -> Result<Box<dyn Proximal<S> + 'a>> {
        Ok(match (&self.0, data) {
            (Kind::Distance(_), Some(data)) => Box::new(Distance::new(data)),
            (Kind::Magnitudes | Kind::Distance(_), _) => Box::new(Magnitudes::default()),
            (Kind::Groups, _) => Box::new(GroupNorms::default()),
            (Kind::NonNegative, _) => S::non_negative()?,
            (Kind::Wavelet { shape, family, levels, seed }, _) => {
                S::wavelet_sparsity(device, shape, family, *levels, *seed)?
            }
            (Kind::TotalVariation { shape, steps }, _) => {
                let made = FiniteDifference::new(shape)?;
                let differences = kept.get_or_init(|| made);
                Box::new(TotalVariation::new(device, differences, differences.bound(), *steps)?)
            }
        })
    }
}

/// g(x) = sum_i |x_i|, whose proximal map shrinks magnitudes by t: x max(1 - t/|x|, 0).
///
/// Returns a `Penalty` for arrays of any shape, real or complex.
///
/// `() -> Penalty`
#[pyfunction]
pub(crate) fn l1() -> Penalty {
    Penalty(Kind::Magnitudes)
}

/// g(x) = sum_i sqrt(sum_a |x[a, i]|^2), a the first axis: isotropic total variation where x are differences
/// `[axis, ...]`.
///
/// Returns a `Penalty` for arrays `[axis, ...]`, real or complex, such as what `linop.differences` makes.
///
/// `() -> Penalty`
#[pyfunction]
pub(crate) fn groups() -> Penalty {
    Penalty(Kind::Groups)
}

/// g(x) = 0 where no number is negative, else infinite. The proximal map sets negative numbers to 0.
///
/// Returns a `Penalty` for real arrays of any shape.
///
/// `() -> Penalty`
#[pyfunction]
pub(crate) fn nonnegative() -> Penalty {
    Penalty(Kind::NonNegative)
}

/// g(x) = 1/2 |x - data|^2, whose proximal map is (x + t data)/(1 + t).
///
/// data: an array of the shape and dtype of x, which is kept and copied at each use.
///
/// Returns a `Penalty`. Raises TypeError for what is no array or has another dtype.
///
/// `(data: Array) -> Penalty`
#[pyfunction]
pub(crate) fn l2(data: &Bound<'_, PyAny>) -> PyResult<Penalty> {
    Given::new("data", data)?;
    Ok(Penalty(Kind::Distance(data.clone().unbind())))
}

/// g(x) = sum_i |(W x)_i| over the details of an orthogonal wavelet transform W.
///
/// shape: of the image, of 1 to 3 axes.
/// family: "haar" or "db2".
/// levels: the most levels; as many as the shape allows unless given.
/// seed: shifts the image anew at each use, which spares artefacts of blocks; no shifts unless given.
///
/// Returns a `Penalty` for complex arrays of this shape. Raises ValueError for another family, shape or
/// number of levels.
///
/// `(shape: Sequence[int], family: str, levels: int | None, seed: int | None) -> Penalty`
#[pyfunction]
#[pyo3(signature = (shape, family="db2", levels=None, seed=None))]
pub(crate) fn wavelet_penalty(
    shape: Vec<i64>,
    family: &str,
    #[pyo3(from_py_with = whole_or_none)] levels: Option<i64>,
    #[pyo3(from_py_with = whole_or_none)] seed: Option<i64>,
) -> PyResult<Penalty> {
    linop::family(family)?;
    let shape = copied::shape("shape", shape)?;
    let levels = levels.map(|levels| count("levels", levels)).transpose()?;
    let seed = seed.map(|seed| count("seed", seed)).transpose()?.map(|seed| seed as u64);
    Ok(Penalty(Kind::Wavelet { shape, family: family.to_owned(), levels, seed }))
}

/// g(x) = sum_i sqrt(sum_a |(D_a x)_i|^2), the isotropic total variation of an image with differences D_a
/// along its axes.
///
/// shape: of the image.
/// steps: of the inner iteration that approximates the proximal map; more are more accurate.
///
/// Returns a `Penalty` for arrays of this shape, real or complex. Raises ValueError for another shape or
/// number of steps.
///
/// `(shape: Sequence[int], steps: int) -> Penalty`
#[pyfunction]
#[pyo3(signature = (shape, steps=10))]
pub(crate) fn total_variation(
    shape: Vec<i64>,
    #[pyo3(from_py_with = whole)] steps: i64,
) -> PyResult<Penalty> {
    let (shape, steps) = (copied::shape("shape", shape)?, count("steps", steps)?);
    if steps == 0 {
        return Err(raised(Error::value("steps", "1 or more", steps)));
    }
    Ok(Penalty(Kind::TotalVariation { shape, steps }))
}

/// A proximal map of the caller's: `f(t, x)` returns the array, or the array and g of it.
struct Own {
    function: Py<PyAny>,
    processor: Processor,
}

impl<S: Number> Proximal<S> for Own {
    fn apply(&mut self, t: f64, x: &mut Array<S>) -> Result<f64> {
        expect_to_be_called(x.device())?;
        attached("proximal map", |py| {
            let returned = self.function.bind(py).call1((t, call::shown(py, x)?))?;
            let (image, value) = match returned.extract::<(Bound<'_, PyAny>, f64)>() {
                Ok(both) => both,
                Err(_) => (returned, 0.0),
            };
            call::taken(&image, &self.processor, x)?;
            Ok(value)
        })
    }
}

/// What a solver takes as a penalty, before it runs.
pub(crate) enum Asked<S: Number> {
    Known(Py<Penalty>, Option<Arc<Array<S>>>),
    Own(Py<PyAny>),
}

impl<S: Number> Asked<S> {
    pub(crate) fn new(what: &str, penalty: &Bound<'_, PyAny>, processor: &Processor) -> PyResult<Self> {
        if let Ok(known) = penalty.cast::<Penalty>() {
            let data = known.get().data(penalty.py(), processor)?;
            return Ok(Self::Known(known.clone().unbind(), data));
        }
        if penalty.is_callable() {
            return Ok(Self::Own(penalty.clone().unbind()));
        }
        Err(wrong_type(what, "a penalty of rayspin.prox, or a function f(t, x)", described(penalty)))
    }

    pub(crate) fn proximal<'a>(
        self,
        processor: &Processor,
        kept: &'a OnceCell<FiniteDifference<S>>,
    ) -> Result<Box<dyn Proximal<S> + 'a>> {
        match self {
            Self::Known(penalty, data) => penalty.get().proximal(&processor.device, data, kept),
            Self::Own(function) => Ok(Box::new(Own { function, processor: processor.clone() })),
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Penalty>()?;
    module.add_function(wrap_pyfunction!(l1, module)?)?;
    module.add_function(wrap_pyfunction!(groups, module)?)?;
    module.add_function(wrap_pyfunction!(nonnegative, module)?)?;
    module.add_function(wrap_pyfunction!(l2, module)?)?;
    module.add_function(wrap_pyfunction!(wavelet_penalty, module)?)?;
    module.add_function(wrap_pyfunction!(total_variation, module)?)?;
    Ok(())
}
