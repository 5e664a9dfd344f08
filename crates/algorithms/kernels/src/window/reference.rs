//! The same weights position by position, in f64.

/// The product of one number an axis at each position in C order, 0 where `known` is false.
pub fn separable(profiles: &[Vec<f64>], known: &[bool]) -> Vec<f64> {
    let mut weights = Vec::with_capacity(known.len());
    for (i, &known) in known.iter().enumerate() {
        let (mut rest, mut product) = (i, 1.0);
        for profile in profiles.iter().rev() {
            product *= profile[rest % profile.len()];
            rest /= profile.len();
        }
        weights.push(if known { product } else { 0.0 });
    }
    weights
}
