//! The method of Feldkamp, Davis and Kress: filtered back-projection of cone beams.
//!
//! ```text
//! f(x) = Σ_v Δθ_v (R/D) m_v(x)² q_v(row(x), column(x)),   q = ramp ∗ (w cos(ray) p)
//! ```
//!
//! with the symbols of [`FilteredBackprojection`](crate::analytic::FilteredBackprojection). It is exact in
//! the plane of the circle. Away from it, edges that lie across the axis blur, as the circle does not measure
//! them.
//!
//! L. A. Feldkamp, L. C. Davis, J. W. Kress, *Practical cone-beam algorithm*, J Opt Soc Am A 1:612, 1984.

use rayspin_core::{Error, Result};
use rayspin_run::{About, Step, params};

use super::{Facts, Method, Shared, analytic};
use crate::analytic::{Extend, Filter, Window};
use crate::solving::{Solving, Spec};

params! {
    /// Filtered back-projection of cone beams (Feldkamp, Davis and Kress, J Opt Soc Am A 1:612, 1984).
    pub struct Fdk {
        /// The window of the ramp filter.
        window: Window = Window::RamLak => analytic::WINDOW,
        /// The frequency at which the window ends, as a part of the highest frequency.
        cutoff: f64 = 1.0 => analytic::CUTOFF,
        /// How rows go on beyond the detector.
        extend: Extend = Extend::Auto => analytic::EXTEND,
    }
}

impl Method for Fdk {
    fn about(&self) -> About {
        About {
            name: "fdk",
            help: "Filtered back-projection of cone beams on a circle (Feldkamp, Davis, Kress)",
        }
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        let turn = facts.turn.filter(|_| facts.cone())?;
        Some(format!("a cone beam over {turn}"))
    }

    fn filter(&self) -> Option<Filter> {
        Some(Filter { window: self.window, cutoff: self.cutoff, extend: self.extend })
    }

    fn shared(&self, _: usize, slices: usize) -> Option<Shared> {
        Some(Shared::slices(slices))
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        if spec.geometry().is_parallel() {
            return Err(Error::value(
                "rays for fdk",
                "a cone beam",
                "parallel rays (`--method fbp` takes them)",
            ));
        }
        analytic::steps(spec, Filter { window: self.window, cutoff: self.cutoff, extend: self.extend })
    }
}
