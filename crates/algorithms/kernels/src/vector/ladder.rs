//! The operations as a ladder, in f32.

use std::fmt;

use rayspin_core::{C32, C64};
use rayspin_device::cpu::copied;
use rayspin_tune::{About, Case, Counts, Flow, Unit};

use super::reference;
use super::variants::{Implementation, Operation, Problem, variants};
use crate::flat::{Flat, Given, Out, Want};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.operation {
            Operation::Dot => "scalar product",
            Operation::NormSquared => "squared norm",
            Operation::Axpy => "axpy",
            Operation::Xpby => "xpby",
            Operation::Scale => "scaling",
            Operation::Multiply => "product",
            Operation::Weight => "real weights",
            Operation::CgUpdate => "update of conjugate gradients",
        };
        write!(f, "{name}, {} complex f32", self.len)
    }
}

/// Numbers of a case: more than a core's caches hold.
const LEN: usize = 1 << 22;

const OPERATIONS: [(&str, &str, Operation); 8] = [
    ("dot", "scalar product of two vectors", Operation::Dot),
    ("norm", "squared norm", Operation::NormSquared),
    ("axpy", "y ← αx + y", Operation::Axpy),
    ("xpby", "y ← x + βy", Operation::Xpby),
    ("scale", "x ← αx", Operation::Scale),
    ("multiply", "y ← d ⊙ x", Operation::Multiply),
    ("weight", "y ← w ⊙ x with real w", Operation::Weight),
    ("cg-update", "a step of conjugate gradients and the new norm, fused", Operation::CgUpdate),
];

/// α and β, of magnitude 1, so that repeated runs in place neither fade nor overflow.
const FACTOR: C32 = C32::new(0.6, 0.8);
const STEP: f32 = 0.6;

/// Every operation by every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation<f32>> {
    Flat {
        about: About {
            name: "vector",
            title: "Sums and updates of vectors that solvers do",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            let case =
                |(name, summary, operation)| Case { name, summary, problem: Problem { operation, len: LEN } };
            OPERATIONS.map(case).to_vec()
        },
        trials: || {
            let each = |len| OPERATIONS.map(|(.., operation)| Problem { operation, len });
            [1, 17, 70_001].into_iter().flat_map(each).collect()
        },
        sized: |problem, size| match *size {
            [len] => Some(Problem { len, ..*problem }),
            _ => None,
        },
        size: "LENGTH",
        counts: |problem| {
            let sums = matches!(problem.operation, Operation::Dot | Operation::NormSquared);
            Counts { flow: if sums { Flow::Read } else { Flow::Copy }, ..Counts::default() }
        },
        rows: || variants().into(),
        given: |problem, numbers| {
            let n = problem.len;
            let mut vector = || numbers.complex(n);
            let (inputs, out) = match problem.operation {
                // The product of random vectors is small beside its terms. The product of a vector with
                // itself is not.
                Operation::Dot => {
                    let x = vector()?;
                    (vec![copied("second vector", &x)?, x], Out::Fresh(1))
                }
                Operation::NormSquared => (vec![vector()?], Out::Fresh(1)),
                Operation::Axpy | Operation::Xpby => (vec![vector()?], Out::InPlace(vector()?)),
                Operation::Scale => (vec![], Out::InPlace(vector()?)),
                Operation::Multiply => (vec![vector()?, vector()?], Out::Fresh(n)),
                Operation::Weight => (vec![vector()?], Out::Fresh(n)),
                // x, r and ‖r‖.
                Operation::CgUpdate => {
                    let inputs = vec![vector()?, vector()?];
                    (inputs, Out::InPlace(numbers.complex(2 * n + 1)?))
                }
            };
            let weighted = problem.operation == Operation::Weight;
            Ok(Given { inputs, reals: numbers.reals(if weighted { n } else { 0 })?, out, tools: () })
        },
        run: |implementation, cpu, problem, arrays| {
            let (inputs, out) = (&arrays.inputs, arrays.out);
            let narrow = |sum: C64| C32::new(sum.re as f32, sum.im as f32);
            match problem.operation {
                Operation::Dot => out[0] = narrow((implementation.dot)(cpu, inputs[0], inputs[1])),
                Operation::NormSquared => {
                    out[0] = narrow((implementation.norm_squared)(cpu, inputs[0]).into())
                }
                Operation::Axpy => (implementation.axpy)(cpu, FACTOR, inputs[0], out),
                Operation::Xpby => (implementation.xpby)(cpu, inputs[0], FACTOR, out),
                Operation::Scale => (implementation.scale)(cpu, FACTOR, out),
                Operation::Multiply => (implementation.multiply)(cpu, inputs[0], inputs[1], out),
                Operation::Weight => (implementation.weight)(cpu, arrays.reals, inputs[0], out),
                Operation::CgUpdate => {
                    let (x, rest) = out.split_at_mut(problem.len);
                    let (r, norm) = rest.split_at_mut(problem.len);
                    let squared = (implementation.cg_update)(cpu, STEP, inputs[0], inputs[1], x, r);
                    norm[0] = narrow(squared.sqrt().into());
                }
            }
            Ok(())
        },
        want: |problem, held| {
            let factor = C64::new(FACTOR.re.into(), FACTOR.im.into());
            let (x, start) = (|| held.wide(0), || held.start());
            Want::all(match problem.operation {
                Operation::Dot => vec![reference::dot(&x(), &x())],
                Operation::NormSquared => vec![reference::norm_squared(&x()).into()],
                Operation::Axpy => reference::axpy(factor, &x(), &start()),
                Operation::Xpby => reference::xpby(&x(), factor, &start()),
                Operation::Scale => start().iter().map(|x| factor * x).collect(),
                Operation::Multiply => reference::multiply(&x(), &held.wide(1)),
                Operation::Weight => {
                    x().iter().zip(held.reals.iter()).map(|(x, &w)| x * f64::from(w)).collect()
                }
                Operation::CgUpdate => {
                    let start = start();
                    let (old, rest) = start.split_at(problem.len);
                    let residual = &rest[..problem.len];
                    let (x, r, squared) =
                        reference::cg_update(STEP.into(), &x(), &held.wide(1), old, residual);
                    [x, r, vec![squared.sqrt().into()]].concat()
                }
            })
        },
    }
}
