use rayspin_core::C64;

/// The magnitudes in order, and the one with `rank` smaller or equal ones before it.
pub fn magnitude(x: &[C64], rank: usize) -> f64 {
    let mut sizes: Vec<f64> = x.iter().map(|v| v.re.hypot(v.im)).collect();
    sizes.sort_by(f64::total_cmp);
    sizes[rank]
}
