//! Phases and shares as a ladder, in f32.

use std::fmt;

use rayspin_core::Result;
use rayspin_device::Array;
use rayspin_tune::{About, Call, Case, Counts, Signature, Unit};

use super::reference;
use super::variants::{Implementation, Operation, Problem, Weights, variants};
use crate::flat::{Data, Flat, Given, Out, Want, int, own};

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

/// The time of each sample, as an index of different times.
#[derive(Default)]
pub(crate) struct Times {
    index: Vec<u32>,
    /// The same on a GPU, once a kernel of a user's own was called.
    own: Option<Array<u32>>,
}

/// Both operations by every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation<f32>, Times> {
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
            let (mut reals, mut tools) = (vec![], Times::default());
            match problem.operation {
                Operation::Modulate => {
                    reals = numbers.reals(problem.len)?;
                    reals.iter_mut().for_each(|f| *f *= FIELD);
                }
                // Every readout goes through all times.
                Operation::Weigh => {
                    inputs.push(numbers.complex(TIMES)?);
                    tools.index = (0..problem.len).map(|m| (m % TIMES) as u32).collect();
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
                    let weights = Weights { by_time: inputs[1], index: &arrays.tools.index, conjugate: true };
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
                Operation::Weigh => reference::weigh(&held.wide(1), &held.tools.index, &x, true),
            })
        },
        own: own_kernel,
    }
}

type LadderData = Data<Problem, Times>;

/// Declarations of a user's own kernels.
const OWN_MODULATE: &str = "\
// y[b * voxels + v] = e^(+i 2 pi field[v] tau) x[b * voxels + v] for images b < images and v < voxels, as
// complex numbers (float2: real part x, imaginary part y). `field` is in Hz and tau in seconds. Their product
// is tens of turns: in float its fraction is not exact enough.
extern \"C\" __global__ void off_resonance_modulate(const float* field, double tau, const float2* x, float2* y, int images, int voxels)";
const OWN_WEIGH: &str = "\
// y[j * samples + m] = conj(by_time[index[m]]) * x[j * samples + m] for coils j < coils and m < samples, as
// complex numbers (float2: real part x, imaginary part y).
extern \"C\" __global__ void off_resonance_weigh(const float2* by_time, const unsigned* index, const float2* x, float2* y, int coils, int samples)";

/// A kernel of a user's own.
fn own_kernel(problem: &Problem) -> Option<Signature<Problem, LadderData>> {
    let names = match problem.operation {
        Operation::Modulate => ["off_resonance_modulate", OWN_MODULATE],
        Operation::Weigh => ["off_resonance_weigh", OWN_WEIGH],
    };
    own(names, |p| [p.len, p.batch, 1], called_by)
}

fn called_by(data: &mut LadderData, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, inputs, reals, out, tools: Times { index, own }, .. } = data;
    let device = out.device().clone();
    let sizes = [int(problem.batch)?, int(problem.len)?];
    let x = inputs[0].cuda().into();
    let factors = match problem.operation {
        Operation::Modulate => [reals.cuda().into(), TAU.into()],
        Operation::Weigh => {
            let index = match own {
                Some(index) => index,
                None => own.insert(Array::from_slice(&device, &[index.len()], index)?),
            };
            [inputs[1].cuda().into(), index.cuda().into()]
        }
    };
    call(&device, &mut [&factors[..], &[x, out.cuda_mut().into()], &sizes].concat())
}
