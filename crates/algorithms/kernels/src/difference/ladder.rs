//! The differences as a ladder, in f32.

use std::fmt;

use rayspin_core::Result;
use rayspin_device::cuda::Argument;
use rayspin_tune::{About, Call, Case, Counts, Signature, Unit};

use super::variants::{Implementation, Operation, Problem, variants};
use super::{Axis, reference};
use crate::flat::{Data, Flat, Given, Out, Want, int, own};

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
        own: own_kernel,
    }
}

type LadderData = Data<Problem, Vec<Axis>>;

/// What declarations of a user's own kernels have in common.
macro_rules! own_declaration {
    ($result:literal, $kernel:literal) => {
        concat!(
            $result,
            "\
// An image has `axes` axes, 1 to 3, with n0, n1 and n2 elements. Element i = (i0, i1, i2) lies at
// (i0 * n1 + i1) * n2 + i2, and i + e_a is its neighbour along axis a. Where axes are missing, the last sizes
// are 1 and the last weights 0. The weights of the axes are w0, w1 and w2. Complex numbers are float2: real
// part x, imaginary part y.
extern \"C\" __global__ void ",
            $kernel,
            ", int axes, int n0, int n1, int n2, float w0, float w1, float w2)"
        )
    };
}

const OWN_FORWARD: &str = own_declaration!(
    "\
// For each axis a < axes, d[a * n0 * n1 * n2 + i] = w_a (x(i + e_a) - x(i)). It is 0 where i is the last
// element of axis a.
",
    "difference_forward(const float2* x, float2* d"
);
const OWN_ADJOINT: &str = own_declaration!(
    "\
// x(i) = the sum over the axes a < axes of w_a (d_a(i - e_a) - d_a(i)), with d_a(i) = d[a * n0 * n1 * n2 +
// i]. d_a(i - e_a) counts as 0 where i is the first element of axis a, d_a(i) where it is the last.
",
    "difference_adjoint(const float2* d, float2* x"
);
const OWN_NORMAL: &str = own_declaration!(
    "\
// y(i) = the sum over the axes a < axes of w_a^2 ((x(i) - x(i - e_a)) - (x(i + e_a) - x(i))). The first
// difference counts as 0 where i is the first element of axis a, the second where it is the last.
",
    "difference_normal(const float2* x, float2* y"
);

/// A kernel of a user's own.
fn own_kernel(problem: &Problem) -> Option<Signature<Problem, LadderData>> {
    let names = match problem.operation {
        Operation::Forward => ["difference_forward", OWN_FORWARD],
        Operation::Adjoint => ["difference_adjoint", OWN_ADJOINT],
        Operation::Normal => ["difference_normal", OWN_NORMAL],
    };
    own(names, |p| [size(p, 2), size(p, 1), size(p, 0)], called_by)
}

/// Elements along an axis; 1 where there is none.
fn size(problem: &Problem, axis: usize) -> usize {
    problem.shape.get(axis).copied().unwrap_or(1)
}

fn called_by(data: &mut LadderData, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, inputs, out, .. } = data;
    let device = out.device().clone();
    let shape = &problem.shape;
    let mut arguments = vec![inputs[0].cuda().into(), out.cuda_mut().into(), int(shape.len())?];
    for axis in 0..3 {
        arguments.push(int(size(problem, axis))?);
    }
    let weights = (0..3).map(|axis| if axis < shape.len() { weight(axis) as f32 } else { 0.0 });
    arguments.extend(weights.map(Argument::from));
    call(&device, &mut arguments)
}
