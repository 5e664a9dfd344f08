//! The options of a run of an MRI scan, one row each.

mod coils;
mod corrections;
mod field;
mod run;
mod scan;

use std::sync::LazyLock;

use super::effect::{HEADER, Requirement};
use super::request::{Beside, Request};
use crate::rows::OptionRow;

type Row = OptionRow<Request, Requirement>;

/// Options that programs read themselves.
const OF_PROGRAMS: &[Row] = &[
    Row::program("scan", &[]),
    Row::program("outputs", &[]),
    Row::program("complex", &[Requirement::Numbers, Requirement::Phase]),
    Row::program("phase", &[Requirement::Phase]),
    Row::program("dry_run", &[]),
    Row::program("save_maps", &[Requirement::Maps]),
    Row::program("reference", &[Requirement::Images]),
    Row::program("fit", &[]),
    Row::program("record", &[]),
    Row::program("no_record", &[]),
    Row::program("keep_identity", HEADER),
    Row::program("bids", HEADER),
    Row::program("dicom_template", &[Requirement::Origin]),
];

static OPTIONS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    [OF_PROGRAMS, scan::ROWS, &corrections::rows(), coils::ROWS, field::ROWS, run::ROWS].concat()
});

/// The options of a run besides the parameters of methods, whose tables say who has them.
pub fn options() -> &'static [Row] {
    &OPTIONS
}

fn recorded<T>(array: &Option<Beside<T>>) -> serde_json::Value {
    array.as_ref().map_or(serde_json::Value::Null, Beside::recorded)
}
