//! Algorithms on planes of pixels, one folder each, with every variant from naive to best. `rayspin-filter`
//! uses them.
//!
//! [`ladders`] lists them all. The public function of a folder runs its best variant.

pub mod bicubic;
pub mod box_filter;
pub mod convolution;
pub mod histogram;
pub mod plane;
mod simd;

use rayspin_tune::{Build, Ladder, distinct};

/// Every algorithm here, by name.
pub fn ladders() -> Vec<Box<dyn Ladder>> {
    vec![
        Box::new(bicubic::Bicubic),
        Box::new(box_filter::BoxFilter),
        Box::new(convolution::Convolution),
        Box::new(histogram::Histogram),
    ]
}

/// Every program in every form that matters to its resources: what continuous integration compiles without a
/// GPU.
pub fn programs() -> Vec<Build> {
    distinct(ladders().iter().flat_map(|ladder| ladder.programs()))
}
