//! Readers and writers for raw scans and images.
//!
//! Every error names its file ([`Error`]); every output appears whole or not at all ([`atomic`]).

pub mod atomic;
mod error;

pub use error::{Error, Result};
