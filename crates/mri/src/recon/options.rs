use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Result};
use rayspin_linop::WaveletFamily;
use serde::Serialize;

use super::{Certify, KernelStore};
use crate::maps::Sensitivities;
use crate::partial::PartialFourier;
use crate::prepare::PrepareOptions;

/// How an image is made of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Inverse FFT of the grid, coil by coil, then combined.
    Cartesian,
    /// Missing lines of a regularly undersampled grid from their neighbours ([`crate::grappa`]), then inverse FFT.
    Grappa,
    /// Density-compensated adjoint transform, coil by coil, then combined.
    Gridding,
    /// Regularised least squares, coil by coil, then combined.
    LeastSquares,
    /// Regularised least squares of one image seen by all coils at once (Pruessmann et al., Magn Reson Med 46:638, 2001).
    CgSense,
    /// One image seen by all coils with few wavelet coefficients: 1/(2L) ‖Fρ − d‖² + λs ‖Wρ‖₁ (Lustig et al., Magn Reson
    /// Med 58:1182, 2007).
    Wavelet,
    /// One image seen by all coils with few edges: 1/(2L) ‖Fρ − d‖² + λs TV(ρ) (Block et al., Magn Reson Med 57:1086,
    /// 2007).
    TotalVariation,
}

impl Method {
    /// Whether one image is solved for that all coils see, with sensitivity maps.
    pub fn sees_all_coils(self) -> bool {
        matches!(self, Self::CgSense) || self.is_sparse()
    }

    /// Whether the penalty is a sum of magnitudes.
    pub fn is_sparse(self) -> bool {
        matches!(self, Self::Wavelet | Self::TotalVariation)
    }

    /// Whether the method iterates.
    pub fn iterates(self) -> bool {
        self == Self::LeastSquares || self.sees_all_coils()
    }

    /// λ unless asked otherwise. Those of sparse methods were chosen by eye on real scans (README of this crate).
    pub fn default_lambda(self) -> f64 {
        match self {
            Self::Wavelet => 3e-3,
            Self::TotalVariation => 2e-3,
            _ => 1e-3,
        }
    }

    /// Iterations at most unless asked otherwise.
    pub fn default_iterations(self) -> usize {
        match self {
            Self::Wavelet => 50,
            Self::TotalVariation => 100,
            _ => 30,
        }
    }

    /// Relative residual at which iterations end unless asked otherwise. The random shifts of wavelets leave a residual of
    /// their own, which no iteration lowers: none is waited for.
    pub fn default_tolerance(self) -> f64 {
        match self {
            Self::Wavelet => 0.0,
            Self::TotalVariation => 3e-4,
            _ => 1e-5,
        }
    }
}

/// How coil images become one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// √Σ_j |y_j|²: magnitude only.
    RootSumOfSquares,
    /// Σ_j conj(c_j) y_j / Σ_j |c_j|² with sensitivity maps: keeps the phase.
    Maps,
}

/// W of the penalty λ‖Wρ‖².
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regulariser {
    /// No penalty.
    None,
    /// W = 1: small images.
    Identity,
    /// Finite differences: smooth images.
    Differences,
}

/// Density compensation of gridding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Density {
    /// Fixed-point iteration of Pipe and Menon, for any trajectory.
    PipeMenon,
    /// The ramp of straight spokes through the centre.
    Radial,
}

/// The filter of wavelets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaveletFilter {
    /// Sums and differences of neighbours.
    Haar,
    /// Daubechies' four coefficients, two vanishing moments.
    #[default]
    Db2,
}

impl WaveletFilter {
    pub(super) fn filter(self) -> WaveletFamily {
        match self {
            Self::Haar => WaveletFamily::Haar,
            Self::Db2 => WaveletFamily::Daubechies2,
        }
    }
}

/// The wavelets of [`Method::Wavelet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WaveletOptions {
    /// The filter.
    pub family: WaveletFilter,
    /// Times that an axis is halved at most; as often as it has 16 voxels or more when absent.
    pub levels: Option<usize>,
    /// Where the shifts of the image begin; the same seed gives the same image.
    pub seed: u64,
}

impl Default for WaveletOptions {
    fn default() -> Self {
        Self { family: WaveletFilter::default(), levels: None, seed: 1 }
    }
}

/// Everything that decides an image besides the scan.
#[derive(Debug, Clone)]
pub struct ReconOptions {
    /// How the image is made.
    pub method: Method,
    /// How coils are combined; [`Method::CgSense`] needs no combination.
    pub combine: Combine,
    /// Weight of the penalty, relative to the largest eigenvalue of FᴴF (and for sparse methods to the image's brightness, at
    /// a matrix of [`LAMBDA_MATRIX`](super::LAMBDA_MATRIX)).
    pub lambda: f64,
    /// The penalty's operator; sparse methods have their own.
    pub regulariser: Regulariser,
    /// Reference image `[z, y, x]` or `[y, x]` of the matrix, whose edges the penalty leaves alone: for
    /// [`Regulariser::Differences`] and [`Method::TotalVariation`].
    pub anatomy: Option<Arc<ArrayD<f32>>>,
    /// Difference in the reference image, as a part of its brightness (99th percentile), at which the weight of a squared
    /// difference is ½.
    pub anatomy_edge: f64,
    /// Map `[z, y, x]` or `[y, x]` of the matrix of how far the field is from the receiver's frequency, in Hz: samples are then
    /// those of ∫ c ρ e^{−i2πf(x)t} e^{−i2πk·x} dx with the frame's [times](crate::scan::Frame::times), for every method but
    /// [`Method::Cartesian`] and [`Method::Grappa`].
    pub field_map: Option<Arc<ArrayD<f32>>>,
    /// Largest error of the phases e^{−i2πf(x)t} that time segments stand for.
    pub field_tolerance: f64,
    /// The wavelets of [`Method::Wavelet`].
    pub wavelet: WaveletOptions,
    /// Iterations at most.
    pub iterations: usize,
    /// Relative residual at which they end.
    pub cg_tolerance: f64,
    /// Relative error of the NUFFT.
    pub nufft_tolerance: f64,
    /// Density compensation.
    pub density: Density,
    /// Iterations of [`Density::PipeMenon`].
    pub density_iterations: usize,
    /// Points of a trajectory planned at once; `None`: all. Fewer take less memory and more time.
    pub point_batch: Option<usize>,
    /// Width of the calibration centre; the default is [`crate::maps::DEFAULT_WIDTH`].
    pub calibration: Option<usize>,
    /// What becomes of a side of k-space that was not measured, for methods that transform a grid; [`PartialFourier::Pocs`]
    /// where coverage is uneven when absent.
    pub partial_fourier: Option<PartialFourier>,
    /// What is done to coils first.
    pub prepare: PrepareOptions,
    /// How sensitivities are estimated; by what the scan is when absent (see [`Sensitivities::for_grid`]).
    pub sensitivities: Option<Sensitivities>,
    /// Sensitivity maps `[coil, z, y, x]` or `[coil, y, x]` instead of estimated ones.
    pub maps: Option<Arc<ArrayD<C32>>>,
    /// Whether each repetition of a slice has sensitivity maps of its own, and a λ relative to the largest eigenvalue of its
    /// own FᴴF. Otherwise those of the first hold for all: the coils do not move, and a λ that changes with time flickers.
    pub independent: bool,
    /// Coils that are transformed together where they need not all be; all of them when absent. Fewer take less memory.
    pub coil_batch: Option<usize>,
    /// Time segments whose spectra a GPU holds at once; all of them when absent. The others' are copied from the host while those
    /// before are applied.
    pub segment_batch: Option<usize>,
    /// Whether the CPU beside a GPU does what the GPU fails at, and all that follows: said in the notes.
    pub finish_on_cpu: bool,
    /// Whether the maps that were used are given back.
    pub keep_maps: bool,
    /// Checks of the first frame's transforms against exact sums.
    pub certify: Option<Certify>,
    /// Where Toeplitz kernels are kept from run to run.
    pub kernels: Option<Arc<dyn KernelStore>>,
}

impl Default for ReconOptions {
    fn default() -> Self {
        Self {
            method: Method::CgSense,
            combine: Combine::RootSumOfSquares,
            lambda: 1e-3,
            regulariser: Regulariser::Identity,
            anatomy: None,
            anatomy_edge: 0.05,
            field_map: None,
            field_tolerance: 1e-4,
            wavelet: WaveletOptions::default(),
            iterations: 30,
            cg_tolerance: 1e-5,
            nufft_tolerance: 1e-4,
            density: Density::PipeMenon,
            density_iterations: 20,
            calibration: None,
            partial_fourier: None,
            prepare: PrepareOptions::default(),
            sensitivities: None,
            maps: None,
            independent: false,
            coil_batch: None,
            point_batch: None,
            segment_batch: None,
            finish_on_cpu: false,
            keep_maps: true,
            certify: None,
            kernels: None,
        }
    }
}

impl ReconOptions {
    /// The defaults of a method.
    pub fn of(method: Method) -> Self {
        Self {
            method,
            lambda: method.default_lambda(),
            iterations: method.default_iterations(),
            cg_tolerance: method.default_tolerance(),
            ..Self::default()
        }
    }

    /// Checks every range. Errors: the first value out of range, named.
    pub fn validate(&self) -> Result<()> {
        if !(self.lambda >= 0.0 && self.lambda.is_finite()) {
            return Err(Error::value("lambda", "a finite number >= 0", self.lambda));
        }
        if !(self.cg_tolerance >= 0.0 && self.cg_tolerance < 1.0) {
            return Err(Error::value("tolerance", "0 <= tolerance < 1", self.cg_tolerance));
        }
        if !(1e-6..=0.1).contains(&self.nufft_tolerance) {
            return Err(Error::value("epsilon", "1e-6 to 0.1 (single precision)", self.nufft_tolerance));
        }
        if !(1..=100_000).contains(&self.iterations) {
            return Err(Error::value("iterations", "1 to 100000", self.iterations));
        }
        if !(1..=1000).contains(&self.density_iterations) {
            return Err(Error::value("density iterations", "1 to 1000", self.density_iterations));
        }
        if let Some(certify) = &self.certify {
            certify.validate()?;
        }
        if let Some(anatomy) = &self.anatomy {
            let quadratic = self.method.iterates() && !self.method.is_sparse();
            let used = self.method == Method::TotalVariation
                || (quadratic && self.regulariser == Regulariser::Differences);
            if !used {
                return Err(Error::value(
                    "anatomical reference",
                    "the method tv, or cg-sense or ls with differences as the penalty",
                    format!("{:?}", self.method),
                ));
            }
            if let Some((index, value)) = anatomy.iter().enumerate().find(|(_, v)| !v.is_finite()) {
                let what = "anatomical reference".into();
                return Err(Error::NotFinite { what, index, found: value.to_string() });
            }
        }
        if !(self.anatomy_edge > 0.0 && self.anatomy_edge.is_finite()) {
            return Err(Error::value(
                "edge of the anatomical reference",
                "a positive number",
                self.anatomy_edge,
            ));
        }
        if !(1e-6..=0.5).contains(&self.field_tolerance) {
            return Err(Error::value(
                "tolerance of the field map's segments",
                "1e-6 to 0.5",
                self.field_tolerance,
            ));
        }
        if let Some(map) = &self.field_map {
            if let Some((index, value)) = map.iter().enumerate().find(|(_, f)| !f.is_finite()) {
                return Err(Error::NotFinite { what: "field map".into(), index, found: value.to_string() });
            }
            if map.is_empty() {
                return Err(Error::value("field map", "at least one voxel", 0));
            }
        }
        if self.wavelet.levels == Some(0) {
            return Err(Error::value("levels of wavelets", "at least 1", 0));
        }
        if self.coil_batch == Some(0) {
            return Err(Error::value("coil batch", "at least 1", 0));
        }
        if self.segment_batch == Some(0) {
            return Err(Error::value("segment batch", "at least 1", 0));
        }
        if self.point_batch == Some(0) {
            return Err(Error::value("point batch", "at least 1", 0));
        }
        if let Some(width) = self.calibration
            && width < crate::maps::MIN_WIDTH
        {
            return Err(Error::value(
                "calibration centre",
                format!("a width of at least {}", crate::maps::MIN_WIDTH),
                width,
            ));
        }
        self.prepare.validate()?;
        if let Some(Sensitivities::Espirit(espirit)) = &self.sensitivities {
            espirit.validate()?;
            if espirit.sets > 1 && self.method != Method::CgSense {
                return Err(Error::value(
                    "sets of maps",
                    "1 for every method but cg-sense, which solves for an image a set",
                    espirit.sets,
                ));
            }
        }
        if let Some(maps) = &self.maps
            && let Some((index, value)) =
                maps.iter().enumerate().find(|(_, v)| !(v.re.is_finite() && v.im.is_finite()))
        {
            return Err(Error::NotFinite {
                what: "sensitivity maps".into(),
                index,
                found: value.to_string(),
            });
        }
        Ok(())
    }

    /// Whether sensitivity maps are used.
    pub fn needs_maps(&self) -> bool {
        self.method.sees_all_coils() || self.combine == Combine::Maps
    }

    /// Whether density weights are: to grid, or to estimate maps from samples.
    pub(crate) fn needs_density(&self) -> bool {
        self.method == Method::Gridding || (self.maps.is_none() && self.needs_maps())
    }

    /// Whether the method iterates.
    pub fn iterates(&self) -> bool {
        self.method.iterates()
    }
}
