//! The map of coils as a ladder, in f32.

use std::fmt;

use rayspin_core::Result;
use rayspin_tune::{About, Call, Case, Counts, Unit};

use super::variants::{Implementation, Problem, variants};
use super::{Input, reference};
use crate::flat::{Data, Flat, Given, Out, Want, int, own};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { coils, kept, points, positions } = self;
        write!(f, "{coils} coils to {kept}, {points} samples, {positions} matrices")
    }
}

/// Every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation<f32>> {
    Flat {
        about: About {
            name: "coil-mixing",
            title: "Coils as sums of coils, sample by sample",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            let case = |name, summary, positions| Case {
                name,
                summary,
                problem: Problem { coils: 32, kept: 12, points: 1 << 18, positions },
            };
            vec![
                case("compress", "32 coils to 12, one matrix for all samples", 1),
                case("positions", "the same with a matrix for each of 256 positions", 256),
            ]
        },
        trials: || {
            let problem =
                |[coils, kept, points, positions]: [usize; 4]| Problem { coils, kept, points, positions };
            [[1, 1, 1, 1], [3, 2, 63, 1], [5, 4, 63, 7], [8, 8, 4099, 1], [4, 3, 6000, 60]]
                .map(problem)
                .to_vec()
        },
        sized: |_, size| match *size {
            [coils, kept, points, positions] if kept <= coils && points.is_multiple_of(positions) => {
                coils.checked_mul(points)?;
                Some(Problem { coils, kept, points, positions })
            }
            _ => None,
        },
        size: "COILSxKEPTxSAMPLESxMATRICES, no more kept than there are, samples a multiple of matrices",
        counts: |_| Counts::default(),
        rows: || variants().into(),
        given: |p, numbers| {
            let inputs =
                vec![numbers.complex(p.coils * p.kept * p.positions)?, numbers.complex(p.coils * p.points)?];
            Ok(Given { inputs, reals: vec![], out: Out::Fresh(p.kept * p.points), tools: () })
        },
        run: |implementation, cpu, p, arrays| {
            let [matrices, samples] = [arrays.inputs[0], arrays.inputs[1]];
            let input = Input { matrices, samples, coils: p.coils, positions: p.positions };
            implementation(cpu, &input, arrays.out.chunks_exact_mut(p.points).collect());
            Ok(())
        },
        want: |p, held| Want::all(reference::mix(&held.wide(0), &held.wide(1), p.coils, p.positions)),
        own: |_| own(["coil_mixing", OWN], |p| [p.points, p.kept, 1], called_by),
    }
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// out[i * points + s] = the sum over coils j < coils of
// matrices[(i * coils + j) * positions + s % positions] * samples[j * points + s], for i < kept and s <
// points, as complex numbers (float2: real part x, imaginary part y). `points` is a multiple of `positions`.
extern \"C\" __global__ void coil_mixing(const float2* matrices, const float2* samples, float2* out, int coils, int kept, int points, int positions)";

fn called_by(data: &mut Data<Problem, ()>, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, inputs, out, .. } = data;
    let (device, Problem { coils, kept, points, positions }) = (out.device().clone(), *problem);
    let arrays = [inputs[0].cuda().into(), inputs[1].cuda().into(), out.cuda_mut().into()];
    let sizes = [int(coils)?, int(kept)?, int(points)?, int(positions)?];
    call(&device, &mut [&arrays[..], &sizes].concat())
}
