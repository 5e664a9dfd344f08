//! Problems and variants.

use std::fmt;
use std::sync::OnceLock;

use rayspin_core::{Error, Result};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::{About, Algorithm, Case, Config, Counts, Peak, Row, Signature, Unit, gpu};

use crate::random::Stream;

use super::{Estimate, MOST, cpu, cuda, reference, variants};

/// How many points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Points.
    pub points: u64,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} points", self.points)
    }
}

/// The stream and the counts.
pub struct Data {
    pub(super) points: u64,
    pub(super) stream: Stream,
    pub(super) sums: cuda::Sums,
    /// Whether the last run summed doubles.
    in_f64: bool,
    /// Whether the last run threw points of its own, not those of the stream.
    own_points: bool,
    /// A state for each thread of the widest launch, on a GPU.
    states: Array<[u32; 4]>,
    /// The right count, once a result was compared with it.
    want: OnceLock<u64>,
}

impl Data {
    pub(super) fn device(&self) -> Device {
        self.states.device().clone()
    }

    pub(super) fn on_cpu(&mut self, hits: u64) -> Result<()> {
        (self.in_f64, self.own_points) = (false, false);
        self.sums.integer.fill(hits)
    }

    pub(super) fn on_gpu(&mut self, name: &'static str, config: &Config) -> Result<()> {
        let device = self.device();
        let cuda = gpu(&device)?;
        let grid = cuda::Grid::of(config, cuda)?;
        let Self { points, stream, sums, states, .. } = self;
        self.own_points = false;
        self.in_f64 = matches!(name, "from_states" | "one_kernel");
        if name == "from_states" {
            return cuda::from_states(cuda, grid, *stream, *points, states, sums);
        }
        cuda::count(cuda, name, grid, *stream, *points, sums)
    }

    /// What the last run says of π.
    fn estimate(&self) -> Result<Estimate> {
        let hits = match self.in_f64 {
            true => self.sums.double.read()?.first().map_or(0, |&hits| hits as u64),
            false => self.sums.integer.read()?.first().copied().unwrap_or(0),
        };
        Ok(Estimate { points: self.points, hits })
    }
}

/// How many standard errors points of a user's own may be off: one run in a million is.
const MOST_SIGMAS: f64 = 5.0;

/// 0 for an estimate that is at most [`MOST_SIGMAS`] standard errors from π, else the relative error.
fn own_error(Estimate { points, hits }: Estimate) -> f64 {
    let p = std::f64::consts::FRAC_PI_4;
    let sigma = (p * (1.0 - p) / points as f64).sqrt();
    let off = (hits as f64 / points as f64 - p).abs();
    if hits <= points && off <= MOST_SIGMAS * sigma { 0.0 } else { off / p }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Pi;

impl Algorithm for Pi {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "pi",
            title: "Monte-Carlo estimate of pi",
            readme: include_str!("README.md"),
            unit: Unit::Items("points"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        vec![
            Case {
                name: "1e8",
                summary: "a hundred million points",
                problem: Problem { points: 100_000_000 },
            },
            Case {
                name: "lecture",
                summary: "the lecture's 56 x 256 threads of 100,000 points each in [-1, 1]², 1.43e9 points",
                problem: Problem { points: 56 * 256 * 100_000 },
            },
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [1, 2, 3, 63, 64, 10_007, 50_000].map(|points| Problem { points }).to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [points] if (1..=MOST).contains(&(points as u64)) => Ok(Problem { points: points as u64 }),
            _ => Err(Error::value("size of pi", format!("POINTS, 1 to {MOST}"), format!("{size:?}"))),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { peak: Peak::I32, items: problem.points as f64, ..Counts::default() }
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "pi",
            declaration: "\
// hits[0] += how many of `points` random points, uniform in the square [-1, 1] x [-1, 1], lie in the unit
// circle. hits[0] is 0 before. The random numbers are your own: #include <curand_kernel.h> has some.
// Right is what is within 5 standard errors of pi: |4 hits / points - pi| <= 5 * 1.642 / sqrt(points).
extern \"C\" __global__ void pi(unsigned long long points, unsigned long long* hits)",
            extent: |p| [usize::try_from(p.points).unwrap_or(usize::MAX), 1, 1],
            defines: |_| Vec::new(),
            call: |data, call| {
                let device = data.device();
                (data.in_f64, data.own_points) = (false, true);
                data.sums.integer.fill(0)?;
                call(&device, &mut [data.points.into(), data.sums.integer.cuda_mut().into()])
            },
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let states = match device.kind() {
            BackendKind::Cpu => 0,
            BackendKind::Cuda => 1024 * 32 * gpu(device)?.properties().multiprocessors as usize,
        };
        Ok(Data {
            points: problem.points,
            stream: Stream { seed, number: 1 },
            sums: cuda::Sums::new(device)?,
            in_f64: false,
            own_points: false,
            states: Array::zeros(device, &[states])?,
            want: OnceLock::new(),
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.sums.double.fill(f64::NAN)?;
        data.sums.integer.fill(u64::MAX)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        if data.own_points {
            return Ok(own_error(data.estimate()?));
        }
        // An integer that every point counts in: none can be left out. What is too long for the oracle is
        // counted by all cores, whose count the oracle confirms in small problems.
        let want = *data.want.get_or_init(|| match problem.points {
            points if points <= 1 << 20 => reference::hits(data.stream, points),
            points => cpu::threads(data.device().cpu_side(), data.stream, points),
        });
        let wrong = if data.in_f64 {
            data.sums.double.read()?.first() != Some(&(want as f64))
        } else {
            data.sums.integer.read()?.first() != Some(&want)
        };
        Ok(f64::from(u8::from(wrong)))
    }

    fn result(&self, _: &Problem, data: &Data) -> Result<Option<String>> {
        let estimate = data.estimate()?;
        let off = (estimate.pi() - std::f64::consts::PI).abs();
        Ok(Some(format!(
            "pi is {:.6} ± {:.6} by {} points, {off:.6} off",
            estimate.pi(),
            estimate.sigma(),
            estimate.points
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_ones_own_are_right_within_five_standard_errors() {
        let error = |points, hits| own_error(Estimate { points, hits });
        // A million points: p is 0.785398, a standard error 0.000411.
        assert_eq!(error(1_000_000, 785_398), 0.0);
        assert_eq!(error(1_000_000, 785_398 + 2_000), 0.0);
        assert!(error(1_000_000, 785_398 + 2_100) > 0.0);
        assert!(error(1_000_000, 785_398 - 2_100) > 0.0);
        assert!(error(1, 2) > 0.0, "more hits than points");
        assert_eq!([error(1, 0), error(1, 1)], [0.0; 2]);
    }
}
