//! The operations as a ladder, in f32.

use std::fmt;

use rayspin_core::{C32, Result};
use rayspin_tune::{About, Call, Case, Counts, Flow, Signature, Unit};

use super::reference;
use super::variants::{Implementation, Operation, Problem, variants};
use crate::flat::{Data, Flat, Given, Out, Want, int, own};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.operation {
            Operation::Soft => "soft threshold",
            Operation::Clip => "projection",
            Operation::JointNorm => "joint norm",
        };
        write!(f, "{name}, {} components, {} complex f32 each", self.components, self.len)
    }
}

const THRESHOLD: f32 = 0.5;
const RADIUS: f32 = 0.75;

const OPERATIONS: [(&str, &str, Operation, usize); 3] = [
    ("soft", "soft threshold of coefficients", Operation::Soft, 1),
    ("clip", "projection of groups of three onto balls", Operation::Clip, 3),
    ("joint-norm", "sum of the magnitudes of groups of three", Operation::JointNorm, 3),
];

fn mean(sum: f64, len: usize) -> f64 {
    sum / (len as f64).sqrt()
}

/// Every operation by every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation<f32>> {
    Flat {
        about: About {
            name: "shrink",
            title: "Thresholds, projections and norms of sparsity",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            let case = |(name, summary, operation, components)| Case {
                name,
                summary,
                problem: Problem { operation, components, len: (1 << 22) / components },
            };
            OPERATIONS.map(case).to_vec()
        },
        trials: || {
            let each =
                |len| OPERATIONS.map(|(.., operation, components)| Problem { operation, components, len });
            [1, 17, 70_001].into_iter().flat_map(each).collect()
        },
        sized: |problem, size| match (problem.operation, size) {
            (Operation::Soft, &[len]) => Some(Problem { len, ..*problem }),
            (Operation::Clip | Operation::JointNorm, &[components, len]) => {
                Some(Problem { components, len, ..*problem })
            }
            _ => None,
        },
        size: "LENGTH of soft, else COMPONENTSxLENGTH",
        counts: |problem| {
            let sums = problem.operation == Operation::JointNorm;
            Counts { flow: if sums { Flow::Read } else { Flow::Copy }, ..Counts::default() }
        },
        rows: || variants().into(),
        given: |problem, numbers| {
            let elements = problem.components * problem.len;
            let (inputs, out) = match problem.operation {
                // The numbers, and their sum.
                Operation::Soft => (vec![], Out::InPlace(numbers.complex(elements + 1)?)),
                Operation::Clip => (vec![], Out::InPlace(numbers.complex(elements)?)),
                Operation::JointNorm => (vec![numbers.complex(elements)?], Out::Fresh(1)),
            };
            let weighted = problem.operation == Operation::Soft;
            let mut reals = numbers.reals(if weighted { problem.len } else { 0 })?;
            reals.iter_mut().for_each(|w| *w = w.abs());
            Ok(Given { inputs, reals, out, tools: () })
        },
        run: |implementation, cpu, problem, arrays| {
            let (len, out) = (problem.len, arrays.out);
            match problem.operation {
                Operation::Soft => {
                    let (x, sum) = out.split_at_mut(len);
                    let penalty = (implementation.soft)(cpu, THRESHOLD, arrays.reals, x);
                    sum[0] = C32::from(mean(penalty, len) as f32);
                }
                Operation::Clip => (implementation.clip)(cpu, RADIUS, len, out),
                Operation::JointNorm => {
                    out[0] = C32::from((implementation.joint_norm)(cpu, len, arrays.inputs[0]) as f32);
                }
            }
            Ok(())
        },
        want: |problem, held| {
            let len = problem.len;
            Want::all(match problem.operation {
                Operation::Soft => {
                    let weights: Vec<f64> = held.reals.iter().map(|&w| w.into()).collect();
                    let (mut x, sum) = reference::soft(THRESHOLD.into(), &weights, &held.start()[..len]);
                    x.push(mean(sum, len).into());
                    x
                }
                Operation::Clip => reference::clip(RADIUS.into(), len, &held.start()),
                Operation::JointNorm => vec![reference::joint_norm(len, &held.wide(0)).into()],
            })
        },
        own: own_kernel,
    }
}

type LadderData = Data<Problem, ()>;

/// Declarations of a user's own kernels.
const OWN_SOFT: &str = "\
// Soft threshold of complex numbers (float2: real part x, imaginary part y). For i < n, x[i] keeps its
// direction and gets the length max(0, |x[i]| - threshold * weights[i]); 0 stays 0. Then
// x[n] = (S / sqrt(n), 0), where S is the sum over i < n of weights[i] * |x[i]| with the new x. x has n + 1
// numbers. S needs all of them: a list of launches has several kernels.
extern \"C\" __global__ void shrink_soft(float threshold, const float* weights, float2* x, unsigned long long n)";
const OWN_CLIP: &str = "\
// Projection of groups of complex numbers onto balls. Group i < n is x[a * n + i] for a < components, and its
// length is the square root of the sum of |x[a * n + i]|^2. A group longer than `radius` is multiplied by
// radius / length; others stay as they are. Complex numbers are float2: real part x, imaginary part y.
extern \"C\" __global__ void shrink_clip(float radius, float2* x, int components, unsigned long long n)";
const OWN_JOINT_NORM: &str = "\
// sum[0] = (the sum over groups i < n of their lengths, 0). Group i is x[a * n + i] for a < components, and
// its length is the square root of the sum of |x[a * n + i]|^2. Complex numbers are float2: real part x,
// imaginary part y. sum[0] is 0 before. Its relative error may be 4.8e-7: add up in double, or sums of
// parts.
extern \"C\" __global__ void shrink_joint_norm(const float2* x, int components, unsigned long long n, float2* sum)";

/// A kernel of a user's own.
fn own_kernel(problem: &Problem) -> Option<Signature<Problem, LadderData>> {
    let names = match problem.operation {
        Operation::Soft => ["shrink_soft", OWN_SOFT],
        Operation::Clip => ["shrink_clip", OWN_CLIP],
        Operation::JointNorm => ["shrink_joint_norm", OWN_JOINT_NORM],
    };
    let extent = |p: &Problem| [if p.operation == Operation::JointNorm { 1 } else { p.len }, 1, 1];
    own(names, extent, called_by)
}

fn called_by(data: &mut LadderData, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, inputs, reals, out, .. } = data;
    let device = out.device().clone();
    let (components, n) = (int(problem.components)?, (problem.len as u64).into());
    if problem.operation == Operation::JointNorm {
        out.fill(C32::default())?;
    }
    let out = out.cuda_mut().into();
    match problem.operation {
        Operation::Soft => call(&device, &mut [THRESHOLD.into(), reals.cuda().into(), out, n]),
        Operation::Clip => call(&device, &mut [RADIUS.into(), out, components, n]),
        Operation::JointNorm => call(&device, &mut [inputs[0].cuda().into(), components, n, out]),
    }
}
