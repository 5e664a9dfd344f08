//! Rules by which methods choose themselves and their parameters, from facts that are known before a run.
//!
//! The constants were fitted to the errors of 1,980 reconstructions of simulated scans (12 sampling patterns,
//! three levels of noise, 11
//! values of λ): `benches/results/2026-11-23-defaults`, which also shows them beside the best choice on real
//! scans.

use std::ops::RangeInclusive;

use super::{Rule, Value};
use crate::scan::{Facts, NoiseSource, Pattern};

/// Undersampling without a regular pattern from which an image with few coefficients is better than the least
/// squares of all coils: at 2.5-fold it is by a tenth to a half.
const SPARSE: f64 = 2.5;
/// Undersampling of a grid from which FISTA needs [`MANY`] iterations; along a trajectory it always does,
/// since k-space is sampled unevenly.
const UNEVEN: f64 = 4.0;
const MANY: u64 = 200;

/// A signal-to-noise ratio beyond which there is no noise: simulated scans without any are rounded numbers.
const NO_NOISE: f64 = 1e6;

/// Why an image with few coefficients suits a scan; none where it does not.
pub(super) fn sparse(facts: &Facts) -> Option<String> {
    let irregular = !matches!(facts.pattern, Pattern::Full | Pattern::Regular | Pattern::Lines);
    (irregular && facts.undersampling >= SPARSE)
        .then(|| format!("{:.1}-fold undersampling without a regular pattern", facts.undersampling))
}

/// Covered part of k-space along an axis below which one coil's least squares fill the rest with noise: of
/// echo-planar lines of a scanner with 0.73, its own image correlates with gridding to 0.994, and to 0.981
/// with least squares.
const PARTIAL: f64 = 0.9;

/// Why gridding suits a scan of one coil; none where least squares do.
pub(super) fn partial_lines(facts: &Facts) -> Option<String> {
    let least = facts.coverage.iter().copied().fold(1.0, f64::min);
    let partial = facts.coils == 1 && facts.pattern == Pattern::Lines && least < PARTIAL;
    partial.then(|| format!("one coil, and parallel lines over {:.0} % of an axis of k-space", 100.0 * least))
}

/// Images of a series that are solved for together: fewer hardly have a course, and with more the singular
/// values of matrices over all of them take longer than the transforms.
const SERIES: RangeInclusive<usize> = 4..=500;

/// Why the images of a series are better solved for together; none where they are not. On simulated series
/// the error is a third to a half smaller than image by image where each image has samples of its own, and
/// larger where all have the same.
pub(super) fn series(facts: &Facts) -> Option<String> {
    let why = sparse(facts).filter(|_| SERIES.contains(&facts.series))?;
    Some(format!("{} images of a slice, each with samples of its own, and {why}", facts.series))
}

/// How λ follows from the noise.
pub(super) struct Law {
    /// λ on a grid and along a trajectory, for noise as strong as the signal. λ is relative to the largest
    /// eigenvalue. Along a trajectory the densely sampled centre sets this eigenvalue, so that one λ weighs
    /// more there.
    pub(super) factors: [f64; 2],
    /// λ is proportional to this power of the noise.
    pub(super) power: i32,
    /// The smallest and the largest λ: less than the one leaves ringing at edges and aliasing, more than the
    /// other blurs.
    pub(super) range: [[f64; 2]; 2],
}

impl Law {
    /// λ for a scan; none where its noise is not known.
    pub(super) fn lambda(&self, facts: &Facts) -> Option<Rule> {
        let noise = facts.noise.as_ref().filter(|noise| noise.snr > 0.0)?;
        let place = usize::from(!facts.on_grid);
        let share = if self.power == 2 { facts.undersampling.max(1.0) } else { 1.0 };
        let wanted = self.factors[place] * share * noise.snr.powi(-self.power);
        let [least, most] = self.range[place];
        let lambda = rounded(wanted.clamp(least, most));
        let source = match noise.source {
            NoiseSource::NoiseScan => "by the noise scan",
            NoiseSource::Rim => "at least, by the rim of k-space",
            NoiseSource::Edge => "at least, by the edge of the field of view",
        };
        let place_name = ["on a grid", "along a trajectory"][place];
        let reason = match noise.snr {
            snr if snr > NO_NOISE => format!("no noise to speak of, samples {place_name}"),
            snr => format!("SNR {snr:.0} {source}, samples {place_name}"),
        };
        Some(Rule { name: "lambda", value: Value::Number(lambda), reason })
    }
}

/// Two digits, so that the printed λ is the λ in use.
fn rounded(lambda: f64) -> f64 {
    format!("{lambda:.1e}").parse().unwrap_or(lambda)
}

/// How many iterations FISTA needs.
pub(super) fn fista_iterations(facts: &Facts) -> Option<Rule> {
    let reason = if !facts.on_grid {
        "FISTA is slow where a trajectory samples k-space unevenly".to_owned()
    } else if facts.undersampling >= UNEVEN {
        format!("FISTA is slow at {:.1}-fold undersampling", facts.undersampling)
    } else {
        return None;
    };
    Some(Rule { name: "iterations", value: Value::Count(MANY), reason })
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;
    use rayspin_core::{C32, Geometry};

    use super::*;
    use crate::methods::{CgSense, Methods, Wavelet, suited_to};
    use crate::scan::{Frame, NoiseLevel};

    fn facts(pattern: Pattern, undersampling: f64, coils: usize, snr: f64) -> Facts {
        let grid = Array3::from_elem((coils, 16, 16), C32::ONE);
        let frame = Frame::from_grid(grid.into_dyn(), Geometry::default()).unwrap();
        let on_grid =
            matches!(pattern, Pattern::Full | Pattern::Regular | Pattern::Random | Pattern::VariableDensity);
        let noise = Some(NoiseLevel { source: NoiseSource::Rim, sample_std: 1.0, snr });
        Facts { on_grid, pattern, undersampling, noise, ..Facts::of(&frame, None, 1).unwrap() }
    }

    #[test]
    fn at_most_one_method_suits_a_scan_and_every_scan_has_one() {
        let methods = Methods::default();
        let patterns = [
            (Pattern::Full, 1.0),
            (Pattern::Regular, 3.0),
            (Pattern::Random, 2.0),
            (Pattern::VariableDensity, 8.0),
            (Pattern::Radial, 1.0),
            (Pattern::Spiral, 4.0),
            (Pattern::Lines, 3.0),
            (Pattern::Other, 1.2),
        ];
        for (pattern, undersampling) in patterns {
            for coils in [1, 8] {
                for field in [false, true] {
                    let facts = facts(pattern, undersampling, coils, 30.0);
                    let suiting = methods.iter().filter(|method| method.suits(&facts).is_some());
                    let names: Vec<_> = suiting.map(|method| method.about().name).collect();
                    let (chosen, reason) = methods.suited(&facts, field).unwrap();
                    assert!(!reason.is_empty() && names.contains(&chosen.about().name), "{names:?}");
                    let others = names.iter().filter(|name| **name != "cartesian").count();
                    assert!(others <= 1, "{pattern:?} {coils}: {names:?}");
                }
            }
        }
        for (coils, wanted) in [(1, "gridding"), (8, "cg-sense")] {
            let lines = Facts { coverage: vec![1.0, 0.73], ..facts(Pattern::Lines, 1.4, coils, 30.0) };
            let suiting = methods.iter().filter(|method| method.suits(&lines).is_some());
            assert_eq!(suiting.map(|method| method.about().name).collect::<Vec<_>>(), [wanted]);
        }
        let chosen = |pattern, undersampling, coils| {
            methods.suited(&facts(pattern, undersampling, coils, 30.0), false).unwrap().0.about().name
        };
        assert_eq!(chosen(Pattern::Full, 1.0, 8), "cartesian");
        assert_eq!(chosen(Pattern::Regular, 4.0, 8), "cg-sense");
        assert_eq!(chosen(Pattern::VariableDensity, 8.0, 8), "wavelet");
        assert_eq!(chosen(Pattern::Spiral, 1.0, 1), "ls");
        assert_eq!(
            methods.suited(&facts(Pattern::Full, 1.0, 8, 30.0), true).unwrap().0.about().name,
            "cg-sense"
        );
    }

    #[test]
    fn lambda_follows_the_noise_within_its_range_and_spares_what_is_given() {
        let lambda = |method: &dyn crate::methods::Method, snr| {
            let (method, rules) = suited_to(method, &facts(Pattern::Random, 2.0, 8, snr), |_| false).unwrap();
            assert_eq!(rules.iter().filter(|rule| rule.name == "lambda").count(), 1);
            match method.get("lambda") {
                Some(Value::Number(lambda)) => lambda,
                other => panic!("{other:?}"),
            }
        };
        for method in [&CgSense::default() as &dyn crate::methods::Method, &Wavelet::default()] {
            let all: Vec<f64> = [1e9, 300.0, 40.0, 20.0, 1.0].map(|snr| lambda(method, snr)).to_vec();
            assert!(all.is_sorted() && all[0] > 0.0 && all[0] < all[4] && all[4] <= 0.1, "{all:?}");
            let given = |name: &str| name == "lambda";
            let (kept, rules) = suited_to(method, &facts(Pattern::Random, 8.0, 8, 20.0), given).unwrap();
            assert_eq!(kept.get("lambda"), method.get("lambda"));
            assert!(rules.iter().all(|rule| rule.name != "lambda"));
        }
    }
}
