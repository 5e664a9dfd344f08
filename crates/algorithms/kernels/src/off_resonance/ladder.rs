//! Phases and shares as a ladder, in f32.

use std::fmt;

use rayspin_tune::{About, Case, Counts, Unit};

use super::reference;
use super::variants::{Implementation, Operation, Problem, Weights, variants};
use crate::flat::{Flat, Given, Out, Want};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, rows, numbers) = match self.operation {
            Operation::Modulate => ("phases", "images", "voxels"),
            Operation::Weigh => ("shares", "coils", "samples"),
        };
        write!(f, "{name}, {} {rows} of {} {numbers}", self.batch, self.len)
    }
}

/// Seconds, and hertz: tens of turns.
const TAU: f64 = 0.0371;
const FIELD: f32 = 256.0;
/// Different times of samples.
const TIMES: usize = 2048;

const OPERATIONS: [(&str, &str, Operation, [usize; 2]); 2] = [
    ("modulate", "phases of a field map at a moment, of twelve images", Operation::Modulate, [12, 512 * 512]),
    ("weigh", "a segment's share in the samples of twelve coils", Operation::Weigh, [12, 1 << 18]),
];

/// Both operations by every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation<f32>, Vec<u32>> {
    Flat {
        about: About {
            name: "off-resonance",
            title: "Phases of a field map and shares of time segments",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            let case = |(name, summary, operation, [batch, len]): (_, _, _, [usize; 2])| Case {
                name,
                summary,
                problem: Problem { operation, batch, len },
            };
            OPERATIONS.map(case).to_vec()
        },
        trials: || {
            let each = |(batch, len)| OPERATIONS.map(|(.., operation, _)| Problem { operation, batch, len });
            [(1, 1), (3, 17), (2, 4099), (1, 70_001)].into_iter().flat_map(each).collect()
        },
        sized: |problem, size| match *size {
            [batch, len] => Some(Problem { batch, len, ..*problem }),
            _ => None,
        },
        size: "IMAGESxVOXELS or COILSxSAMPLES",
        counts: |_| Counts::default(),
        rows: || variants().into(),
        given: |problem, numbers| {
            let mut inputs = vec![numbers.complex(problem.batch * problem.len)?];
            let (mut reals, mut tools) = (vec![], vec![]);
            match problem.operation {
                Operation::Modulate => {
                    reals = numbers.reals(problem.len)?;
                    reals.iter_mut().for_each(|f| *f *= FIELD);
                }
                // Every readout goes through all times.
                Operation::Weigh => {
                    inputs.push(numbers.complex(TIMES)?);
                    tools = (0..problem.len).map(|m| (m % TIMES) as u32).collect();
                }
            }
            Ok(Given { inputs, reals, out: Out::Fresh(problem.batch * problem.len), tools })
        },
        run: |implementation, cpu, problem, arrays| {
            let (inputs, out) = (&arrays.inputs, arrays.out);
            match problem.operation {
                Operation::Modulate => {
                    (implementation.modulate)(cpu, arrays.reals, TAU, inputs[0], out, false)
                }
                Operation::Weigh => {
                    let weights = Weights { by_time: inputs[1], index: arrays.tools, conjugate: true };
                    (implementation.weigh)(cpu, weights, inputs[0], out, false);
                }
            }
            Ok(())
        },
        want: |problem, held| {
            let x = held.wide(0);
            Want::all(match problem.operation {
                Operation::Modulate => {
                    let field: Vec<f64> = held.reals.iter().map(|&f| f.into()).collect();
                    reference::modulate(&field, TAU, &x)
                }
                Operation::Weigh => reference::weigh(&held.wide(1), held.tools, &x, true),
            })
        },
    }
}
