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
        (facts.pattern == Pattern::Full).then(|| match facts.readouts {
            some if some < lines => {
                format!("{some} of {lines} lines without gaps: the image has a lower resolution")
            }
            _ => "a full grid".to_owned(),
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
