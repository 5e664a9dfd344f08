//! What the screen says of certificates.

use rayspin::report::table::{Cell, Column, Table};
use rayspin::run::Certificate;

/// What was measured of the transforms, as a table.
pub(crate) fn certificates<K>(
    certificates: &[Certificate<K>],
    name: impl Fn(&Certificate<K>) -> String,
) -> Table {
    let share = certificates.first().map_or(0.0, |c| 100.0 * c.share);
    let confidence = certificates.first().map_or(0.0, |c| 100.0 * c.confidence);
    let mut table = Table::new(
        format!(
            "Outputs against exact sums (at {confidence} % confidence at most {share:.2} % of all exceed 'largest')"
        ),
        [
            Column::text("Transform"),
            Column::number("Outputs").decimals(0),
            Column::number("Relative error"),
            Column::number("Largest"),
            Column::number("Tolerance"),
            Column::text("Result"),
        ],
    );
    for c in certificates {
        table.push([
            Cell::Text(name(c)),
            Cell::Number(c.outputs as f64),
            Cell::Number(c.error),
            Cell::Number(c.largest),
            Cell::Number(c.tolerance),
            Cell::Text(if c.met() { "met" } else { "missed" }.into()),
        ]);
    }
    table
}

/// The failure of a run whose transform `name` misses its tolerance.
pub(crate) fn missed<K>(certificate: &Certificate<K>, name: String) -> rayspin::core::Error {
    rayspin::core::Error::Numerical {
        what: name,
        detail: format!(
            "relative error {:.2e} above the tolerance of {:.0e}",
            certificate.error, certificate.tolerance
        ),
    }
}
