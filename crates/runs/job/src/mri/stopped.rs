//! Iterations that end above their tolerance.

use rayspin_mri::methods::{Method, Value};
use rayspin_mri::recon::Solve;

/// The largest distance from the minimiser at which an image is called close to it: of conjugate gradients in
/// the norm of the normal operator, relative to the image, else the relative residual. The noise of a scan
/// with a signal-to-noise ratio below 100 is larger.
const NEAR: f64 = 1e-2;

/// The note on solves that ended above the tolerance: what happened, what it means, what to do. None if all
/// solves met it.
///
/// Unless the tolerance was `asked` for, there is no note in three more cases: conjugate gradients came close
/// to the minimiser; there is no penalty, so that the number of iterations regularises; random shifts keep
/// the image moving.
pub(super) fn note(solves: &[Solve], method: &dyn Method, asked: bool) -> Option<String> {
    let Some(Value::Number(tolerance)) = method.get("tolerance") else { return None };
    let Some(Value::Count(iterations)) = method.get("iterations") else { return None };
    let penalised = method.penalty().is_some_and(|lambda| lambda > 0.0);
    if tolerance == 0.0 || !(asked || (penalised && !method.moves())) {
        return None;
    }
    let residual = |solve: &Solve| solve.residuals.last().copied().unwrap_or(1.0);
    let near = |solve: &Solve| solve.remaining.unwrap_or(residual(solve)) <= NEAR;
    let done_with = |solve: &Solve| solve.converged || (!asked && solve.remaining.is_some() && near(solve));
    let above = || solves.iter().filter(|solve| !done_with(solve));
    let worst = above().max_by(|a, b| residual(a).total_cmp(&residual(b)))?;
    let (solver, done, reached) = (worst.solver, worst.iterations(), residual(worst));
    let place = match (above().count(), solves.len()) {
        (1, 1) => String::new(),
        (some, images) => {
            let labels: Vec<_> = solves.iter().map(|solve| solve.label).collect();
            format!(" in {some} of {images} images (worst: {})", worst.label.name_among(&labels))
        }
    };
    let advice = if (done as u64) < iterations {
        format!("rounding keeps it from coming nearer; `--tolerance {}` is in reach", above_or_at(reached))
    } else if method.moves() {
        "the random shifts of wavelets leave a residual that more iterations hardly lower; a larger `--tolerance` is met"
            .to_owned()
    } else {
        let distance = if near(worst) {
            "the image is close to the minimiser, but not exactly it"
        } else {
            "the image is not yet close to the minimiser"
        };
        let more = if method.uses().own_eigenvalue { "bring it nearer" } else { "sharpen it and add noise" };
        format!(
            "{distance}; more iterations (`--iterations {}`) {more}, `--tolerance {}` accepts it",
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
    use rayspin_mri::methods::{CgSense, Regulariser, TotalVariation, Wavelet};

    use super::*;

    fn solve(residuals: &[f64], converged: bool) -> Solve {
        Solve { residuals: residuals.to_vec(), converged, ..Solve::default() }
    }

    #[test]
    fn what_stops_above_its_tolerance_says_so_and_what_to_do() {
        let options = CgSense { iterations: 2, ..CgSense::default() };
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
        let options = CgSense { iterations: 9, ..options };
        let said = note(std::slice::from_ref(&short), &options, false).unwrap();
        assert!(said.contains("rounding") && !said.contains("--iterations"), "{said}");
    }

    #[test]
    fn conjugate_gradients_that_came_close_are_no_shortfall_unless_a_tolerance_was_asked_for() {
        let cg = CgSense { iterations: 2, ..CgSense::default() };
        let at = |remaining| Solve { remaining: Some(remaining), ..solve(&[1.0, 0.1, 2e-3], false) };
        let of = |remaining| [false, true].map(|asked| note(&[at(remaining)], &cg, asked));
        let [silent, said] = of(9e-3);
        assert_eq!(silent, None);
        assert!(said.is_some_and(|said| said.contains("the image is close to")));
        let [said, _] = of(0.2);
        assert!(
            said.is_some_and(|said| said.contains("not yet close to") && said.contains("--iterations 4"))
        );
    }

    #[test]
    fn iterations_that_regularise_are_no_shortfall_unless_a_tolerance_was_asked_for() {
        let short = [solve(&[1.0, 0.1], false)];
        let of = |method: &dyn Method| [false, true].map(|asked| note(&short, method, asked).is_some());
        let cg = CgSense { iterations: 1, ..CgSense::default() };
        assert_eq!(of(&cg), [true, true]);
        assert_eq!(of(&CgSense { lambda: 0.0, ..cg.clone() }), [false, true]);
        assert_eq!(of(&CgSense { regulariser: Regulariser::None, ..cg.clone() }), [false, true]);
        assert_eq!(of(&CgSense { tolerance: 0.0, ..cg }), [false, false]);
        let wavelet = Wavelet { iterations: 1, ..Wavelet::default() };
        assert_eq!(of(&wavelet), [false, true]);
        assert_eq!(of(&Wavelet { tolerance: 0.0, ..wavelet.clone() }), [false, false]);
        let said = note(&short, &Wavelet { tolerance: 1e-4, ..wavelet }, true).unwrap();
        assert!(said.contains("random shifts") && !said.contains("--iterations"), "{said}");
        let tv = TotalVariation { iterations: 1, ..TotalVariation::default() };
        assert_eq!(of(&tv), [true, true]);
        let said = note(&short, &tv, false).unwrap();
        assert!(said.contains("(`--iterations 2`) bring it nearer") && !said.contains("noise"), "{said}");
    }

    #[test]
    fn tolerances_are_rounded_up() {
        for (value, text) in [(2.3e-3, "3e-3"), (1e-5, "1e-5"), (9.7e-4, "1e-3"), (0.2, "2e-1")] {
            assert_eq!(above_or_at(value), text);
        }
    }
}
