use crate::{Error, Result};

/// `[a, b, c]`, as error messages print shapes.
pub fn format_shape(shape: &[usize]) -> String {
    format!("{shape:?}")
}

/// Fails with [`Error::Shape`] unless `found` equals `expected`.
pub fn expect_shape(what: &str, expected: &[usize], found: &[usize]) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::shape(what, expected, found)) }
}

/// Fails with [`Error::Shape`] unless `shape` has `found` elements, and with [`Error::Value`] if the elements
/// exceed the address space.
pub fn expect_len(what: &str, shape: &[usize], found: usize) -> Result<()> {
    if voxels(shape)? == found { Ok(()) } else { Err(Error::shape(what, shape, &[found])) }
}

/// The maximum number of elements of an array. An element takes at most 16 bytes (a complex number in double
/// precision), and an allocation at most `isize::MAX` bytes. So the byte count of an array with a checked
/// shape never overflows.
const MOST_ELEMENTS: usize = isize::MAX as usize / 16;

/// Number of elements of a shape, or [`Error::Value`] when an array of that shape exceeds the address space.
///
/// ```
/// assert_eq!(rayspin_core::voxels(&[2, 3, 4]), Ok(24));
/// assert!(rayspin_core::voxels(&[usize::MAX, 2]).is_err());
/// assert!(rayspin_core::voxels(&[1 << 32, (1 << 32) - 1]).is_err());
/// ```
pub fn voxels(shape: &[usize]) -> Result<usize> {
    shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .filter(|&n| n <= MOST_ELEMENTS)
        .ok_or_else(|| Error::value("shape", "a product that fits the address space", format_shape(shape)))
}
