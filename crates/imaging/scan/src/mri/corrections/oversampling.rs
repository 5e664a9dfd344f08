//! Oversampling: the scanner encodes a larger field of view than the image has, along the readout as a rule,
//! so that nothing folds over there.
//!
//! ```text
//! on a grid            n = N · FOV_encoded / FOV_image places,   image = the N places around the centre of F⁻¹ d
//! along a trajectory   k ← k · FOV_image / FOV_encoded
//! ```
//!
//! N is the image's matrix. Nothing is taken from the samples: all of them determine the image, which is cut
//! out after the transform. Where n is no whole number, it is rounded, and voxels are as large as the encoded
//! field of view needs; the scale keeps the signal per field of view of the header.

use rayspin_core::Result;
use rayspin_run::{About, params};

use super::{Correction, Known, Readouts};
use crate::mri::raw::{Encoding, is_known};

params! {
    /// The grid covers the field of view that was encoded, and the image is its middle.
    pub struct Oversampling {}
}

impl Correction for Oversampling {
    fn about(&self) -> About {
        About {
            name: "oversampling",
            help: "Transforms the field of view that was encoded, and cuts the image out of its middle",
        }
    }

    fn idle(&self, scan: &Known<'_>) -> Option<String> {
        let wider = (0..3).any(|axis| of_points(scan.encoding, axis).is_some());
        (!wider).then(|| "the field of view that was encoded is the image's".to_owned())
    }

    fn readouts(&self, readouts: &mut Readouts<'_>, _notes: &mut Vec<String>) -> Result<()> {
        readouts.grid = std::array::from_fn(|axis| grid_size(&readouts.encoding, axis));
        readouts.scale = scale(&readouts.encoding);
        Ok(())
    }
}

/// What cycles per encoded field of view are multiplied by to be cycles per field of view of the image; none
/// where they are the same.
pub(crate) fn of_points(encoding: &Encoding, axis: usize) -> Option<f64> {
    let (encoded, recon) = (encoding.encoded.fov_mm[axis], encoding.recon.fov_mm[axis]);
    let differ = is_known(encoded) && is_known(recon) && (encoded - recon).abs() > 1e-6 * encoded;
    differ.then(|| recon / encoded)
}

/// Voxels over the encoded field of view at the reconstruction's voxel size.
pub(crate) fn grid_size(encoding: &Encoding, axis: usize) -> usize {
    exact_size(encoding, axis).map_or(encoding.recon.matrix[axis], |size| size.round() as usize)
}

/// The number of voxels of the header's size that the encoded field of view has, whole or not; none where the
/// header does not state it.
fn exact_size(encoding: &Encoding, axis: usize) -> Option<f64> {
    let recon = encoding.recon.matrix[axis];
    let (encoded_fov, recon_fov) = (encoding.encoded.fov_mm[axis], encoding.recon.fov_mm[axis]);
    let usable = |fov: f64| fov.is_finite() && fov > 0.0;
    // A slice has one thickness, whatever the two spaces say of it.
    if encoding.encoded.matrix[axis] == 1 || !usable(encoded_fov) || !usable(recon_fov) {
        return None;
    }
    let size = recon as f64 * encoded_fov / recon_fov;
    // A garbage field of view must not decide how much memory is taken: 8 times is beyond any oversampling.
    let most = 8.0 * encoding.encoded.matrix[axis].max(recon) as f64;
    (1.0..=most).contains(&size.round()).then_some(size)
}

/// By how much of a voxel an image's edge may lie elsewhere than the header's voxel size says.
const ROUNDED: f64 = 0.01;

/// The size of the voxels of the grid along an axis, mm, where it is not the header's: where the encoded
/// field of view does not hold a whole number of those.
pub(crate) fn other_voxel_size(encoding: &Encoding, axis: usize) -> Option<f64> {
    let exact = exact_size(encoding, axis)?;
    let off = encoding.recon.matrix[axis] as f64 / 2.0 * (exact / exact.round() - 1.0).abs();
    (off > ROUNDED).then(|| encoding.encoded.fov_mm[axis] / exact.round())
}

/// The signal in the header's field of view over the signal in the image's own, where voxels are not the
/// header's.
fn scale(encoding: &Encoding) -> f64 {
    let other = (0..3).filter(|&axis| other_voxel_size(encoding, axis).is_some());
    other.filter_map(|axis| exact_size(encoding, axis)).map(|exact| exact.round() / exact).product()
}
