//! Methods: how an image is made of samples. Each is a value, a struct of its parameters, in a file of its
//! own that opens with its equation; [`Methods`] lists them.
//!
//! A method is written over a [`Spec`], which knows the encoding before anything is allocated, and a
//! [`Solving`], which has it while the method runs. So a method works alike on a grid and on a trajectory,
//! and the same steps are planned and run. Another crate adds its own with [`Methods::with`].

mod cg_sense;
mod direct;
mod fft;
mod grappa;
mod gridding;
mod least_squares;
mod low_rank_sparse;
mod penalty;
mod rules;
mod shared;
mod solve;
mod sparse;
mod total_variation;
mod wavelet;

use std::sync::Arc;

use rayspin_core::Result;
pub use rayspin_run::{About, Choice, Idle, Kind, Param, Parameter, Parameters, Rule, Value};
use rayspin_run::{Step, table};

pub use crate::encoding::{Combine, MapUse, SampleKind, Solve, Span, Uses};
use crate::encoding::{Solving, Spec, takes};
use crate::scan::Facts;
pub use cg_sense::CgSense;
pub use fft::Cartesian;
pub use grappa::Grappa;
pub use gridding::Gridding;
pub use least_squares::LeastSquares;
pub use low_rank_sparse::LowRankSparse;
pub use penalty::Regulariser;
pub use total_variation::TotalVariation;
pub use wavelet::{Wavelet, WaveletFilter};

/// How an image is made of samples.
pub trait Method: Parameters + CopyMethod {
    /// Its name and what it does.
    fn about(&self) -> About;

    /// What it asks of the encoding.
    fn uses(&self) -> Uses;

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

    /// Values of its parameters that suit a scan better than the defaults, by facts that are known before the
    /// run.
    fn rules(&self, _facts: &Facts) -> Vec<Rule> {
        Vec::new()
    }

    /// The penalty's weight relative to the largest eigenvalue of FᴴF; 0 where there is no penalty, and none
    /// where the method has none.
    fn penalty(&self) -> Option<f64> {
        None
    }

    /// Whether random shifts leave a residual that more iterations do not lower.
    fn moves(&self) -> bool {
        false
    }

    /// What is done once samples, plans and maps are there, up to the image. For a method over a
    /// [series](Span::Series) the right-hand sides of all its frames are there as well, `[frame, image…]`,
    /// and their normal operator. A method that takes [coefficients](Uses::coefficients) of a temporal basis
    /// has the right-hand side `[coefficient, image…]` where there is one.
    ///
    /// Errors: a method that does not suit the encoding.
    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>>;
}

/// The method with the values of its [rules](Method::rules) but for parameters that are `given`, and the
/// rules that were taken.
///
/// Errors: a rule whose value is out of range.
pub fn suited_to(
    method: &dyn Method,
    facts: &Facts,
    given: impl Fn(&str) -> bool,
) -> Result<(Arc<dyn Method>, Vec<Rule>)> {
    let rules: Vec<Rule> = method.rules(facts).into_iter().filter(|rule| !given(rule.name)).collect();
    let values = rules.iter().map(|rule| (rule.name.to_owned(), rule.value.clone()));
    Ok((with(method, values)?, rules))
}

table! {
    /// The table of methods, each with the defaults of its parameters.
    ///
    /// ```
    /// use rayspin_mri::methods::Methods;
    ///
    /// let methods = Methods::default();
    /// assert_eq!(methods.named("cg-sense")?.about().name, "cg-sense");
    /// assert!(methods.named("none").is_err());
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub struct Methods of dyn Method, called "method", copied by CopyMethod, idle by Method::idle:
        Cartesian, Grappa, Gridding, LeastSquares, CgSense, Wavelet, TotalVariation, LowRankSparse;
}

impl Methods {
    /// The method for a scan for which the user names none, and why. `field` says that a map of the field is
    /// given, with which samples on a grid count as samples of a trajectory. Over a temporal basis it is a
    /// method that takes coefficients.
    pub fn suited(&self, facts: &Facts, field: bool) -> Option<(&dyn Method, String)> {
        let on_grid = facts.on_grid && !field;
        let takes_images = |uses: Uses| facts.coefficients.is_none() || uses.coefficients;
        let fitting =
            || self.iter().filter(|method| takes(method.uses(), on_grid) && takes_images(method.uses()));
        let mut suited = fitting().filter_map(|method| Some((method, method.suits(facts)?)));
        suited.next().or_else(|| {
            let coefficients = facts.coefficients?;
            Some((fitting().next()?, format!("{coefficients} coefficients of a temporal basis")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_distinct_names_and_their_defaults_are_in_range() {
        let methods = Methods::default();
        let names: std::collections::BTreeSet<_> = methods.iter().map(|m| m.about().name).collect();
        assert_eq!(names.len(), methods.iter().count());
        for method in methods.iter() {
            method.check_values().unwrap();
            method.check().unwrap();
            assert_eq!(methods.named(method.about().name).unwrap().about(), method.about());
        }
        assert!(methods.named("guess").unwrap_err().to_string().contains("cg-sense"));
    }

    #[test]
    fn parameters_of_one_name_agree() {
        Methods::default().check_agreement().unwrap();
    }

    #[test]
    fn a_parameter_is_given_by_name_and_checked() {
        let sense = with(&CgSense::default(), [("lambda".to_owned(), Value::Number(0.25))]).unwrap();
        assert_eq!(sense.get("lambda"), Some(Value::Number(0.25)));
        for (name, value) in [
            ("lambda", Value::Number(-1.0)),
            ("lambda", Value::Number(f64::NAN)),
            ("lambda", Value::Count(1)),
            ("iterations", Value::Count(0)),
            ("wavelet", Value::Choice("haar")),
            ("regulariser", Value::Choice("haar")),
        ] {
            assert!(with(&CgSense::default(), [(name.to_owned(), value.clone())]).is_err(), "{name} {value}");
        }
    }
}
