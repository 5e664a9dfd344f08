//! Parameters that several methods have.

use super::Param;
use super::Value;

const PENALTY: &str = "Penalty";
const ITERATION: &str = "Iterations";

pub(super) const COMBINE: Param =
    Param::new("Coils", "How coil images become one").absent("maps with `--maps`, else rss").remedies(&[(
        &["combine"],
        "leave `--combine` out, or choose rss or maps; `--method cartesian` and `ls` make coil images",
    )]);

pub(super) const LAMBDA: Param = Param::new(
    PENALTY,
    "Weight of the penalty, relative to the largest eigenvalue of the normal operator; with an L1 penalty also to the image's brightness (99th percentile)",
)
.short('l')
.searched()
.remedies(&[(
    &["search for lambda"],
    "give `--lambda` a number, or take `--method cg-sense`, `wavelet` or `tv`",
)])
.follows("the scan's noise")
.expects("a finite number >= 0", |value| match value {
    Value::Number(lambda) => *lambda >= 0.0 && lambda.is_finite(),
    _ => false,
});

pub(super) const REGULARISER: Param = Param::new(
    PENALTY,
    "Quantity that the penalty keeps small; differences are scaled to a distance of 1/256 of the field of view",
)
.short('W');

pub(super) const ANATOMY: Param = Param::new(
    PENALTY,
    "Reference image of the same matrix; the penalty smooths less across its edges (needs `--regulariser differences` or `--method tv`)",
)
.title("anatomical reference")
.remedies(&[(&["anatomical reference"], "it needs the matrix of the image that is reconstructed")]);

pub(super) const ANATOMY_EDGE: Param = Param::new(
    PENALTY,
    "Difference between neighbours in the reference image, as a fraction of its brightness, above which the penalty smooths less",
)
.title("edge of the anatomical reference")
.expects("a positive number", |value| match value {
    Value::Number(edge) => *edge > 0.0 && edge.is_finite(),
    _ => false,
});

pub(super) const ITERATIONS: Param = Param::new(ITERATION, "Largest number of iterations")
    .short('i')
    .expects("1 to 100000", |value| matches!(value, Value::Count(1..=100_000)));

pub(super) const TOLERANCE: Param = Param::new(
    ITERATION,
    "Relative residual (FISTA, L+S: relative change) at which iterations stop; 0 runs all of them",
)
.expects("0 <= tolerance < 1", |value| match value {
    Value::Number(tolerance) => (0.0..1.0).contains(tolerance),
    _ => false,
});

pub(super) const PARTIAL_FOURIER: Param =
    Param::new("k-space", "How the unmeasured side of k-space is filled")
        .absent("pocs where one side is measured farther than the other, else none")
        .remedies(&[(&["partial Fourier"], "leave `--partial-fourier` out")]);
