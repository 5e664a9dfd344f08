//! The request of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::{Array2, ArrayD, ArrayViewD};
use rayspin_core::{C32, C64, Error, Monitor, Ranges, format_shape};
use rayspin_io::{ArrayFrame, ScanOptions};
use rayspin_mri::recon::{ReconOptions, Selection};
use rayspin_mri::scan::{FrameOptions, Scan};
use rayspin_report::RunRecorder;
use rayspin_run::{BadInput, Certify, Given};

use super::basis::BasisOf;
use super::{Begun, Mri};
use crate::asked::Asked;
use crate::told::of_scan;
use crate::{ComputeTarget, Result};

/// The scan of a run.
#[derive(Debug, Clone)]
pub enum Input {
    /// A file, with a header or of arrays.
    File(PathBuf),
    /// A scan with a header in memory.
    Scan(Arc<Scan>),
    /// The samples of one image in memory.
    Image(Arc<ArrayFrame>),
}

impl Input {
    /// The file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Scan(_) | Self::Image(_) => None,
        }
    }

    /// An error about this scan, with the file's name where it has one.
    pub(super) fn error(&self, error: rayspin_core::Error) -> crate::Error {
        of_scan(self.file(), error)
    }
}

/// An array beside the scan.
#[derive(Debug, Clone)]
pub enum Beside<T> {
    /// In a file.
    File(PathBuf),
    /// In memory.
    Array(Arc<ArrayD<T>>),
}

impl<T> Beside<T> {
    /// What a record says of it: its file, or its shape.
    pub(super) fn recorded(&self) -> serde_json::Value {
        match self {
            Self::File(path) => serde_json::json!(path),
            Self::Array(array) => serde_json::json!(array.shape()),
        }
    }
}

/// The request of a run: the scan, and all that a user chose.
#[derive(Debug, Clone)]
pub struct Request {
    /// The scan.
    pub input: Input,
    /// The method, and values of its parameters.
    pub method: Asked<Mri>,
    /// What decides the image besides. The run takes the method, the maps, the
    /// field map and the noise covariance from the other fields of the request instead.
    pub options: ReconOptions,
    /// How a file without a header is read.
    pub arrays: ScanOptions,
    /// The Pulseq sequence that made the scan.
    pub sequence: Option<PathBuf>,
    /// The averages that images are made of; all without.
    pub averages: Option<Ranges>,
    /// How images are put together.
    pub frames: FrameOptions,
    /// Which images.
    pub selection: Selection,
    /// Sensitivity maps in place of estimated ones.
    pub maps: Option<Beside<C32>>,
    /// Whether the maps are divided by their intensity, and the image too.
    pub intensity: bool,
    /// The temporal basis over which the images of a series are encoded together.
    pub basis: Option<BasisOf>,
    /// The echo time of each image in s, in place of the header's.
    pub echo_times_s: Option<Vec<f64>>,
    /// The map of an inhomogeneous field in Hz.
    pub field_map: Option<Beside<f32>>,
    /// The covariance of the coils' noise `[coil, coil]`, in place of the scan's.
    pub noise_covariance: Option<Beside<C64>>,
    /// The options that the user gave, by the fields of [`options`](super::options) and the names of
    /// parameters. One that does nothing is refused.
    pub given: Given,
    /// The files that images will be written to, whose writers take memory.
    pub outputs: Vec<PathBuf>,
    /// Whether the images are compared with a reference, which takes memory.
    pub compared: bool,
    /// Whether the sink keeps all volumes of a stream, which takes memory.
    pub collects: bool,
    /// Bytes of memory that the process may take.
    pub memory: Option<u64>,
    /// The folder that keeps Toeplitz kernels from run to run.
    pub cache: Option<PathBuf>,
    /// Checks of the transforms against exact sums.
    pub certify: Option<Certify>,
    /// Whether only the plan is wanted.
    pub dry_run: bool,
}

impl Request {
    /// A scan, with the defaults of all else.
    pub fn of(input: Input) -> Self {
        Self {
            input,
            method: Asked::default(),
            options: ReconOptions::default(),
            arrays: ScanOptions::default(),
            sequence: None,
            averages: None,
            frames: FrameOptions::default(),
            selection: Selection::default(),
            maps: None,
            intensity: false,
            basis: None,
            echo_times_s: None,
            field_map: None,
            noise_covariance: None,
            given: Given::default(),
            outputs: Vec::new(),
            compared: false,
            collects: false,
            memory: None,
            cache: None,
            certify: None,
            dry_run: false,
        }
    }

    /// Begins a run: checks what can be checked before the scan is read, and reads maps.
    ///
    /// Errors: an option out of range, or one that does nothing; a file that an option names and that cannot
    /// be read.
    pub fn begin(
        self,
        target: ComputeTarget,
        monitor: Monitor<'_>,
        recorder: RunRecorder,
    ) -> Result<Begun<'_>> {
        Begun::new(self, target, monitor, recorder)
    }
}

/// A noise covariance `[coil, coil]`; axes of one are left out.
fn square(array: ArrayViewD<'_, C64>, what: String) -> Result<Array2<C64>> {
    let shape: Vec<usize> = array.shape().iter().copied().filter(|&n| n != 1).collect();
    let n = match shape[..] {
        [n, m] if n == m => n,
        [] => 1,
        _ => {
            let (expected, found) = ("[coil, coil]".to_owned(), format_shape(array.shape()));
            return Err(Error::Shape { what, expected, found }.into());
        }
    };
    let mut values = array.iter().copied();
    Ok(Array2::from_shape_simple_fn((n, n), || values.next().unwrap_or_default()))
}

impl Beside<C64> {
    /// The noise covariance. Errors: a file that cannot be read; another shape.
    pub(super) fn covariance(&self) -> Result<Array2<C64>> {
        match self {
            Self::Array(array) => square(array.view(), "noise covariance".to_owned()),
            Self::File(path) => {
                let array = rayspin_io::read_array(path, "a noise covariance")?;
                let array = array.mapv(|value| C64::new(value.re.into(), value.im.into()));
                square(array.view(), format!("{}: noise covariance", path.display()))
            }
        }
    }
}

/// A field map `[z, y, x]` in Hz, of either sign.
pub(super) fn read_field_map(path: &Path) -> Result<ArrayD<f32>> {
    let image = rayspin_io::read_image(path)?.image;
    let refuse = |expected: &str, found: String| -> Result<_> {
        Err(BadInput::new(format!("{}: expected {expected}, found {found}", path.display()))
            .hint("`--field-map` takes one real map in Hz")
            .into())
    };
    if image.repetitions() > 1 {
        return refuse("one field map", format!("{} repetitions", image.repetitions()));
    }
    if let Some(value) = image.data().iter().find(|v| v.im != 0.0) {
        return refuse("a real field map in Hz", format!("the complex number {value}"));
    }
    Ok(image.data().mapv(|v| v.re))
}
