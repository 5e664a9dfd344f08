//! MATLAB's `.mat` files: version 5 to 7 (the layout of "MAT-File Format", The MathWorks), whose arrays may
//! be compressed, and version 7.3, which is HDF5.
//!
//! Arrays have the axes that MATLAB shows. Version 5 keeps numbers of a class in any narrower type, and the
//! real and the imaginary parts of complex numbers apart.

mod array;
mod axes;
pub(crate) mod row;
mod samples;
mod stream;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use samples::samples;

/// Where the version and the byte order of a file stand, and what stands there: version 5 in either byte
/// order, and version 7.3.
pub(crate) const MAGIC: &[(usize, &[u8])] =
    &[(124, b"\x00\x01IM"), (124, b"\x01\x00MI"), (124, b"\x00\x02IM"), (124, b"\x02\x00MI")];

/// Whether a file begins as one of version 4 does, which has no signature: five numbers, and a name.
pub(crate) fn is_version_4(start: &[u8]) -> bool {
    let words = start.as_chunks::<4>().0;
    let [kind, rows, columns, imaginary, name, ..] = words else { return false };
    [i32::from_le_bytes, i32::from_be_bytes].into_iter().any(|number| {
        let kind = number(*kind);
        let digits = [kind / 1000, kind / 100 % 10, kind / 10 % 10, kind % 10];
        let known = kind >= 0 && digits[0] <= 4 && digits[1] == 0 && digits[2] <= 5 && digits[3] <= 2;
        let sizes = number(*rows) >= 0 && number(*columns) >= 0;
        known && sizes && (0..=1).contains(&number(*imaginary)) && (1..=256).contains(&number(*name))
    })
}
