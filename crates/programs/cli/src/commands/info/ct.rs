//! What a CT scan holds.

use rayspin::io::Projections;
use serde::Serialize;

use super::{Rows, row};
use crate::commands::files::count;

/// A CT scan.
#[derive(Serialize)]
pub(super) struct CtScan {
    views: usize,
    rows: usize,
    columns: usize,
    /// Whether projections are counts; else they are line integrals.
    counts: bool,
    flat_fields: usize,
    dark_fields: usize,
    /// None where the file states no angles.
    first_angle_deg: Option<f64>,
    last_angle_deg: Option<f64>,
    /// What the rays are, where the file states them.
    beam: Option<&'static str>,
    pixel_mm: Option<[f64; 2]>,
    turn_deg: Option<f64>,
}

impl CtScan {
    pub(super) fn of(scan: &Projections) -> Self {
        let [views, rows, columns] = scan.shape();
        let (counts, [flat_fields, dark_fields]) =
            (scan.frames().is_some(), scan.frames().unwrap_or_default());
        let rays = scan.geometry();
        let facts = rays.map(rayspin::ct::methods::Facts::of);
        let beam = facts.map(|facts| match (facts.parallel, facts.rows) {
            (true, _) => "parallel",
            (false, 1) => "fan",
            (false, _) => "cone",
        });
        let degrees = |angle: Option<&f64>| angle.map(|angle| angle.to_degrees());
        let stated = rays.map(|rays| rays.detector().pitch_mm).or(scan.pixel().map(|pixel| pixel.mm));
        Self {
            views,
            rows,
            columns,
            counts,
            flat_fields,
            dark_fields,
            first_angle_deg: degrees(scan.angles().first()),
            last_angle_deg: degrees(scan.angles().last()),
            beam,
            pixel_mm: stated,
            turn_deg: facts.and_then(|facts| facts.turn).map(|turn| turn.span.to_degrees()),
        }
    }

    pub(super) fn show(&self, rows: &mut Rows) {
        row(
            rows,
            "views",
            format!("{} of {} x {} pixels (rows x columns)", self.views, self.rows, self.columns),
        );
        let (flats, darks) = (count(self.flat_fields, "flat field"), count(self.dark_fields, "dark field"));
        let measured =
            if self.counts { format!("counts, {flats}, {darks}") } else { "line integrals".into() };
        row(rows, "measured", measured);
        let angles = match (self.first_angle_deg, self.last_angle_deg) {
            (Some(first), Some(last)) => format!("{first:.2}° to {last:.2}°"),
            _ => "not stated: --arc says over which angle views are spread".into(),
        };
        row(rows, "angles", angles);
        let text = match (self.beam, self.turn_deg) {
            (None, _) => {
                "not stated: recon ct takes parallel rays, or what --source-to-axis, --pixel and --axis say"
                    .into()
            }
            (Some(beam), Some(turn)) => format!("{beam} beam over {turn:.0}° of a circle"),
            (Some(beam), None) => format!("{beam} beam on another path"),
        };
        row(rows, "rays", text);
        if let Some([u, v]) = self.pixel_mm.map(|sizes| sizes.map(|mm| (mm * 1e9).round() / 1e9)) {
            row(rows, "pixel", format!("{u} x {v} mm (along a row, along a column)"));
        }
    }
}
