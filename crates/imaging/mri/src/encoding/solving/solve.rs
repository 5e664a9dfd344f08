//! How an iterative method went.

use crate::scan::Label;

/// How an iterative reconstruction went.
#[derive(Debug, Clone, PartialEq)]
pub struct Solve {
    /// The frame.
    pub label: Label,
    /// The solver's name.
    pub solver: &'static str,
    /// Relative residual before the first iteration and after each, the mean over coils when they are solved
    /// one by one.
    /// Of FISTA: how far each iteration's proximal gradient step led, relative to the image.
    pub residuals: Vec<f64>,
    /// Of FISTA: 1/(2L) ‖Fρ − d‖² + λs‖Ψρ‖₁, over s² and less its constant, after each iteration.
    pub objective: Vec<f64>,
    /// The largest eigenvalue of FᴴF, which λ is relative to.
    pub eigenvalue: f64,
    /// Whether the iterations for it met their tolerance.
    pub eigenvalue_converged: bool,
    /// For sparse methods, the scale of λ besides L: s n/256, or s (n/256)^{d/2} for wavelets of d axes. It
    /// stands for the image's brightness and its matrix size.
    pub scale: Option<f64>,
    /// Whether the residual met the tolerance (for every coil, when they are solved one by one).
    pub converged: bool,
    /// For conjugate gradients, about ‖ρ̂ − ρ‖_A / ‖ρ̂‖_A, with ρ̂ the minimiser and A = EᴴE + λLWᴴW
    /// ([`rayspin_solve::CgResult::remaining`]), the largest of all coils.
    pub remaining: Option<f64>,
}

impl Default for Solve {
    fn default() -> Self {
        Self {
            label: Label::default(),
            solver: "conjugate gradients",
            residuals: Vec::new(),
            objective: Vec::new(),
            eigenvalue: 0.0,
            eigenvalue_converged: true,
            scale: None,
            converged: false,
            remaining: None,
        }
    }
}

impl Solve {
    /// What is to be said of the eigenvalue.
    pub(crate) fn note(&self) -> Option<String> {
        (!self.eigenvalue_converged).then(|| {
            "the estimate of the largest eigenvalue, which λ is relative to, still grew by more than 1 % in its last iteration: λ \
             weighs less than it says (a larger `--lambda` makes up for it)"
                .to_owned()
        })
    }

    /// Iterations done.
    pub fn iterations(&self) -> usize {
        if self.objective.is_empty() { self.residuals.len().saturating_sub(1) } else { self.objective.len() }
    }
}
