//! What a run leaves for people to read: a record in JSON, tables, and self-contained HTML pages.
//!
//! - [`record`]: what ran, on which files, with which parameters, for how long and how well.
//! - [`table`]: one table model, printed as aligned text in a terminal or as HTML on a page.
//! - [`page`]: pictures, tables, line charts and run records on one HTML page that loads nothing from
//!   anywhere.
//!
//! Nothing here writes a file: records and pages render to a `String`, and the caller decides where it goes.

pub mod number;
pub mod page;
pub mod record;
pub mod table;

pub use page::{Block, Page, Section};
pub use record::{RunRecord, RunRecorder};
pub use table::Table;
