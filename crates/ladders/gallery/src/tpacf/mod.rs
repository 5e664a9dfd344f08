//! Two-point angular correlation of points on the sky: how many pairs are an angle apart, against random
//! points.

mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{
    About, Algorithm, Call, Case, Counts, PublishedApplication, Row, Signature, Unit, input, tuned,
};

/// Bins of a factor of ten of angles.
const A_DECADE: usize = 5;
/// Edges of bins: 10^(k/5) arc minutes, k = 0 … 20.
pub const EDGES: usize = 4 * A_DECADE + 1;
/// Counts of a pair of sets: below the first edge, between edges, and from the last edge on.
pub const BINS: usize = EDGES + 1;
/// Points of a set, at most: so a count fits 32 bits.
pub const MOST_POINTS: usize = 65_535;
/// Sets beside the observed one, at most.
pub const MOST_SETS: usize = 10_000;

/// Edge k as the square of a chord of the unit sphere, 4 sin²(θ/2) with θ = 10^(k/5) arc minutes.
///
/// The angle between unit vectors a and b grows with |a − b|². In `f32` this keeps 6 digits at the smallest
/// angles, where
/// the dot product keeps none: at 1 arc minute 1 − a·b is 4 · 10⁻⁸, less than the spacing of `f32` below 1.
pub fn edge(k: usize) -> f64 {
    let minutes = 10f64.powf(k as f64 / A_DECADE as f64);
    4.0 * (0.5 * minutes / 60.0).to_radians().sin().powi(2)
}

fn edges() -> [f32; EDGES] {
    std::array::from_fn(|k| edge(k) as f32)
}

/// counts\[row, k\]: the pairs of a row of sets whose angle is in bin k.
///
/// `points` are unit vectors, `[1 + sets, 3, n]`: the observed set, then random ones. Row 0 counts pairs of
/// the observed set (DD), rows 1 … sets pairs of an observed and a random point (DR), the others pairs of one
/// random set (RR): `[1 + 2·sets, 22]`.
///
/// Errors: shapes, arrays on different devices, more than [`MOST_POINTS`] points or [`MOST_SETS`] sets.
pub fn pair_counts(points: &Array<f32>, counts: &mut Array<u32>) -> Result<()> {
    let &[sets, 3, n] = points.shape() else {
        return Err(Error::shape("points on the sky", &[1, 3, 1], points.shape()));
    };
    let problem = Problem::checked(n, sets.saturating_sub(1))?;
    expect_shape("points on the sky", &problem.shape(), points.shape())?;
    expect_shape("counts of pairs", &[problem.rows(), BINS], counts.shape())?;
    if !points.device().same_as(counts.device()) {
        return Err(Error::value("counts of pairs", "arrays on one device", counts.device().describe()));
    }
    match points.device().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, points.cpu(), counts.cpu_mut(), &problem);
            Ok(())
        }
        Backend::Cuda(_) => {
            let config = tuned(&Tpacf, &problem, &variants::gpu_bits(), points.device());
            let tables = cuda::Tables::new(points.device())?;
            cuda::bits(&config, &problem, points, &tables, counts)
        }
    }
}

/// The correlation of a bin, and the standard error that its counts alone give it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// (DD − 2 DR + RR) / RR of normalised counts (Landy and Szalay, "Bias and variance of angular
    /// correlation functions", 1993).
    pub w: f64,
    /// 1 / √(pairs of the observed set that uniform points would have here).
    pub error: f64,
}

/// w(θ) of the bins between edges, from the counts of [`pair_counts`]. NaN where the random sets have no
/// pair.
pub fn correlation(counts: &[u32], problem: &Problem) -> [Correlation; EDGES - 1] {
    let (n, sets) = (problem.points as f64, problem.sets as f64);
    std::array::from_fn(|bin| {
        let sum = |rows: std::ops::Range<usize>| {
            rows.map(|row| f64::from(counts[row * BINS + bin + 1])).sum::<f64>()
        };
        let pairs = n * (n - 1.0) / 2.0;
        let dd = sum(0..1) / pairs;
        let dr = sum(1..1 + problem.sets) / (sets * n * n);
        let rr = sum(1 + problem.sets..problem.rows()) / (sets * pairs);
        Correlation { w: (dd - 2.0 * dr + rr) / rr, error: 1.0 / (rr * pairs).sqrt() }
    })
}

/// How many points and random sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Points of a set.
    pub points: usize,
    /// Random sets beside the observed one.
    pub sets: usize,
}

impl Problem {
    fn checked(points: usize, sets: usize) -> Result<Self> {
        if !(1..=MOST_POINTS).contains(&points) {
            return Err(Error::value("points of a set", format!("1 to {MOST_POINTS}"), points));
        }
        if !(1..=MOST_SETS).contains(&sets) {
            return Err(Error::value("random sets", format!("1 to {MOST_SETS}"), sets));
        }
        Ok(Self { points, sets })
    }

    fn shape(&self) -> [usize; 3] {
        [1 + self.sets, 3, self.points]
    }

    fn rows(&self) -> usize {
        1 + 2 * self.sets
    }

    /// The sets whose pairs a row counts, and whether they are one set, whose pairs count once.
    fn sets_of(&self, row: usize) -> ([usize; 2], bool) {
        match row {
            0 => ([0, 0], true),
            _ if row <= self.sets => ([0, row], false),
            _ => ([row - self.sets; 2], true),
        }
    }

    fn pairs_of(&self, row: usize) -> usize {
        let n = self.points;
        if self.sets_of(row).1 { n * (n - 1) / 2 } else { n * n }
    }

    fn pairs(&self) -> f64 {
        let (n, sets) = (self.points as f64, self.sets as f64);
        sets * n * n + (sets + 1.0) * n * (n - 1.0) / 2.0
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} points, {} random sets", self.points, self.sets)
    }
}

/// Points and counts of one problem.
pub struct Data {
    problem: Problem,
    points: Array<f32>,
    counts: Array<u32>,
    /// Edges and tables, for kernels.
    tables: Option<cuda::Tables>,
    seed: u64,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Tpacf;

/// Rows of counts of more pairs than this in all are checked at random.
const WHOLE: usize = 1 << 28;

/// A point of the unit sphere, uniform where both numbers are uniform on \[0, 1).
pub fn on_sphere(u: f64, v: f64) -> [f64; 3] {
    let z = 2.0 * u - 1.0;
    let (r, phi) = ((1.0 - z * z).max(0.0).sqrt(), std::f64::consts::TAU * v);
    [r * phi.cos(), r * phi.sin(), z]
}

/// Sets of points, `[1 + sets, 3, n]`: uniform ones, but every other point of the observed set, where it is
/// `clustered`, is 0.3 to 3000 arc minutes from the point before it.
pub fn sky(problem: &Problem, clustered: bool, seed: u64) -> Vec<f32> {
    let n = problem.points;
    let unit = |index: usize, number: usize| {
        (input::bits(seed, (index * 4 + number) as u64) >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut sets = vec![0.0; (1 + problem.sets) * 3 * n];
    for index in 0..(1 + problem.sets) * n {
        let (set, i) = (index / n, index % n);
        let mut point = on_sphere(unit(index, 0), unit(index, 1));
        if clustered && set == 0 && i % 2 == 1 {
            let near = on_sphere(unit(index - 1, 0), unit(index - 1, 1));
            let far = (0.3 * 10f64.powf(4.0 * unit(index, 2)) / 60.0).to_radians();
            // The part of a random direction that is orthogonal to the neighbour.
            let along: f64 = near.iter().zip(point).map(|(a, b)| a * b).sum();
            let across = [0, 1, 2].map(|d| point[d] - along * near[d]);
            let length = across.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-9);
            point = [0, 1, 2].map(|d| far.cos() * near[d] + far.sin() * across[d] / length);
        }
        for (d, x) in point.into_iter().enumerate() {
            sets[(set * 3 + d) * n + i] = x as f32;
        }
    }
    sets
}

/// A kernel of a user's own.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, points, tables, counts, .. } = data;
    let device = points.device().clone();
    let edges = cuda::on_gpu(tables.as_ref(), points)?.edges.cuda().into();
    counts.fill(0)?;
    let sizes = [problem.points, problem.sets].map(|n| (n as i32).into());
    call(&device, &mut [points.cuda().into(), sizes[0], sizes[1], edges, counts.cuda_mut().into()])
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// Counts of pairs of points on the sky by their distance. points[(set * 3 + d) * n + i] is coordinate d of a
// unit vector, point i < n of a set. Set 0 is observed; sets 1 to `sets` are random. `counts` has 2 * sets +
// 1 rows of 22 numbers and is 0 before. Row 0 counts the pairs i < j of set 0. Row r from 1 to `sets` counts
// the pairs of any point of set 0 and any point of set r. Row sets + r counts the pairs i < j of set r.
// The pair (a, b) adds 1 to number k of its row, where k counts the edges with edges[e] <= |a - b|^2.
// edges[0] to edges[20] grow. Distances of points that are near need differences of coordinates: 2 - 2 a.b
// is not exact.
extern \"C\" __global__ void tpacf(const float* points, int n, int sets, const float* edges, unsigned* counts)";

impl Algorithm for Tpacf {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "tpacf",
            title: "Two-point angular correlation of points on the sky",
            readme: include_str!("README.md"),
            unit: Unit::Items("pairs"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, points, sets| Case { name, summary, problem: Problem { points, sets } };
        vec![
            case("small", "2048 points, 16 random sets", 2048, 16),
            case(
                "survey",
                "10391 points, 100 random sets: the large data set of the Parboil suite",
                10_391,
                100,
            ),
        ]
    }

    fn default_case(&self, kind: rayspin_device::BackendKind) -> Option<&'static str> {
        (kind == rayspin_device::BackendKind::Cuda).then_some("survey")
    }

    fn trials(&self) -> Vec<Problem> {
        [(1, 1), (2, 1), (33, 3), (257, 2), (1030, 1), (300, 2)]
            .map(|(points, sets)| Problem { points, sets })
            .to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        let &[points, sets] = size else {
            return Err(Error::value("size of tpacf", "POINTSxSETS", format!("{size:?}")));
        };
        let problem = Problem::checked(points, sets)?;
        voxels(&problem.shape())?;
        Ok(problem)
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { items: problem.pairs(), ..Counts::default() }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("survey", "small")];
        Some(PublishedApplication::of_lecture("TPACF", "shared memory capacity", 4096, [60.2, 21.6], cases))
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "tpacf",
            declaration: OWN,
            extent: |p| [p.points, p.rows(), 1],
            defines: |_| Vec::new(),
            call: called_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let points = Array::from_vec(device, &problem.shape(), sky(problem, true, seed))?;
        let tables = match device.backend() {
            Backend::Cpu(_) => None,
            Backend::Cuda(_) => Some(cuda::Tables::new(device)?),
        };
        let counts = Array::zeros(device, &[problem.rows(), BINS])?;
        Ok(Data { problem: *problem, points, counts, tables, seed })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.counts.fill(u32::MAX)
    }

    /// The share of wrong sums of counts up to an edge: those that a relative change of the edge by 10⁻⁶ does
    /// not explain.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let (points, counts) = (data.points.read()?, data.counts.read()?);
        let rows = problem.rows();
        let most = (WHOLE as f64 / problem.pairs() * rows as f64).max(4.0) as usize;
        let chosen: Vec<usize> = match rows <= most {
            true => (0..rows).collect(),
            // A row of each kind, and others at random.
            false => [0, 1, rows - 1]
                .into_iter()
                .chain(
                    (3..most)
                        .map(|turn| (input::bits(data.seed ^ 0x7ac, turn as u64) % rows as u64) as usize),
                )
                .collect(),
        };
        let cpu = data.points.device().cpu_side();
        let wrong: usize =
            chosen.iter().map(|&row| reference::wrong(cpu, &points, &counts, problem, row)).sum();
        Ok(wrong as f64 / (chosen.len() * BINS) as f64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn counted(device: &Device, problem: &Problem, points: Vec<f32>) -> Vec<u32> {
        let points = Array::from_vec(device, &problem.shape(), points).unwrap();
        let mut counts = Array::zeros(device, &[problem.rows(), BINS]).unwrap();
        pair_counts(&points, &mut counts).unwrap();
        counts.to_vec().unwrap()
    }

    #[test]
    fn uniform_points_are_not_correlated_and_clustered_points_are() {
        let problem = Problem { points: 1500, sets: 8 };
        for device in rayspin_emu::devices().unwrap() {
            let of =
                |clustered| correlation(&counted(&device, &problem, sky(&problem, clustered, 5)), &problem);
            let (uniform, clustered) = (of(false), of(true));
            // Uniform points have 23 pairs in bin 7 and 200000 in bin 18; a bin of the smaller angles has 37
            // pairs of clusters.
            for (bin, flat) in uniform.iter().enumerate().skip(7) {
                assert!(flat.w.abs() < 4.0 * flat.error, "bin {bin}: {flat:?}");
            }
            for (bin, high) in clustered.iter().enumerate().take(8).skip(5) {
                assert!(high.w > 4.0 * high.error, "bin {bin}: {high:?}");
            }
            assert!(uniform.iter().skip(16).all(|flat| flat.error < 0.01), "{uniform:?}");
        }
    }

    #[test]
    fn pairs_of_known_angles_are_in_their_bins() {
        // Point i is 1.01 · 10^(i/5) arc minutes from the pole, and each other point is the pole itself.
        let problem = Problem { points: 2, sets: 21 };
        for device in rayspin_emu::devices().unwrap() {
            let mut points = vec![0.0f32; 22 * 6];
            for (set, points) in points.chunks_exact_mut(6).enumerate() {
                let angle = (1.01 * 10f64.powf((set as f64 - 1.0) / 5.0) / 60.0).to_radians();
                (points[1], points[4], points[5]) = (angle.sin() as f32, 1.0, angle.cos() as f32);
            }
            let counts = counted(&device, &problem, points);
            for set in 1..=21 {
                let own = &counts[(problem.sets + set) * BINS..][..BINS];
                let only: Vec<u32> = (0..BINS).map(|bin| u32::from(bin == set)).collect();
                assert_eq!(own, only, "set {set}");
            }
        }
    }

    #[test]
    fn bad_shapes_are_refused() {
        for device in rayspin_emu::devices().unwrap() {
            let points = Array::zeros(&device, &[3, 3, 5]).unwrap();
            let none = Array::zeros(&device, &[1, 3, 5]).unwrap();
            let mut counts = Array::zeros(&device, &[5, BINS]).unwrap();
            pair_counts(&points, &mut counts).unwrap();
            assert!(pair_counts(&none, &mut counts).is_err());
            assert!(pair_counts(&points, &mut Array::zeros(&device, &[4, BINS]).unwrap()).is_err());
            assert!(pair_counts(&points.reshape(&[9, 5]).unwrap(), &mut counts).is_err());
        }
    }
}
