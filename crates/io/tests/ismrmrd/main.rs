//! ISMRMRD files: what is written is read back, whatever another writer lays out differently is read too, real scanner
//! files are read with known facts, and no broken file does more than return an error.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hostile;
mod interop;
mod layouts;
mod make;
mod real;
#[path = "../../../../tests/real_data.rs"]
mod real_data;
mod round_trip;
