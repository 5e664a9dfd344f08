//! The operations as a ladder, in f32.

use std::fmt;

use rayspin_core::C32;
use rayspin_tune::{About, Case, Counts, Flow, Unit};

use super::reference;
use super::variants::{Implementation, Operation, Problem, variants};
use crate::flat::{Flat, Given, Out, Want};

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
    }
}
