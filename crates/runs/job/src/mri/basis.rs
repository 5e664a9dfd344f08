//! The temporal basis of a run.

use std::path::Path;

use ndarray::{Array2, Ix2};
use rayspin_core::{C64, Error, Monitor, format_shape};
use rayspin_io::{self as io, ismrmrd};
use rayspin_mri::basis::{Basis, t2_decays};
use rayspin_run::BadInput;

use super::request::{Beside, Input, Request};
use crate::Result;

/// Where the temporal basis comes from.
#[derive(Debug, Clone)]
pub enum BasisOf {
    /// The first singular vectors, this many, of simulated decays at the echo times.
    Decays(usize),
    /// An array `[frame, coefficient]`.
    Given(Beside<C64>),
}

impl BasisOf {
    /// The prefix of a number of singular vectors: `svd:4`.
    pub const PREFIX: &'static str = "svd:";

    pub(super) fn recorded(&self) -> serde_json::Value {
        match self {
            Self::Decays(count) => format!("{}{count}", Self::PREFIX).into(),
            Self::Given(array) => array.recorded(),
        }
    }
}

/// The temporal basis that a request names, for a series of this many images.
///
/// Errors: a file that cannot be read; an array of other axes; echo times that are not known; a basis for
/// another number of images.
pub(super) fn of(request: &Request, images: usize) -> Result<Option<Basis>> {
    let Some(named) = &request.basis else { return Ok(None) };
    let basis = match named {
        BasisOf::Decays(count) => Basis::svd(t2_decays(&echo_times(request)?)?.view(), *count)?,
        BasisOf::Given(Beside::Array(array)) => {
            let wrong = |_| Error::Shape {
                what: "temporal basis".to_owned(),
                expected: "[frame, coefficient]".to_owned(),
                found: format_shape(array.shape()),
            };
            Basis::new(array.as_ref().clone().into_dimensionality::<Ix2>().map_err(wrong)?)?
        }
        BasisOf::Given(Beside::File(path)) => {
            Basis::new(read(path)?).map_err(|error| io::Error::core(path, error))?
        }
    };
    basis.expect_frames(images)?;
    Ok(Some(basis))
}

/// `[frame, coefficient]` of a file. A BART array has frames in TE and coefficients in COEFF, the next
/// dimension.
fn read(path: &Path) -> Result<Array2<C64>> {
    let array = io::read_array(path, "a temporal basis")?.mapv(|v| C64::new(v.re.into(), v.im.into()));
    let of_bart = path.extension().is_some_and(|ending| ending == "cfl" || ending == "hdr");
    let shape: Vec<usize> = match of_bart {
        true => array.shape().iter().copied().filter(|&n| n != 1).collect(),
        false => array.shape().to_vec(),
    };
    let matrix = match shape[..] {
        [a, b] => Some((a, b)),
        // One coefficient.
        [frames] if of_bart => Some((frames, 1)),
        _ => None,
    };
    let found = format_shape(array.shape());
    let wrong = || {
        let (what, expected) = ("temporal basis".to_owned(), "[frame, coefficient]".to_owned());
        io::Error::core(path, Error::Shape { what, expected, found: found.clone() })
    };
    // The values of a BART array lie in the order of its file, the first dimension fastest.
    let array = array.as_standard_layout().into_owned();
    Ok(matrix.and_then(|shape| array.into_shape_with_order(shape).ok()).ok_or_else(wrong)?)
}

/// The echo time of each frame in s: the request's, or the header's.
fn echo_times(request: &Request) -> Result<Vec<f64>> {
    if let Some(times) = &request.echo_times_s {
        return Ok(times.clone());
    }
    let stated = match &request.input {
        Input::Scan(scan) => ismrmrd::echo_times(&scan.header),
        Input::File(path) if io::detect(path)?.reads_scans() => {
            ismrmrd::echo_times(io::open_scan(path, &Monitor::silent())?.header())
        }
        Input::File(_) | Input::Image(_) => Vec::new(),
    };
    match stated.is_empty() {
        false => Ok(stated),
        true => {
            Err(BadInput::new("`--basis svd`: expected the echo time of each image, found none in a header")
                .hint("`--echo-times` states them")
                .into())
        }
    }
}
