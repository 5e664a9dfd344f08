//! The application table: what limits an algorithm on a GPU, how many of its threads are there at once, and
//! how much faster than a CPU it is, the kernel alone and the whole with its transfers.

mod bottleneck;
mod measure;
mod record;

#[cfg(test)]
mod tests;

pub use bottleneck::{Bottleneck, HALF, Known, Limit, Loads, Share};
pub use measure::{Best, OnGpu, OneCore, Race, Resident, best, one_core};
pub use record::{Applications, Kind, Part, Published, Row, Side};
