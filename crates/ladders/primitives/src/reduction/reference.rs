//! The oracle.

/// Σ a.
pub fn sum_i32(a: &[i32]) -> i128 {
    a.iter().map(|&x| i128::from(x)).sum()
}

/// (Σ a, Σ |a|) in f64 with the rounding of every addition carried along (Neumaier, 1974).
pub fn sum<T: Copy + Into<f64>>(a: &[T]) -> (f64, f64) {
    let magnitude = a.iter().map(|&x| x.into().abs()).sum();
    (compensated(a.iter().map(|&x| x.into())), magnitude)
}

/// (1/n) Σ (a − b)².
pub fn mean_square_error<T: Copy + Into<f64>>(a: &[T], b: &[T]) -> f64 {
    compensated(a.iter().zip(b).map(|(&a, &b)| (a.into() - b.into()).powi(2))) / a.len() as f64
}

/// The least element; NaN where one is.
pub fn min<T: Copy + PartialOrd>(a: &[T]) -> Option<T> {
    extreme(a, |x, y| x < y)
}

/// The greatest element; NaN where one is.
pub fn max<T: Copy + PartialOrd>(a: &[T]) -> Option<T> {
    extreme(a, |x, y| x > y)
}

/// |found − want| / scale, infinite where only one of both is a number; infinities of one sign are equal.
pub fn relative(result: f64, want: f64, scale: f64) -> f64 {
    match (result.is_nan(), want.is_nan()) {
        (true, true) => 0.0,
        (false, false) if result == want => 0.0,
        (false, false) => (result - want).abs() / scale,
        _ => f64::INFINITY,
    }
}

#[expect(clippy::eq_op, reason = "NaN")]
fn extreme<T: Copy + PartialOrd>(a: &[T], beats: fn(T, T) -> bool) -> Option<T> {
    let mut best = *a.first()?;
    for &x in a {
        if x != x {
            return Some(x);
        }
        if beats(x, best) {
            best = x;
        }
    }
    Some(best)
}

fn compensated(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for x in terms {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    // An infinite or undefined sum has no lost part that could be added.
    if sum.is_finite() { sum + lost } else { sum }
}
