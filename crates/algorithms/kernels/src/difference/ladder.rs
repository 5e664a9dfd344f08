//! The differences as a ladder, in f32.

use std::fmt;

use rayspin_tune::{About, Case, Counts, Unit};

use super::variants::{Implementation, Operation, Problem, variants};
use super::{Axis, reference};
use crate::flat::{Flat, Given, Out, Want};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.operation {
            Operation::Forward => "differences",
            Operation::Adjoint => "adjoint",
            Operation::Normal => "normal operator",
        };
        let shape: Vec<_> = self.shape.iter().map(ToString::to_string).collect();
        write!(f, "{name}, {} complex f32", shape.join(" x "))
    }
}

const OPERATIONS: [Operation; 3] = [Operation::Normal, Operation::Forward, Operation::Adjoint];

fn weight(axis: usize) -> f64 {
    0.5 + axis as f64
}

/// Every operation by every variant, along all axes.
pub(crate) fn ladder() -> Flat<Problem, Implementation<f32>, Vec<Axis>> {
    Flat {
        about: About {
            name: "difference",
            title: "Finite differences of an image",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            let case = |name, summary, operation, shape: &[usize]| Case {
                name,
                summary,
                problem: Problem { operation, shape: shape.to_vec() },
            };
            vec![
                case("normal", "DᴴD of a volume", Operation::Normal, &[128; 3]),
                case("forward", "D of a volume", Operation::Forward, &[128; 3]),
                case("adjoint", "Dᴴ to a volume", Operation::Adjoint, &[128; 3]),
                case("slice", "DᴴD of a slice, which a cache holds", Operation::Normal, &[256; 2]),
            ]
        },
        trials: || {
            let shapes: [&[usize]; 5] = [&[1], &[29], &[13, 8], &[1, 40], &[6, 7, 10]];
            let each =
                |shape: &[usize]| OPERATIONS.map(|operation| Problem { operation, shape: shape.to_vec() });
            shapes.into_iter().flat_map(each).collect()
        },
        sized: |problem, size| {
            let operation = problem.operation;
            (1..=3).contains(&size.len()).then(|| Problem { operation, shape: size.to_vec() })
        },
        size: "one to three axes",
        counts: |_| Counts::default(),
        rows: || variants().into(),
        given: |problem, numbers| {
            let (len, shape) = (problem.len(), &problem.shape);
            let (from, to) = match problem.operation {
                Operation::Forward => (len, len * shape.len()),
                Operation::Adjoint => (len * shape.len(), len),
                Operation::Normal => (len, len),
            };
            let axis =
                |a: usize| Axis { size: shape[a], step: shape[a + 1..].iter().product(), weight: weight(a) };
            let tools = (0..shape.len()).map(axis).collect();
            Ok(Given { inputs: vec![numbers.complex(from)?], reals: vec![], out: Out::Fresh(to), tools })
        },
        run: |implementation, cpu, problem, arrays| {
            let apply = match problem.operation {
                Operation::Forward => implementation.forward,
                Operation::Adjoint => implementation.adjoint,
                Operation::Normal => implementation.normal,
            };
            apply(cpu, arrays.tools, arrays.inputs[0], arrays.out);
            Ok(())
        },
        want: |problem, held| {
            let axes: Vec<usize> = (0..problem.shape.len()).collect();
            let weights: Vec<f64> = axes.iter().map(|&axis| weight(axis)).collect();
            let x = held.wide(0);
            let forward = || reference::forward(&problem.shape, &axes, &weights, &x);
            Want::all(match problem.operation {
                Operation::Forward => forward(),
                Operation::Adjoint => reference::adjoint(&problem.shape, &axes, &weights, &x),
                Operation::Normal => reference::adjoint(&problem.shape, &axes, &weights, &forward()),
            })
        },
    }
}
