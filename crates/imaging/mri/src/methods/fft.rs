//! Inverse FFT of the grid, coil by coil, then combined.
//!
//! ```text
//! y_j(x) = Σ_k d_j(k) e^{+i2πk·x},   ρ = √Σ_j |y_j|²  or  Σ_j c̄_j y_j / Σ_j |c_j|²
//! ```
//!
//! Where k-space was measured on one side of its centre farther than on the other, [`crate::partial`] fills
//! the rest.

use rayspin_core::Result;
use rayspin_run::Step;

use super::{About, Combine, MapUse, Method, SampleKind, Uses, direct, shared};
use crate::encoding::{Solving, Spec};
use crate::params;
use crate::partial::PartialFourier;
use crate::scan::{Facts, Pattern};

params! {
    /// Inverse FFT of the grid, coil by coil, then combined.
    pub struct Cartesian {
        /// How coil images become one; by what is given when absent.
        combine: Option<Combine> = None => shared::COMBINE,
        /// How the missing side of k-space is filled in (partial Fourier). By default
        /// [`PartialFourier::Pocs`] if one side of the centre is measured farther than the other.
        partial_fourier: Option<PartialFourier> = None => shared::PARTIAL_FOURIER,
    }
}

impl Method for Cartesian {
    fn about(&self) -> About {
        About { name: "cartesian", help: "Inverse FFT of the grid, coil by coil" }
    }

    fn uses(&self) -> Uses {
        Uses { samples: SampleKind::Grid, ..Uses::new(MapUse::Combining(self.combine)) }
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        // Sizes run along x, y, z; the lines lie along x.
        let lines: usize = facts.matrix.iter().skip(1).product();
        let axes: Vec<&str> = (facts.coverage.iter().zip(["x", "y", "z"]))
            .filter_map(|(part, axis)| (*part < 1.0).then_some(axis))
            .collect();
        (facts.pattern == Pattern::Full).then(|| {
            let some = facts.readouts;
            let grid = match some < lines {
                true => format!("{some} of {lines} lines without gaps"),
                false => "a grid without gaps".to_owned(),
            };
            match (&axes[..], some < lines) {
                ([], true) => format!("{grid}: the image has a lower resolution"),
                ([], false) => grid,
                (axes, _) => format!(
                    "{grid}, measured farther on one side along {} (partial Fourier)",
                    axes.join(" and ")
                ),
            }
        })
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let how = self.partial_fourier;
        let grid = spec.expect_grid()?;
        Ok(vec![
            Step::new("inverse FFT", move |state, _| direct::transform(spec, grid.sampled, how, state))
                .needs(move || direct::needs(spec, grid.sampled, how)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;
    use rayspin_core::{C32, Geometry};

    use super::*;
    use crate::scan::Frame;

    #[test]
    fn the_reason_is_true_of_partial_fourier() {
        let reason = |x: std::ops::Range<usize>, y: std::ops::Range<usize>| {
            let kspace = Array3::from_shape_fn((2, 32, 32), |(_, row, column)| {
                C32::from(f32::from(y.contains(&row) && x.contains(&column)))
            });
            let frame = Frame::from_grid(kspace.into_dyn(), Geometry::default()).unwrap();
            Cartesian::default().suits(&Facts::of(&frame, None, 1).unwrap()).unwrap()
        };
        assert_eq!(reason(0..32, 0..32), "a grid without gaps");
        assert_eq!(
            reason(10..32, 0..32),
            "a grid without gaps, measured farther on one side along x (partial Fourier)"
        );
        let lines = reason(0..32, 8..32);
        assert_eq!(
            lines,
            "24 of 32 lines without gaps, measured farther on one side along y (partial Fourier)"
        );
        assert!(reason(10..32, 8..32).contains("along x and y"));
        // Alike on both sides: nothing is estimated.
        assert_eq!(reason(0..32, 8..24), "16 of 32 lines without gaps: the image has a lower resolution");
    }
}
