//! ISMRMRD files. A written scan is read back. Files that another writer lays out differently are read too.
//! Real scanner files are read with known facts. A broken file does no more than return an error.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hostile;
mod interop;
mod layouts;
mod make;
mod real;
#[path = "../../../../../tests/real_data.rs"]
mod real_data;
mod round_trip;
mod ways;
