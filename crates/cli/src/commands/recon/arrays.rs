//! Arrays beside the scan: noise covariances, field maps.

use std::path::Path;

use anyhow::Result;
use ndarray::ArrayD;
use rayspin::core::C64;
use rayspin::io;
use rayspin_shell::BadInput;

/// `[coil, coil]` from an array of any format.
pub(super) fn read_covariance(path: &Path) -> Result<ndarray::Array2<C64>> {
    let array = io::read_array(path, "a noise covariance")?;
    let shape: Vec<usize> = array.shape().iter().copied().filter(|&n| n != 1).collect();
    let (n, m) = match shape[..] {
        [n, m] => (n, m),
        [] => (1, 1),
        _ => (0, 1),
    };
    if n != m {
        return Err(BadInput::new(format!(
            "{}: expected a noise covariance [coil, coil], found {:?}",
            path.display(),
            array.shape()
        ))
        .into());
    }
    let mut values = array.iter().map(|v| C64::new(v.re.into(), v.im.into()));
    Ok(ndarray::Array2::from_shape_simple_fn((n, n), || values.next().unwrap_or_default()))
}

/// A field map `[z, y, x]` in Hz, of either sign.
pub(super) fn read_field_map(path: &Path) -> Result<ArrayD<f32>> {
    let image = io::read_image(path)?.image;
    let refuse = |expected: &str, found: String| -> Result<_> {
        Err(BadInput::new(format!("{}: expected {expected}, found {found}", path.display()))
            .hint("--field-map takes one real map in Hz")
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
