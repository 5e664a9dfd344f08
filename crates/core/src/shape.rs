use crate::{Error, Result};

/// `[a, b, c]`, as error messages print shapes.
pub fn format_shape(shape: &[usize]) -> String {
    format!("{shape:?}")
}

/// Fails with [`Error::Shape`] unless `found` equals `expected`.
pub fn expect_shape(what: &str, expected: &[usize], found: &[usize]) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::shape(what, expected, found)) }
}

/// Fails with [`Error::Shape`] unless `shape` has `found` elements, or with [`Error::Value`] where the address space has no room for
/// them.
pub fn expect_len(what: &str, shape: &[usize], found: usize) -> Result<()> {
    if voxels(shape)? == found { Ok(()) } else { Err(Error::shape(what, shape, &[found])) }
}

/// Number of elements of a shape, or [`Error::Value`] when it exceeds the address space.
///
/// ```
/// assert_eq!(rayspin_core::voxels(&[2, 3, 4]), Ok(24));
/// assert!(rayspin_core::voxels(&[usize::MAX, 2]).is_err());
/// ```
pub fn voxels(shape: &[usize]) -> Result<usize> {
    shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .ok_or_else(|| Error::value("shape", "a product that fits the address space", format_shape(shape)))
}
