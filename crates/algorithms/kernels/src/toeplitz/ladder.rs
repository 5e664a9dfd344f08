//! The convolution as a ladder, in f32.

use std::fmt;

use rayspin_core::{C32, Result};
use rayspin_device::Array;
use rayspin_device::cpu::zeroed;
use rayspin_tune::input::filled;
use rayspin_tune::{About, Call, Case, Counts, Unit};

use super::reference;
use super::variants::{Apply, Implementation, Problem, VARIANTS};
use crate::flat::{Data, Flat, Given, Numbers, Out, Want, int, own, zyx};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matrix: Vec<_> = self.matrix.iter().map(ToString::to_string).collect();
        write!(f, "{} images of {} complex f32", self.batch, matrix.join(" x "))
    }
}

/// Voxels up to which all of them are compared, and how many else.
const ALL: usize = 1 << 10;
const COMPARED: u64 = 24;

/// The kernel on the doubled grid, and the plan of each variant.
pub(crate) struct Plans {
    q: Vec<C32>,
    plans: Vec<(Implementation, Apply)>,
    /// The kernel on a GPU, once a kernel of a user's own was called.
    own: Option<Array<C32>>,
}

fn problem(matrix: &[usize], batch: usize) -> Problem {
    Problem { matrix: matrix.to_vec(), batch }
}

/// Plans that were made before, by every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation, Plans> {
    Flat {
        about: About {
            name: "toeplitz",
            title: "Normal operator of a trajectory as a convolution",
            readme: include_str!("README.md"),
            unit: Unit::Flops,
        },
        cases: || {
            let case = |name, summary, problem| Case { name, summary, problem };
            vec![
                case("256x256x12", "a slice of twelve coils", problem(&[256, 256], 12)),
                case("128x128x128", "a volume", problem(&[128; 3], 1)),
                case("101x101x8", "sides that are prime", problem(&[101, 101], 8)),
            ]
        },
        trials: || {
            vec![
                problem(&[13], 2),
                problem(&[12, 9], 1),
                problem(&[1, 16], 2),
                problem(&[5, 8, 6], 1),
                problem(&[4, 1, 7], 2),
            ]
        },
        sized: |_, size| match size.split_last() {
            Some((&batch, matrix)) if (1..=3).contains(&matrix.len()) => Some(problem(matrix, batch)),
            _ => None,
        },
        size: "one to three axes and the number of images, as in 256x256x12",
        counts: |_| Counts::default(),
        rows: || VARIANTS.to_vec(),
        given: |p, numbers| {
            let images = numbers.complex(p.batch * p.matrix.iter().product::<usize>())?;
            let len = images.len();
            let q = hermitian(&p.matrix, numbers)?;
            let plan =
                |implementation: Implementation| Ok((implementation, implementation(numbers.cpu, p, &q)?));
            let plans = VARIANTS.iter().map(|row| plan(row.implementation)).collect::<Result<_>>()?;
            let tools = Plans { q, plans, own: None };
            Ok(Given { inputs: vec![images], reals: vec![], out: Out::Fresh(len), tools })
        },
        run: |implementation, cpu, _, arrays| {
            let mut plans = arrays.tools.plans.iter();
            match plans.find(|(planned, _)| std::ptr::fn_addr_eq(*planned, *implementation)) {
                Some((_, apply)) => apply(cpu, arrays.inputs[0], arrays.out),
                None => Ok(()),
            }
        },
        want: |p, held| {
            let (images, item) = (held.wide(0), p.matrix.iter().product::<usize>());
            let q = &held.tools.q;
            let value = |index: usize| {
                reference::convolved(q, &p.matrix, &images[index / item * item..][..item], index % item)
            };
            match images.len() {
                len @ 0..=ALL => Want::all((0..len).map(value).collect()),
                len => Want::some(len, COMPARED, value),
            }
        },
        own: |_| own(["toeplitz", OWN], |p| [p.batch * p.matrix.iter().product::<usize>(), 1, 1], called_by),
    }
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// out(b, z, y, x) = the sum over the voxels (zz, yy, xx) of image b of
// Q(z - zz, y - yy, x - xx) * images(b, zz, yy, xx), for b < count, as complex numbers (float2: real part x,
// imaginary part y). Voxel (b, z, y, x) lies at ((b * nz + z) * ny + y) * nx + x. Q(dz, dy, dx) lies at ((dz
// + nz) * 2 * ny + dy + ny) * 2 * nx + dx + nx of q, whose axes are twice as long. Axes that an image lacks
// have size 1. A relative error of 1e-6 is allowed.
extern \"C\" __global__ void toeplitz(const float2* q, const float2* images, float2* out, int count, int nz, int ny, int nx)";

fn called_by(data: &mut Data<Problem, Plans>, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, inputs, out, tools: Plans { q, own, .. }, .. } = data;
    let device = out.device().clone();
    let q = match own {
        Some(q) => q,
        None => {
            // An axis of one voxel that is not there: index 0 is never read, 1 is the difference 0.
            let before = ((1 << (3 - problem.matrix.len())) - 1) * q.len();
            let mut values = zeroed("Toeplitz kernel", before + q.len())?;
            values[before..].copy_from_slice(q);
            own.insert(Array::from_vec(&device, &[values.len()], values)?)
        }
    };
    let [nz, ny, nx] = zyx(&problem.matrix)?;
    let arrays = [q.cuda().into(), inputs[0].cuda().into(), out.cuda_mut().into()];
    call(&device, &mut [&arrays[..], &[int(problem.batch)?, nz, ny, nx]].concat())
}

/// Q(−d) = conj Q(d), random else: Q of some trajectory is such a kernel too, and takes long.
fn hermitian(matrix: &[usize], numbers: &mut Numbers<'_>) -> Result<Vec<C32>> {
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let random = numbers.complex(doubled.iter().product())?;
    let opposite = |flat: usize| {
        let (mut rest, mut to, mut stride) = (flat, 0, 1);
        for n in doubled.iter().rev() {
            to += (n - rest % n) % n * stride;
            rest /= n;
            stride *= n;
        }
        to
    };
    filled(numbers.cpu, "Toeplitz kernel", random.len(), |index| {
        (random[index] + random[opposite(index)].conj()) * 0.5
    })
}
