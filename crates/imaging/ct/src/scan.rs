//! A CT scan as it was measured, and the line integrals in it: the items of [`rayspin_scan::ct`], and the
//! search for the axis of rotation.

mod around;
mod axis;
mod spoilt;

pub use axis::{FoundAxis, find_axis, search_axis};
pub use rayspin_scan::ct::{
    Counts, Light, Measured, Part, PixelSize, Scan, angle_notes, turns_of_degrees, view_angles,
};
