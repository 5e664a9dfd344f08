//! Noise covariances in files.

use std::path::Path;

use anyhow::Result;
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
