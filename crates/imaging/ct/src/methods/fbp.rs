//! Filtered back-projection of parallel and fan beams.
//!
//! ```text
//! f(x) = Σ_v Δθ_v (R/D) m_v(x)² q_v(row(x), column(x)),   q = ramp ∗ (w cos(ray) p)
//! ```
//!
//! with the symbols of [`FilteredBackprojection`](crate::analytic::FilteredBackprojection).
//!
//! A. C. Kak, M. Slaney, *Principles of Computerized Tomographic Imaging*, 1988, ch. 3.

use rayspin_core::{Error, Result};
use rayspin_run::{About, Step, params};

use super::{Facts, Method, Shared, analytic};
use crate::analytic::{Extend, Filter, Window};
use crate::solving::{Solving, Spec};

params! {
    /// Filtered back-projection of parallel and fan beams.
    pub struct Fbp {
        /// The window of the ramp filter.
        window: Window = Window::RamLak => analytic::WINDOW,
        /// The frequency at which the window ends, as a part of the highest frequency.
        cutoff: f64 = 1.0 => analytic::CUTOFF,
        /// How rows go on beyond the detector.
        extend: Extend = Extend::Auto => analytic::EXTEND,
    }
}

impl Method for Fbp {
    fn about(&self) -> About {
        About { name: "fbp", help: "Filtered back-projection of parallel and fan beams on a circle" }
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        let turn = facts.turn.filter(|_| !facts.cone())?;
        Some(format!("{} over {turn}", if facts.parallel { "parallel rays" } else { "a fan beam" }))
    }

    fn filter(&self) -> Option<Filter> {
        Some(Filter { window: self.window, cutoff: self.cutoff, extend: self.extend })
    }

    fn shared(&self, _: usize, slices: usize) -> Option<Shared> {
        Some(Shared::slices(slices))
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        if Facts::of(spec.geometry()).cone() {
            let rows = spec.geometry().detector().rows;
            let found = format!("a cone beam on {rows} rows (`--method fdk` takes it)");
            return Err(Error::value("rays for fbp", "parallel rays, or a fan beam on one row", found));
        }
        analytic::steps(spec, Filter { window: self.window, cutoff: self.cutoff, extend: self.extend })
    }
}
