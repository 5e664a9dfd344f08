//! Methods: how a volume is made of line integrals. Each is a value, a struct of its parameters, in a file of
//! its own that opens with its equation; [`Methods`] lists them.
//!
//! A method is written over a [`Spec`], which knows rays, voxels and device before anything is allocated, and
//! a [`Solving`], which has the line integrals while the method runs. The same steps are planned and run.

mod analytic;
mod cgls;
mod fbp;
mod fdk;
mod fourier;
mod iterative;
mod mlem;
mod os_sart;
mod sirt;
mod total_variation;

use rayspin_core::{ProjectionGeometry, Result};
pub use rayspin_run::{About, Idle, Param, Parameters, Value};
use rayspin_run::{Step, table};

use crate::analytic::{Filter, Turn};
use crate::solving::{Solving, Spec};
pub use cgls::Cgls;
pub use fbp::Fbp;
pub use fdk::Fdk;
pub use fourier::Fourier;
pub use mlem::Mlem;
pub use os_sart::OsSart;
pub use sirt::Sirt;
pub use total_variation::TotalVariation;

/// What is known of the rays of a scan before a method is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Whether the rays of a view are parallel.
    pub parallel: bool,
    /// Rows of the detector.
    pub rows: usize,
    /// How far the source turns on its circle; none for other paths.
    pub turn: Option<Turn>,
}

impl Facts {
    /// The facts of a scan with these rays.
    pub fn of(geometry: &ProjectionGeometry) -> Self {
        let (parallel, rows) = (geometry.is_parallel(), geometry.detector().rows);
        Self { parallel, rows, turn: Turn::of(geometry).ok() }
    }

    /// Whether the rays leave the plane of the circle.
    pub fn cone(&self) -> bool {
        !self.parallel && self.rows > 1
    }
}

/// What of the work on a volume several devices share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// `slices` of the volume or `views` of the scan.
    pub what: &'static str,
    /// Their number.
    pub count: usize,
    /// The most devices among which they can be shared.
    pub parts: usize,
    /// Into how many subsets they are divided first. All devices share each subset.
    pub subsets: usize,
}

impl Shared {
    /// Slices of the volume: each device makes some of all of them.
    pub fn slices(count: usize) -> Self {
        Self { what: "slices", count, parts: count, subsets: 1 }
    }

    /// Views of the scan: in each iteration each device projects along the rays of its own ones.
    pub fn views(count: usize) -> Self {
        Self { what: "views", count, parts: count, subsets: 1 }
    }

    /// How many of them each of `devices` devices takes.
    pub fn of_each(&self, devices: usize) -> Vec<usize> {
        let subsets = iterative::subsets(self.count, self.subsets);
        let of_device = |index| {
            let each = subsets.iter().enumerate();
            each.map(|(number, subset)| iterative::share(subset.len(), number, index, devices).len()).sum()
        };
        (0..devices).map(of_device).collect()
    }

    /// Their number, and of how many subsets, in words.
    pub fn describe(&self) -> String {
        match self.subsets {
            1 => format!("{} {}", self.count, self.what),
            subsets => format!("{} {} in {subsets} subsets", self.count, self.what),
        }
    }
}

/// How a volume is made of line integrals.
pub trait Method: Parameters + CopyMethod {
    /// Its name and what it does.
    fn about(&self) -> About;

    /// Fails where its parameters do not go together.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Its parameters that do nothing as the others stand.
    fn idle(&self) -> Vec<Idle> {
        Vec::new()
    }

    /// Why this method suits a scan, in a few words; none where another one does. The first of a table of
    /// methods that answers is taken where the user names none.
    fn suits(&self, _facts: &Facts) -> Option<String> {
        None
    }

    /// The filter of a method that adds the views up one after another, so that they may arrive while it
    /// runs.
    fn filter(&self) -> Option<Filter> {
        None
    }

    /// What several devices share of a scan of `views` and a volume of `slices`; none for a method that runs
    /// on one device.
    fn shared(&self, _views: usize, _slices: usize) -> Option<Shared> {
        None
    }

    /// What is done with the line integrals, up to the volume, on the [devices](Spec::devices) of `spec`.
    ///
    /// Errors: a method that does not take these rays.
    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>>;
}

table! {
    /// The table of methods, each with the defaults of its parameters.
    ///
    /// ```
    /// use rayspin_ct::methods::Methods;
    ///
    /// let methods = Methods::default();
    /// assert_eq!(methods.named("fdk")?.about().name, "fdk");
    /// assert!(methods.named("none").is_err());
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub struct Methods of dyn Method, called "method", copied by CopyMethod, idle by Method::idle:
        Fbp, Fdk, Fourier, Cgls, Sirt, OsSart, Mlem, TotalVariation;
}

impl Methods {
    /// The method for a scan for which the user names none, and why.
    pub fn suited(&self, facts: &Facts) -> Option<(&dyn Method, String)> {
        self.iter().find_map(|method| Some((method, method.suits(facts)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_defaults_in_range_and_parameters_agree() {
        let methods = Methods::default();
        let names: std::collections::BTreeSet<_> = methods.iter().map(|m| m.about().name).collect();
        assert_eq!(names.len(), methods.iter().count());
        for method in methods.iter() {
            method.check_values().unwrap();
            method.check().unwrap();
        }
        methods.check_agreement().unwrap();
    }
}
