//! Options of corrections: the parameters of each row of their table.

use rayspin_mri::corrections::{Param, Table, Value};

use super::super::effect::HEADER;
use super::Row;

/// A row for each parameter of a correction, in the order of the table.
pub(super) fn rows() -> Vec<Row> {
    let row = |(param, defaults): (Param, Vec<(&str, Value)>)| {
        let default = defaults.first().map_or(&Value::Nothing, |(_, value)| value);
        Row::of_param(&param, default, HEADER, |request, given| {
            Ok(request.frames.corrections.set(given.row, given.value()?)?)
        })
    };
    Table::default().params().into_iter().map(row).collect()
}
