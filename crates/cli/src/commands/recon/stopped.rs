//! Iterations that end above their tolerance.

use rayspin::mri::recon::{Method, ReconOptions, Regulariser, Solve};

/// The largest relative residual at which an image is called close to the minimiser.
const NEAR: f64 = 1e-2;

/// What is to be said of solves that ended above the tolerance: what happened, what it means, what to do. Nothing where all met
/// it, and nothing where no penalty is, so that the number of iterations is what regularises, unless the tolerance was `asked`
/// for.
pub(super) fn note(solves: &[Solve], options: &ReconOptions, asked: bool) -> Option<String> {
    let tolerance = options.cg_tolerance;
    let weighed = options.method.is_sparse() || options.regulariser != Regulariser::None;
    let penalised = weighed && options.lambda > 0.0;
    if tolerance == 0.0 || !(asked || penalised) {
        return None;
    }
    let residual = |solve: &Solve| solve.residuals.last().copied().unwrap_or(1.0);
    let above = || solves.iter().filter(|solve| !solve.converged);
    let worst = above().max_by(|a, b| residual(a).total_cmp(&residual(b)))?;
    let (solver, done, reached) = (worst.solver, worst.iterations(), residual(worst));
    let place = match (above().count(), solves.len()) {
        (1, 1) => String::new(),
        (some, all) => {
            let label = worst.label;
            format!(
                " in {some} of {all} images (worst: slice {} repetition {})",
                label.slice, label.repetition
            )
        }
    };
    let advice = if done < options.iterations {
        format!("rounding keeps it from coming nearer; --tolerance {} is in reach", above_or_at(reached))
    } else if options.method == Method::Wavelet {
        "the random shifts of wavelets leave a residual that more iterations hardly lower; a larger --tolerance is met"
            .to_owned()
    } else {
        let distance = if reached <= NEAR {
            "the image is close to the minimiser, but not exactly it"
        } else {
            "the image is not yet close to the minimiser"
        };
        let more = if options.method.is_sparse() { "bring it nearer" } else { "sharpen it and add noise" };
        format!(
            "{distance}; more iterations (--iterations {}) {more}, --tolerance {} accepts it",
            2 * done,
            above_or_at(reached)
        )
    };
    Some(format!(
        "{solver} stopped after {done} iterations at residual {reached:.1e}, above the tolerance {tolerance:.0e}{place}: \
         {advice}"
    ))
}

/// The number, rounded up to one digit.
fn above_or_at(value: f64) -> String {
    let power = 10f64.powf(value.log10().floor());
    format!("{:.0e}", (value / power - 1e-9).ceil() * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solve(residuals: &[f64], converged: bool) -> Solve {
        Solve { residuals: residuals.to_vec(), converged, ..Solve::default() }
    }

    #[test]
    fn what_stops_above_its_tolerance_says_so_and_what_to_do() {
        let options = ReconOptions { iterations: 2, ..ReconOptions::of(Method::CgSense) };
        let met = solve(&[1.0, 0.1, 1e-6], true);
        let short = solve(&[1.0, 0.1, 2.3e-3], false);
        assert_eq!(note(std::slice::from_ref(&met), &options, false), None);
        let said = note(std::slice::from_ref(&short), &options, false).unwrap();
        for words in [
            "after 2 iterations at residual 2.3e-3,",
            "tolerance 1e-5: the image is close to",
            "--iterations 4",
            "--tolerance 3e-3",
        ] {
            assert!(said.contains(words), "{said}");
        }
        let said = note(&[met, short.clone(), solve(&[1.0, 0.5, 0.2], false)], &options, false).unwrap();
        assert!(said.contains("in 2 of 3 images") && said.contains("2.0e-1"), "{said}");
        assert!(said.contains("not yet close") && said.contains("add noise"), "{said}");
        // Fewer than were allowed: rounding stopped them.
        let options = ReconOptions { iterations: 9, ..options };
        let said = note(std::slice::from_ref(&short), &options, false).unwrap();
        assert!(said.contains("rounding") && !said.contains("--iterations"), "{said}");
    }

    #[test]
    fn iterations_that_regularise_are_no_shortfall_unless_a_tolerance_was_asked_for() {
        let short = [solve(&[1.0, 0.1], false)];
        let of = |options: ReconOptions| {
            let options = ReconOptions { iterations: 1, ..options };
            [false, true].map(|asked| note(&short, &options, asked).is_some())
        };
        let cg = ReconOptions::of(Method::CgSense);
        assert_eq!(of(cg.clone()), [true, true]);
        assert_eq!(of(ReconOptions { lambda: 0.0, ..cg.clone() }), [false, true]);
        assert_eq!(of(ReconOptions { regulariser: Regulariser::None, ..cg.clone() }), [false, true]);
        assert_eq!(of(ReconOptions { cg_tolerance: 0.0, ..cg }), [false, false]);
        assert_eq!(of(ReconOptions::of(Method::Wavelet)), [false, false]);
        let wavelet = ReconOptions { cg_tolerance: 1e-4, iterations: 1, ..ReconOptions::of(Method::Wavelet) };
        let said = note(&short, &wavelet, true).unwrap();
        assert!(said.contains("random shifts") && !said.contains("--iterations"), "{said}");
        let tv = ReconOptions::of(Method::TotalVariation);
        assert_eq!(of(ReconOptions { regulariser: Regulariser::None, ..tv.clone() }), [true, true]);
        let said = note(&short, &ReconOptions { iterations: 1, ..tv }, false).unwrap();
        assert!(said.contains("(--iterations 2) bring it nearer") && !said.contains("noise"), "{said}");
    }

    #[test]
    fn tolerances_are_rounded_up() {
        for (value, text) in [(2.3e-3, "3e-3"), (1e-5, "1e-5"), (9.7e-4, "1e-3"), (0.2, "2e-1")] {
            assert_eq!(above_or_at(value), text);
        }
    }
}
