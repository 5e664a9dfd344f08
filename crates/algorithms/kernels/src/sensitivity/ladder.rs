//! The operations as a ladder, in f32.

use std::fmt;

use rayspin_core::{C32, C64, Result};
use rayspin_device::cuda::Argument;
use rayspin_tune::{About, Call, Case, Counts, Signature, Unit};

use super::reference;
use super::variants::{Implementation, Operation, Problem, variants};
use crate::flat::{Data, Flat, Given, Out, Want, int, own};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.operation {
            Operation::Expand => "expansion",
            Operation::Combine => "combination",
            Operation::SumOfSquares => "sum of squares",
        };
        write!(f, "{name}, {} coils, {} voxels", self.coils, self.voxels)
    }
}

const OPERATIONS: [(&str, &str, Operation); 3] = [
    ("combine", "coil images of a slice to one", Operation::Combine),
    ("expand", "an image to all coils", Operation::Expand),
    ("sum-of-squares", "the root of the sum of squares", Operation::SumOfSquares),
];

/// Every operation by every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation<f32>> {
    Flat {
        about: About {
            name: "sensitivity",
            title: "Coil sensitivities times images, and sums over coils",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            let case = |(name, summary, operation)| Case {
                name,
                summary,
                problem: Problem { operation, coils: 12, voxels: 512 * 512 },
            };
            OPERATIONS.map(case).to_vec()
        },
        trials: || {
            let each =
                |(coils, voxels)| OPERATIONS.map(|(.., operation)| Problem { operation, coils, voxels });
            [(1, 1), (3, 17), (8, 4099)].into_iter().flat_map(each).collect()
        },
        sized: |problem, size| match *size {
            [coils, voxels] => Some(Problem { coils, voxels, ..*problem }),
            _ => None,
        },
        size: "COILSxVOXELS",
        counts: |_| Counts::default(),
        rows: || variants().into(),
        given: |problem, numbers| {
            let (elements, voxels) = (problem.coils * problem.voxels, problem.voxels);
            let (inputs, out) = match problem.operation {
                Operation::Expand => (vec![numbers.complex(elements)?, numbers.complex(voxels)?], elements),
                Operation::Combine => (vec![numbers.complex(elements)?, numbers.complex(elements)?], voxels),
                // Two real numbers each.
                Operation::SumOfSquares => (vec![numbers.complex(elements)?], voxels.div_ceil(2)),
            };
            Ok(Given { inputs, reals: vec![], out: Out::Fresh(out), tools: () })
        },
        run: |implementation, cpu, problem, arrays| {
            let (inputs, out) = (&arrays.inputs, arrays.out);
            match problem.operation {
                Operation::Expand => (implementation.expand)(cpu, inputs[0], inputs[1], out),
                Operation::Combine => (implementation.combine)(cpu, inputs[0], inputs[1], out, false),
                Operation::SumOfSquares => {
                    let (roots, rest) = bytemuck::cast_slice_mut(out).split_at_mut(problem.voxels);
                    (implementation.sum_of_squares)(cpu, inputs[0], roots, true);
                    rest.fill(0.0);
                }
            }
            Ok(())
        },
        want: |problem, held| {
            Want::all(match problem.operation {
                Operation::Expand => reference::expand(&held.wide(0), &held.wide(1)),
                Operation::Combine => reference::combine(&held.wide(0), &held.wide(1), problem.voxels),
                Operation::SumOfSquares => {
                    let squares = reference::sum_of_squares(&held.wide(0), problem.voxels);
                    let pair =
                        |pair: &[f64]| C64::new(pair[0].sqrt(), pair.get(1).copied().unwrap_or(0.0).sqrt());
                    squares.chunks(2).map(pair).collect()
                }
            })
        },
        own: own_kernel,
    }
}

type LadderData = Data<Problem, ()>;

/// Declarations of a user's own kernels.
const OWN_EXPAND: &str = "\
// images[j * voxels + v] = maps[j * voxels + v] * image[v] for coils j < coils and v < voxels, as complex
// numbers (float2: real part x, imaginary part y).
extern \"C\" __global__ void sensitivity_expand(const float2* maps, const float2* image, float2* images, int coils, int voxels)";
const OWN_COMBINE: &str = "\
// image[v] = the sum over coils j < coils of conj(maps[j * voxels + v]) * images[j * voxels + v], for
// v < voxels, as complex numbers (float2: real part x, imaginary part y).
extern \"C\" __global__ void sensitivity_combine(const float2* maps, const float2* images, float2* image, int coils, int voxels)";
const OWN_SUM_OF_SQUARES: &str = "\
// roots[v] = the square root of the sum over coils j < coils of |images[j * voxels + v]|^2, for v < voxels.
// Complex numbers are float2: real part x, imaginary part y.
extern \"C\" __global__ void sensitivity_sum_of_squares(const float2* images, float* roots, int coils, int voxels)";

/// A kernel of a user's own.
fn own_kernel(problem: &Problem) -> Option<Signature<Problem, LadderData>> {
    let names = match problem.operation {
        Operation::Expand => ["sensitivity_expand", OWN_EXPAND],
        Operation::Combine => ["sensitivity_combine", OWN_COMBINE],
        Operation::SumOfSquares => ["sensitivity_sum_of_squares", OWN_SUM_OF_SQUARES],
    };
    own(names, |p| [p.voxels, 1, 1], called_by)
}

fn called_by(data: &mut LadderData, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, inputs, out, .. } = data;
    let device = out.device().clone();
    let real = problem.operation == Operation::SumOfSquares;
    if real && !problem.voxels.is_multiple_of(2) {
        // Two roots lie in a complex number: the last holds one.
        out.fill(C32::default())?;
    }
    let out: Argument<'_> = out.cuda_mut().into();
    let mut arguments: Vec<Argument<'_>> = inputs.iter().map(|input| input.cuda().into()).collect();
    arguments.push(if real { out.of_elements("float") } else { out });
    arguments.extend([int(problem.coils)?, int(problem.voxels)?]);
    call(&device, &mut arguments)
}
