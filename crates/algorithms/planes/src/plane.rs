//! What the filters ask of their images.

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Cpu, Element};
use rayspin_tune::input;

/// Rows and columns of an image, each at least 1.
pub fn size<T: Element>(what: &str, image: &Array<T>) -> Result<(usize, usize)> {
    match *image.shape() {
        [rows, columns] if rows > 0 && columns > 0 => Ok((rows, columns)),
        _ => Err(Error::value(what, "an image [rows, columns] with pixels", format!("{:?}", image.shape()))),
    }
}

/// That two arrays are on one device.
pub fn together<A: Element, B: Element>(what: &str, a: &Array<A>, b: &Array<B>) -> Result<()> {
    if !a.device().same_as(b.device()) {
        return Err(Error::value(
            what,
            format!("arrays on {}", a.device().describe()),
            b.device().describe(),
        ));
    }
    Ok(())
}

/// That `out` is of the image's shape and on its device; rows and columns.
pub fn same<A: Element, B: Element>(what: &str, image: &Array<A>, out: &Array<B>) -> Result<(usize, usize)> {
    let size = size(what, image)?;
    expect_shape(what, image.shape(), out.shape())?;
    together(what, image, out)?;
    Ok(size)
}

/// Rows and columns of a size that the caller passes as numbers.
pub fn asked(what: &str, size: &[usize]) -> Result<(usize, usize)> {
    match *size {
        // Kernels count rows and columns in 32 bits, with room for what lies beyond an edge.
        [rows, columns] if rows.min(columns) > 0 && rows.max(columns) < 1 << 30 => {
            voxels(size)?;
            Ok((rows, columns))
        }
        _ => Err(Error::value(
            format!("size of {what}"),
            "ROWSxCOLUMNS, each from 1 to 2^30 - 1",
            format!("{size:?}"),
        )),
    }
}

/// `len` random bytes. Errors: memory.
pub fn bytes(cpu: &Cpu, seed: u64, len: usize) -> Result<Vec<u8>> {
    input::filled(cpu, "random bytes", len, |index| {
        input::bits(seed, index as u64 >> 3).to_le_bytes()[index & 7]
    })
}

/// The type of pixels in CUDA C++.
pub fn c_name(bytes: bool) -> &'static str {
    if bytes { "unsigned char" } else { "float" }
}
