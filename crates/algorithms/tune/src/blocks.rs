//! What kernels ask of their blocks of threads: launches of any crate check it.

use rayspin_core::{Error, Result};

/// Errors: `threads` of a block that are not one warp or several whole ones, or more than a block has.
pub fn whole_warps(threads: u32) -> Result<()> {
    if (32..=1024).contains(&threads) && threads.is_multiple_of(32) {
        return Ok(());
    }
    Err(Error::value("threads of a block", "a multiple of 32, at most 1024", threads))
}

/// Errors: `what` outside of `within`.
pub fn expect(what: &str, within: std::ops::RangeInclusive<u32>, value: u32) -> Result<()> {
    if within.contains(&value) {
        return Ok(());
    }
    Err(Error::value(what, format!("{} to {}", within.start(), within.end()), value))
}
