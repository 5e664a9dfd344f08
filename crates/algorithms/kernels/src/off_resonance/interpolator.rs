//! Phases at any time from phases at a few times.

use std::f64::consts::{PI, TAU};

use rayspin_core::{C64, Error, Result};

/// Maximum number of segments.
pub const MAX_SEGMENTS: usize = 128;
/// Maximum of Σ_l |b_l(t)|, the factor by which errors of the segments' transforms grow.
pub const MAX_GAIN: f64 = 4.0;
/// Ridge of the least squares, as a part of the squared tolerance: it keeps weights small and hardly moves
/// the residual.
const RIDGE: f64 = 0.25;
/// Grid points per segment and axis for the largest residual.
const POINTS: usize = 8;

/// e^{−i2πft} ≈ Σ_l b_l(t) e^{−i2πfτ_l} for frequencies in a range and times in a range.
///
/// The τ_l are the Chebyshev points of the times, t_c + (T/2) cos(π(l + ½)/L). For every t the b_l(t)
/// minimise
///
/// ```text
/// ∫ |e^{−i2πft} − Σ_l b_l e^{−i2πfτ_l}|² / √((W/2)² − (f − f_c)²) df + (ε/2)² Σ|b_l|²
/// ```
///
/// over the range of width W around f_c. The weight at the ends of the range nearly minimises the largest
/// residual. The solution has a closed form, because the Gram matrix of this weight is J₀(πW(τ_l − τ_m)). L
/// is the smallest number for which the largest residual, on a grid of 8L × 8L points of f and t, is at most
/// the tolerance ε and Σ|b_l| is at most [`MAX_GAIN`]. It depends only on the product WT.
///
/// Sutton, Noll, Fessler, IEEE Trans Med Imaging 22:178, 2003 (least squares and min–max interpolators of
/// segments).
///
/// ```
/// use rayspin_core::C64;
/// use rayspin_kernels::off_resonance::Interpolator;
///
/// let interpolator = Interpolator::new([-100.0, 100.0], [0.0, 0.02], 1e-3)?; // Hz, s
/// let phase = |f: f64, t: f64| C64::cis(-std::f64::consts::TAU * f * t);
/// let (f, t) = (73.0, 0.0123);
/// let terms = interpolator.weights(t).into_iter().zip(interpolator.times());
/// let found: C64 = terms.map(|(b, tau)| b * phase(f, tau)).sum();
/// assert!((found - phase(f, t)).norm() < 1.5e-3);
/// assert!(interpolator.error() <= 1e-3 && interpolator.segments() < 20);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Interpolator {
    /// f_c, Hz.
    centre: f64,
    /// W, Hz.
    width: f64,
    /// t_c, s.
    middle: f64,
    /// T, s.
    duration: f64,
    /// (τ_l − t_c)/T.
    nodes: Vec<f64>,
    /// Lower Cholesky factor of the Gram matrix, row by row.
    factor: Vec<f64>,
    error: f64,
    gain: f64,
}

impl Interpolator {
    /// For frequencies `[lowest, highest]` in Hz and times `[first, last]` in s, with a largest residual of
    /// `tolerance`.
    ///
    /// Errors: ranges that are not finite or reversed; a tolerance outside 1e-6 … 0.5; more than
    /// [`MAX_SEGMENTS`] segments are needed.
    pub fn new(frequencies: [f64; 2], times: [f64; 2], tolerance: f64) -> Result<Self> {
        for (what, [low, high], unit) in
            [("range of the field map", frequencies, "Hz"), ("range of the samples' times", times, "s")]
        {
            if !(low.is_finite() && high.is_finite() && low <= high) {
                return Err(Error::value(
                    what,
                    format!("finite {unit}, ascending"),
                    format!("{low} to {high}"),
                ));
            }
        }
        if !(1e-6..=0.5).contains(&tolerance) {
            return Err(Error::value("tolerance of the field map's segments", "1e-6 to 0.5", tolerance));
        }
        let (width, duration) = (frequencies[1] - frequencies[0], times[1] - times[0]);
        let empty = Self {
            centre: frequencies[0] + 0.5 * width,
            width,
            middle: times[0] + 0.5 * duration,
            duration,
            nodes: Vec::new(),
            factor: Vec::new(),
            error: f64::INFINITY,
            gain: f64::INFINITY,
        };
        let met = |segments: usize| {
            let interpolator = empty.with(segments, tolerance);
            (interpolator.error <= tolerance && interpolator.gain <= MAX_GAIN).then_some(interpolator)
        };
        // A band of W Hz for T s has about WT degrees of freedom. No weights suffice with fewer segments.
        let turns = width * duration;
        if turns > MAX_SEGMENTS as f64 {
            return Err(empty.too_many(tolerance));
        }
        let mut fewer = (turns.floor() as usize).saturating_sub(1);
        let mut step = 1;
        let mut best = loop {
            let tried = (fewer + step).min(MAX_SEGMENTS);
            match met(tried) {
                Some(best) => break best,
                None if tried == MAX_SEGMENTS => return Err(empty.too_many(tolerance)),
                None => (fewer, step) = (tried, 2 * step),
            }
        };
        while best.segments() > fewer + 1 {
            let between = fewer.midpoint(best.segments());
            match met(between) {
                Some(better) => best = better,
                None => fewer = between,
            }
        }
        Ok(best)
    }

    fn too_many(&self, tolerance: f64) -> Error {
        Error::value(
            "field map's range times the readout's duration",
            format!("what {MAX_SEGMENTS} time segments resolve to {tolerance:.0e}"),
            format!(
                "{:.1} Hz × {:.2} ms = {:.0} turns",
                self.width,
                1e3 * self.duration,
                self.width * self.duration
            ),
        )
    }

    /// Number of segments L.
    pub fn segments(&self) -> usize {
        self.nodes.len()
    }

    /// The largest residual over both ranges.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// The largest Σ_l |b_l(t)|.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// τ_l, s.
    pub fn times(&self) -> Vec<f64> {
        self.nodes.iter().map(|u| self.middle + u * self.duration).collect()
    }

    /// b_l(t), one for each segment, t in s. They are real where the frequencies are symmetric about 0.
    pub fn weights(&self, t: f64) -> Vec<C64> {
        let u = if self.duration > 0.0 { (t - self.middle) / self.duration } else { 0.0 };
        let real = self.at(u);
        let turns = |node: f64| self.centre * self.duration * (u - node);
        real.iter().zip(&self.nodes).map(|(b, &node)| C64::cis(-TAU * turns(node)) * b).collect()
    }

    /// The weights at `times` (s), once per distinct time.
    ///
    /// Errors: no time, more than 2³² − 1, one that is not finite.
    pub fn table(&self, times: &[f64]) -> Result<Table> {
        if let Some((index, t)) = times.iter().enumerate().find(|(_, t)| !t.is_finite()) {
            let what = "times of the samples".into();
            return Err(Error::NotFinite { what, index, found: t.to_string() });
        }
        if times.is_empty() || u32::try_from(times.len()).is_err() {
            return Err(Error::value("times of the samples", "1 to 2³² − 1", times.len()));
        }
        let distinct = distinct(times);
        let place = |t: &f64| distinct.partition_point(|d| d < t) as u32;
        let mut weights = vec![C64::ZERO; self.segments() * distinct.len()];
        for (i, &t) in distinct.iter().enumerate() {
            for (l, b) in self.weights(t).into_iter().enumerate() {
                weights[l * distinct.len() + i] = b;
            }
        }
        Ok(Table { times: distinct.len(), index: times.iter().map(place).collect(), weights })
    }

    /// W T.
    fn turns(&self) -> f64 {
        self.width * self.duration
    }

    fn with(&self, segments: usize, tolerance: f64) -> Self {
        let mut new = self.clone();
        let angle = |l: usize| PI * (l as f64 + 0.5) / segments as f64;
        new.nodes = (0..segments).map(|l| -0.5 * angle(l).cos()).collect();
        if new.turns() == 0.0 {
            // One moment or one frequency: b = 1 to the last bit.
            (new.nodes, new.factor, new.error, new.gain) = (vec![0.0], vec![1.0], 0.0, 1.0);
            return new;
        }
        let ridge = RIDGE * tolerance * tolerance;
        new.factor = cholesky(segments, |l, m| {
            libm::j0(PI * new.turns() * (new.nodes[l] - new.nodes[m])) + if l == m { ridge } else { 0.0 }
        });
        (new.error, new.gain) = new.residual();
        new
    }

    /// Real weights at u = (t − t_c)/T, for frequencies about 0.
    fn at(&self, u: f64) -> Vec<f64> {
        let moments = self.nodes.iter().map(|node| libm::j0(PI * self.turns() * (u - node)));
        solve(&self.factor, moments.collect())
    }

    /// The largest residual and the largest Σ|b_l|. Both are even in f and in t about their middles.
    fn residual(&self) -> (f64, f64) {
        let steps = POINTS * self.segments();
        let half: Vec<f64> = (0..=steps).map(|i| (0.5 * PI * i as f64 / steps as f64).sin()).collect();
        let weights: Vec<(f64, Vec<f64>)> = half.iter().map(|x| (0.5 * x, self.at(0.5 * x))).collect();
        let mut worst = 0.0f64;
        for x in &half {
            let turns = 0.5 * x * self.turns();
            let waves: Vec<C64> = self.nodes.iter().map(|node| C64::cis(TAU * turns * node)).collect();
            for (u, b) in &weights {
                let sum: C64 = b.iter().zip(&waves).map(|(b, wave)| wave * b).sum();
                worst = worst.max((sum - C64::cis(TAU * turns * u)).norm_sqr());
            }
        }
        let gain = |(_, b): &(f64, Vec<f64>)| b.iter().map(|b| b.abs()).sum::<f64>();
        (worst.sqrt(), weights.iter().map(gain).fold(0.0, f64::max))
    }
}

/// Weights of every segment at the times of samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    times: usize,
    index: Vec<u32>,
    weights: Vec<C64>,
}

impl Table {
    /// Number of distinct times.
    pub fn times(&self) -> usize {
        self.times
    }

    /// The time of each sample, as an index.
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// b_l at the distinct times. Empty for a segment that does not exist.
    pub fn segment(&self, l: usize) -> &[C64] {
        self.weights.chunks_exact(self.times).nth(l).unwrap_or_default()
    }

    /// The real parts of b_l for every sample. For frequencies symmetric about 0 the imaginary parts are 0.
    pub fn real(&self, l: usize) -> impl Iterator<Item = f64> + '_ {
        let weights = self.segment(l);
        self.index.iter().map(move |&i| weights[i as usize].re)
    }
}

/// The distinct times, ascending.
pub(super) fn distinct(times: &[f64]) -> Vec<f64> {
    let mut distinct = times.to_vec();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup_by(|a, b| a == b);
    distinct
}

/// L with L Lᵀ equal to a symmetric matrix, which its ridge makes positive definite. Pivots that rounding
/// lowers below the ridge count as rounding.
fn cholesky(n: usize, matrix: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut factor = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| factor[i * n + k] * factor[j * n + k]).sum();
            let rest = matrix(i, j) - known;
            factor[i * n + j] = if i == j { rest.max(f64::EPSILON).sqrt() } else { rest / factor[j * n + j] };
        }
    }
    factor
}

/// x with L Lᵀ x = y.
fn solve(factor: &[f64], mut y: Vec<f64>) -> Vec<f64> {
    let n = y.len();
    for i in 0..n {
        let known: f64 = (0..i).map(|k| factor[i * n + k] * y[k]).sum();
        y[i] = (y[i] - known) / factor[i * n + i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| factor[k * n + i] * y[k]).sum();
        y[i] = (y[i] - known) / factor[i * n + i];
    }
    y
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The largest residual at random frequencies and times, as the formula has it.
    fn measured(of: &Interpolator, [low, high]: [f64; 2], [first, last]: [f64; 2]) -> (f64, f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let (mut worst, mut gain) = (0.0f64, 0.0f64);
        let nodes = of.times();
        for _ in 0..300 {
            let t = first + (last - first) * rng.random_range(0.0..=1.0);
            let b = of.weights(t);
            gain = gain.max(b.iter().map(|b| b.norm()).sum());
            for i in 0..20 {
                let f = match i {
                    0 => low,
                    1 => high,
                    _ => low + (high - low) * rng.random_range(0.0..=1.0),
                };
                let sum: C64 = b.iter().zip(&nodes).map(|(b, tau)| b * C64::cis(-TAU * f * tau)).sum();
                worst = worst.max((sum - C64::cis(-TAU * f * t)).norm());
            }
        }
        (worst, gain)
    }

    #[test]
    fn the_residual_is_what_is_stated_and_within_the_tolerance() {
        let ranges =
            [([-20.0, 130.0], [-1e-3, 7e-3]), ([400.0, 410.0], [0.0, 0.2]), ([-80.0, 80.0], [0.01, 0.06])];
        for (frequencies, times) in ranges {
            for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
                let found = Interpolator::new(frequencies, times, tolerance).unwrap();
                let (worst, gain) = measured(&found, frequencies, times);
                let what = format!("{frequencies:?} {times:?} {tolerance:e}: {} segments", found.segments());
                println!("{what}, {:.2e} (measured {worst:.2e}), gain {:.2}", found.error(), found.gain());
                assert!(found.error() <= tolerance && worst <= 1.02 * found.error(), "{what}: {worst:e}");
                assert!(worst > 0.5 * found.error(), "{what}: {worst:e} of {:e}", found.error());
                assert!(gain <= 1.02 * found.gain() && found.gain() <= MAX_GAIN, "{what}: {gain}");
            }
        }
    }

    #[test]
    fn segments_grow_with_range_duration_and_accuracy_alone() {
        let segments = |width: f64, duration: f64, tolerance: f64| {
            let first = 0.37 * duration;
            Interpolator::new([-3.0, width - 3.0], [first, first + duration], tolerance).unwrap().segments()
        };
        let mut before = 0;
        for turns in [0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0] {
            let now = segments(turns * 100.0, 0.01, 1e-4);
            assert!(now > before, "{turns} turns: {now} segments after {before}");
            assert_eq!(now, segments(turns * 10.0, 0.1, 1e-4));
            before = now;
        }
        for pair in [1e-2, 1e-3, 1e-4, 1e-5].windows(2) {
            assert!(segments(300.0, 0.01, pair[1]) > segments(300.0, 0.01, pair[0]));
        }
    }

    #[test]
    fn one_moment_or_one_frequency_takes_one_segment_exactly() {
        for (frequencies, times) in [([0.0, 0.0], [0.0, 0.1]), ([-50.0, 50.0], [0.01, 0.01])] {
            let found = Interpolator::new(frequencies, times, 1e-3).unwrap();
            assert_eq!((found.segments(), found.error()), (1, 0.0));
            assert_eq!(found.weights(times[1]), [C64::ONE]);
        }
        // A constant field is a demodulation.
        let found = Interpolator::new([70.0, 70.0], [0.0, 0.1], 1e-3).unwrap();
        let b = found.weights(0.02)[0] * C64::cis(-TAU * 70.0 * found.times()[0]);
        assert!((b - C64::cis(-TAU * 70.0 * 0.02)).norm() < 1e-12);
    }

    #[test]
    fn frequencies_about_zero_have_real_weights() {
        let found = Interpolator::new([-90.0, 90.0], [0.0, 0.02], 1e-4).unwrap();
        assert!(found.weights(0.0131).iter().all(|b| b.im == 0.0));
    }

    #[test]
    fn what_cannot_be_resolved_is_refused_with_its_size() {
        let error = Interpolator::new([-5000.0, 5000.0], [0.0, 0.1], 1e-3).unwrap_err().to_string();
        assert!(error.contains("128 time segments") && error.contains("1000 turns"), "{error}");
        assert!(Interpolator::new([-500.0, 500.0], [0.0, 0.12], 1e-4).is_err());
        assert!(Interpolator::new([f64::NAN, 0.0], [0.0, 0.1], 1e-3).is_err());
        assert!(Interpolator::new([0.0, 1.0], [0.1, 0.0], 1e-3).is_err());
        assert!(Interpolator::new([0.0, 1.0], [0.0, 0.1], 0.0).is_err());
    }
}
