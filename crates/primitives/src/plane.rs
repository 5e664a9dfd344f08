//! What the filters ask of their images.

use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::{Array, Element};

/// Rows and columns of an image, each at least 1.
pub(crate) fn size<T: Element>(what: &str, image: &Array<T>) -> Result<(usize, usize)> {
    match *image.shape() {
        [rows, columns] if rows > 0 && columns > 0 => Ok((rows, columns)),
        _ => Err(Error::value(what, "an image [rows, columns] with pixels", format!("{:?}", image.shape()))),
    }
}

/// That two arrays are on one device.
pub(crate) fn together<A: Element, B: Element>(what: &str, a: &Array<A>, b: &Array<B>) -> Result<()> {
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
pub(crate) fn same<A: Element, B: Element>(
    what: &str,
    image: &Array<A>,
    out: &Array<B>,
) -> Result<(usize, usize)> {
    let size = size(what, image)?;
    expect_shape(what, image.shape(), out.shape())?;
    together(what, image, out)?;
    Ok(size)
}

/// Rows and columns of a size that was asked for by numbers.
pub(crate) fn asked(what: &str, size: &[usize]) -> Result<(usize, usize)> {
    match *size {
        // Kernels count rows and columns in 32 bits, with room for what lies beyond an edge.
        [rows, columns] if rows.min(columns) > 0 && rows.max(columns) < 1 << 30 => Ok((rows, columns)),
        _ => Err(Error::value(
            format!("size of {what}"),
            "ROWSxCOLUMNS, each from 1 to 2^30 - 1",
            format!("{size:?}"),
        )),
    }
}

/// `len` random bytes.
pub(crate) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    use rayon::prelude::*;
    let mut bytes = vec![0; len];
    bytes.par_chunks_mut(1 << 16).enumerate().for_each(|(piece, out)| {
        for (at, out) in out.chunks_mut(8).enumerate() {
            let word = rayspin_tune::input::bits(seed, (piece << 13 | at) as u64).to_le_bytes();
            out.copy_from_slice(&word[..out.len()]);
        }
    });
    bytes
}

/// `len` numbers from −1 to 1.
pub(crate) fn numbers(seed: u64, len: usize) -> Vec<f32> {
    use rayon::prelude::*;
    let mut numbers = vec![0.0; len];
    numbers.par_chunks_mut(1 << 14).enumerate().for_each(|(piece, out)| {
        for (at, out) in out.iter_mut().enumerate() {
            let word = rayspin_tune::input::bits(seed, (piece << 14 | at) as u64);
            *out = (word >> 40) as f32 / (1 << 23) as f32 - 1.0;
        }
    });
    numbers
}
