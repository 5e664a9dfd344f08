//! `rayspin.metrics`: how far an image is from the truth.

use ndarray::{ArrayD, ArrayViewD, IxDyn};
use num_complex::Complex;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict};
use rayspin::core::{Error, Result};
use rayspin::imaging::metrics::{self, Better, CompareOptions, Compared, Sample, better};

use crate::error::raised;
use crate::exchange::copied::{Numbers, singles};
use crate::remade::{self, Parts, Reduced, Remade};
use crate::signals::Detached;

/// The metrics of an image I against the truth I0, of N voxels.
///
/// For equal images PSNR and SNR are infinite.
#[pyclass(frozen, module = "rayspin.metrics")]
pub(crate) struct Quality {
    quality: metrics::Quality,
    rule: String,
    /// What would compare the images better, where they differ in scale, phase or shading more than in
    /// anything else.
    /// `-> str | None`
    #[pyo3(get)]
    hint: Option<String>,
}

#[pymethods]
impl Quality {
    /// Normalised root-mean-square error, sqrt(sum |I - I0|^2 / sum |I0|^2).
    /// `-> float`
    #[getter]
    fn nrmse(&self) -> f64 {
        self.quality.nrmse
    }

    /// 100 times the NRMSE.
    /// `-> float`
    #[getter]
    fn error_percent(&self) -> f64 {
        self.quality.error_percent
    }

    /// Mean square error, sum |I - I0|^2 / N.
    /// `-> float`
    #[getter]
    fn mse(&self) -> f64 {
        self.quality.mse
    }

    /// Peak signal-to-noise ratio in dB, 20 log10(max |I0| / sqrt(MSE)).
    /// `-> float`
    #[getter]
    fn psnr_db(&self) -> f64 {
        self.quality.psnr_db
    }

    /// Signal-to-noise ratio in dB, 20 log10(sqrt(sum |I0|^2 / N) / sqrt(MSE)).
    /// `-> float`
    #[getter]
    fn snr_db(&self) -> f64 {
        self.quality.snr_db
    }

    /// Mean structural similarity; none of complex values, and where no window's centre lies inside the mask.
    /// `-> float | None`
    #[getter]
    fn ssim(&self) -> Option<f64> {
        self.quality.ssim
    }

    /// The largest |I - I0|.
    /// `-> float`
    #[getter]
    fn max_error(&self) -> f64 {
        self.quality.max_error
    }

    /// max |I0|.
    /// `-> float`
    #[getter]
    fn reference_max(&self) -> f64 {
        self.quality.reference_max
    }

    /// Voxels that were compared.
    /// `-> int`
    #[getter]
    fn voxels(&self) -> usize {
        self.quality.voxels
    }

    /// What was compared: real values, complex values or magnitudes.
    /// `-> str`
    #[getter]
    fn compared(&self) -> &'static str {
        self.quality.compared.name()
    }

    /// The factor that the image was multiplied by, 1 without a fit.
    /// `-> complex`
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> Bound<'py, PyComplex> {
        let [re, im] = self.quality.scale;
        PyComplex::from_doubles(py, re, im)
    }

    /// What was compared, and whether a scale was fitted, in words.
    /// `-> str`
    #[getter]
    fn rule(&self) -> &str {
        &self.rule
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        remade::reduced(slf)
    }

    fn __repr__(&self) -> String {
        let metrics::Quality { error_percent, psnr_db, ssim, .. } = self.quality;
        let ssim = ssim.map_or_else(String::new, |ssim| format!(", SSIM {ssim:.4}"));
        format!("Quality(error {error_percent:.3} %, PSNR {psnr_db:.2} dB{ssim}: {})", self.rule)
    }
}

impl Remade for Quality {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (parts, own) = (PyDict::new(object.py()), object.get());
        let quality = &own.quality;
        parts.set_item("compared", quality.compared.name())?;
        parts.set_item("voxels", quality.voxels)?;
        parts.set_item("mse", quality.mse)?;
        parts.set_item("psnr_db", quality.psnr_db)?;
        parts.set_item("snr_db", quality.snr_db)?;
        parts.set_item("nrmse", quality.nrmse)?;
        parts.set_item("error_percent", quality.error_percent)?;
        parts.set_item("ssim", quality.ssim)?;
        parts.set_item("max_error", quality.max_error)?;
        parts.set_item("reference_max", quality.reference_max)?;
        parts.set_item("fitted", quality.fitted)?;
        parts.set_item("scale", quality.scale)?;
        parts.set_item("rule", &own.rule)?;
        parts.set_item("hint", &own.hint)?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let kinds = [Compared::RealValues, Compared::ComplexValues, Compared::Magnitudes];
        let name: String = parts.get("compared")?;
        let compared = kinds
            .into_iter()
            .find(|one| one.name() == name)
            .ok_or_else(|| raised(Error::value("compared", kinds.map(Compared::name).join(", "), &name)))?;
        let quality = metrics::Quality {
            compared,
            voxels: parts.get("voxels")?,
            mse: parts.get("mse")?,
            psnr_db: parts.get("psnr_db")?,
            snr_db: parts.get("snr_db")?,
            nrmse: parts.get("nrmse")?,
            error_percent: parts.get("error_percent")?,
            ssim: parts.get("ssim")?,
            max_error: parts.get("max_error")?,
            reference_max: parts.get("reference_max")?,
            fitted: parts.get("fitted")?,
            scale: parts.get("scale")?,
        };
        let quality = Self { quality, rule: parts.get("rule")?, hint: parts.get("hint")? };
        Ok(Bound::new(parts.python(), quality)?.into_any())
    }
}

/// Numbers in double precision, as metrics compare them.
enum Doubles {
    Real(ArrayD<f64>),
    Complex(ArrayD<Complex<f64>>),
}

impl Doubles {
    fn of(what: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match Numbers::of(what, object)? {
            Numbers::Single(values) => Self::Real(values.mapv(f64::from)),
            Numbers::Double(values) => Self::Real(values),
            Numbers::Complex(values) => Self::Complex(values),
        })
    }
}

/// What is done with two images of any kinds.
trait Pair: Send {
    type Output: Send;

    fn run<T: Sample, U: Sample>(
        self,
        image: ArrayViewD<'_, T>,
        truth: ArrayViewD<'_, U>,
    ) -> Result<Self::Output>;
}

fn with_images<P: Pair>(
    py: Python<'_>,
    image: &Bound<'_, PyAny>,
    truth: &Bound<'_, PyAny>,
    pair: P,
) -> PyResult<P::Output> {
    use Doubles::{Complex, Real};
    let (image, truth) = (Doubles::of("image", image)?, Doubles::of("truth", truth)?);
    let done = py.detached(|| match (&image, &truth) {
        (Real(image), Real(truth)) => pair.run(image.view(), truth.view()),
        (Real(image), Complex(truth)) => pair.run(image.view(), truth.view()),
        (Complex(image), Real(truth)) => pair.run(image.view(), truth.view()),
        (Complex(image), Complex(truth)) => pair.run(image.view(), truth.view()),
    });
    done?.map_err(raised)
}

struct Compare {
    numbers: metrics::Numbers,
    fit: bool,
    mask: Option<ArrayD<bool>>,
}

impl Pair for Compare {
    type Output = Quality;

    fn run<T: Sample, U: Sample>(
        self,
        image: ArrayViewD<'_, T>,
        truth: ArrayViewD<'_, U>,
    ) -> Result<Quality> {
        // One truth for all repetitions.
        let repeated = (image.ndim() == truth.ndim() + 1 && image.shape()[1..] == *truth.shape())
            .then(|| image.shape()[0]);
        let broadcast = repeated.and_then(|_| truth.broadcast(image.raw_dim()));
        let truth = broadcast.unwrap_or_else(|| truth.view());
        let mask = self.mask.as_ref().map(|mask| mask.view());
        let options = CompareOptions { numbers: self.numbers, fit: self.fit, mask };
        let quality = metrics::compare(image.view(), truth.view(), &options)?;
        let rule = match repeated {
            Some(count) => format!("{}, one truth for {count} repetitions", quality.rule()),
            None => quality.rule(),
        };
        let hint = better(image, truth, &options, &quality)?.map(|other| match other {
            Better::Magnitudes(scored) => format!(
                "the images differ most in phase: the error of magnitudes is {:.3} %; magnitude=True compares these",
                scored.error_percent
            ),
            Better::Fitted(scored) => format!(
                "the images differ in scale: times {:.4} the error is {:.3} %; fit=True takes that out",
                scored.scale[0].hypot(scored.scale[1]),
                scored.error_percent
            ),
            Better::Shading(scored) => format!(
                "the images differ in a smooth factor, {:.2} to {:.2} over the object: without it the error is {:.3} %. Coils of MRI shade \
                 images so where their sensitivities are estimated or not used: recon(..., maps=...) with the coils' own sensitivities \
                 takes it out",
                scored.factor[0], scored.factor[1], scored.error_percent
            ),
        });
        Ok(Quality { quality, rule, hint })
    }
}

/// Compares an image with the truth, of one shape `[y, x]` with any axes before these. One truth serves for
/// all repetitions of an image with one axis more. Two real images are compared with their signs, two complex
/// ones with their phases, else magnitudes.
///
/// `magnitude` compares magnitudes in any case. `fit` first multiplies the image by the factor that brings it
/// nearest to the truth. `mask` says which voxels count, in the shape of the images or of their last axes.
///
/// Returns a `Quality`. Raises as `nrmse`.
///
/// `(image: Any, truth: Any, *, magnitude: bool, fit: bool, mask: Any) -> Quality`
#[pyfunction]
#[pyo3(signature = (image, truth, *, magnitude=false, fit=false, mask=None))]
pub(crate) fn compare(
    py: Python<'_>,
    image: &Bound<'_, PyAny>,
    truth: &Bound<'_, PyAny>,
    magnitude: bool,
    fit: bool,
    mask: Option<&Bound<'_, PyAny>>,
) -> PyResult<Quality> {
    let mask = mask.map(|mask| singles::<IxDyn>("mask", "of the images", mask)).transpose()?;
    let mask = mask.map(|mask| mask.mapv(|value| value != 0.0));
    let numbers = if magnitude { metrics::Numbers::Magnitudes } else { metrics::Numbers::ByKind };
    with_images(py, image, truth, Compare { numbers, fit, mask })
}

struct Nrmse;

impl Pair for Nrmse {
    type Output = f64;

    fn run<T: Sample, U: Sample>(self, image: ArrayViewD<'_, T>, truth: ArrayViewD<'_, U>) -> Result<f64> {
        metrics::nrmse(image, truth)
    }
}

struct Ssim;

impl Pair for Ssim {
    type Output = f64;

    fn run<T: Sample, U: Sample>(self, image: ArrayViewD<'_, T>, truth: ArrayViewD<'_, U>) -> Result<f64> {
        metrics::ssim(image, truth)
    }
}

struct Psnr;

impl Pair for Psnr {
    type Output = f64;

    fn run<T: Sample, U: Sample>(self, image: ArrayViewD<'_, T>, truth: ArrayViewD<'_, U>) -> Result<f64> {
        Ok(metrics::compare(image, truth, &CompareOptions::default())?.psnr_db)
    }
}

/// The normalised root-mean-square error sqrt(sum |I - I0|^2 / sum |I0|^2) of the values as they are.
///
/// Returns a float. Raises ValueError for images of different shapes or a truth of 0, TypeError for what is
/// no array of numbers.
///
/// `(image: Any, truth: Any) -> float`
#[pyfunction]
pub(crate) fn nrmse(py: Python<'_>, image: &Bound<'_, PyAny>, truth: &Bound<'_, PyAny>) -> PyResult<f64> {
    with_images(py, image, truth, Nrmse)
}

/// Mean structural similarity with Gaussian windows of 11 x 11 pixels and the truth's range (Wang 2004).
/// Complex values enter as magnitudes.
///
/// Returns a float, 1 for equal images. Raises as `nrmse`.
///
/// `(image: Any, truth: Any) -> float`
#[pyfunction]
pub(crate) fn ssim(py: Python<'_>, image: &Bound<'_, PyAny>, truth: &Bound<'_, PyAny>) -> PyResult<f64> {
    with_images(py, image, truth, Ssim)
}

/// Peak signal-to-noise ratio 20 log10(max |I0| / sqrt(MSE)) of the numbers that `compare` takes.
///
/// Returns a float in dB. Raises as `nrmse`.
///
/// `(image: Any, truth: Any) -> float`
#[pyfunction]
pub(crate) fn psnr(py: Python<'_>, image: &Bound<'_, PyAny>, truth: &Bound<'_, PyAny>) -> PyResult<f64> {
    with_images(py, image, truth, Psnr)
}

/// Adds the class and functions of `rayspin.metrics`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Quality>()?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(nrmse, module)?)?;
    module.add_function(wrap_pyfunction!(ssim, module)?)?;
    module.add_function(wrap_pyfunction!(psnr, module)?)
}
