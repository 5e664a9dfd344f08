//! Raw scans and images in ISMRMRD (MRD 1.x), the vendor-neutral format of MRI raw data
//! (Inati et al., Magn Reson Med 77:411, 2017), stored in HDF5.
//!
//! A scan is a group with `xml` (the header) and `data` (one compound an acquisition: `head`, `traj`,
//! `data`). Members are read by name, so that the order, packing and width of any version and any writer are
//! understood. The reader checks everything that a file states against what the file holds before it
//! allocates memory. It notes its assumptions in [`Scan::notes`](rayspin_scan::mri::Scan::notes).

mod any_reader;
mod arrays;
mod check;
mod direct;
mod echoes;
mod header_in;
mod header_out;
mod identity;
mod images;
mod images_in;
mod layout;
mod open;
mod protocol;
mod read;
mod references;
pub(crate) mod row;
mod sequence;
mod summary;
mod write;
mod xml;
mod xml_string;

pub use crate::protocol::{Sequence, Stated};
pub use crate::scan_reader::Contents;
pub use echoes::echo_times;
pub(crate) use header_out::{Xml, ramps_of};
pub use identity::{Identity, identity_of};
pub use images::{ImageOptions, write_images};
pub use images_in::{image_series, parse_header, read_images};
pub use read::{ReadOptions, Reader, contents, header, read, read_with};
#[doc(hidden)]
pub use read::{is_read_past_library, open_by_library, read_by_library};
pub(crate) use sequence::{Followed, with_sequence};
pub use summary::{CounterSummary, EncodingSummary, ScanSummary, TrajectorySummary, summarise};
pub use write::write;
