//! Both directions as ladders, in f32.

use std::fmt;

use rayspin_core::{C32, Result};
use rayspin_device::Array;
use rayspin_tune::{About, Call, Case, Counts, Unit};

use super::variants::{Implementation, Problem, variants};
use super::{Family, Plan, reference};
use crate::flat::{Data, Flat, Given, Out, Want, int, own, zyx};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<_> = self.shape.iter().map(ToString::to_string).collect();
        let family = match self.family {
            Family::Haar => "Haar",
            Family::Daubechies2 => "Daubechies D4",
        };
        write!(f, "{family}, {} complex f32", shape.join(" x "))
    }
}

type Ladder = Flat<Problem, Implementation<f32>, Tools>;

/// Memory for a run.
#[derive(Default)]
pub(crate) struct Tools {
    work: Vec<C32>,
    /// Room for every second step, and the filters, once a kernel of a user's own was called.
    own: Option<(Array<C32>, [Array<f32>; 2])>,
}

/// Images to coefficients.
pub(crate) fn ladder() -> Ladder {
    Flat {
        about: About {
            name: "wavelet",
            title: "Wavelet transform of an image",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            cases([
                (&[512, 512], Family::Daubechies2),
                (&[128; 3], Family::Daubechies2),
                (&[512, 512], Family::Haar),
            ])
        },
        trials: || {
            let shapes: [&[usize]; 6] = [&[1], &[101], &[16, 40], &[33, 1], &[18, 5, 17], &[35, 44, 50]];
            let plans =
                |shape: &[usize]| [Family::Haar, Family::Daubechies2].map(|family| Plan::new(shape, family));
            shapes.into_iter().flat_map(plans).flatten().collect()
        },
        sized: |plan, size| Plan::new(size, plan.family).ok(),
        size: "one to three axes",
        counts: |_| Counts::default(),
        rows: || variants().into(),
        given: |plan, numbers| {
            let len = plan.shape.iter().product();
            Ok(Given {
                inputs: vec![numbers.complex(len)?],
                reals: vec![],
                out: Out::Fresh(len),
                tools: Tools::default(),
            })
        },
        run: |implementation, cpu, plan, arrays| {
            let work = &mut arrays.tools.work;
            (implementation.forward)(cpu, plan, &shift(plan), arrays.inputs[0], arrays.out, work);
            Ok(())
        },
        want: |plan, held| Want::all(reference::forward(plan, &shift(plan), &held.wide(0))),
        own: |_| own(["wavelet", OWN_FORWARD], extent, |data, call| called_by(data, false, call)),
    }
}

/// Coefficients to images.
pub(crate) fn inverse_ladder() -> Ladder {
    let forward = ladder();
    Flat {
        about: About {
            name: "wavelet-inverse",
            title: "Inverse wavelet transform to an image",
            ..forward.about
        },
        run: |implementation, cpu, plan, arrays| {
            let work = &mut arrays.tools.work;
            (implementation.inverse)(cpu, plan, &shift(plan), arrays.inputs[0], arrays.out, work);
            Ok(())
        },
        want: |plan, held| Want::all(reference::inverse(plan, &shift(plan), &held.wide(0))),
        own: |_| own(["wavelet_inverse", OWN_INVERSE], extent, |data, call| called_by(data, true, call)),
        ..forward
    }
}

fn cases(sizes: [(&[usize], Family); 3]) -> Vec<Case<Plan>> {
    let texts = [
        ("512x512", "a slice, filters of four taps"),
        ("128x128x128", "a volume"),
        ("512x512-haar", "a slice, filters of two taps"),
    ];
    let case = |((shape, family), (name, summary))| {
        Plan::new(shape, family).ok().map(|problem| Case { name, summary, problem })
    };
    sizes.into_iter().zip(texts).filter_map(case).collect()
}

/// Somewhere on the torus.
fn shift(plan: &Plan) -> Vec<usize> {
    plan.shape.iter().map(|n| n / 3 + 1).collect()
}

/// What declarations of a user's own kernels have in common.
macro_rules! own_declaration {
    ($what:literal, $kernel:literal) => {
        concat!(
            $what,
            "\
// Element (z, y, x) lies at (z * ny + y) * nx + x. The box is z < bz, y < by, x < bx. A line of it along
// `axis` (0 is z, 1 is y, 2 is x) has n = bz, by or bx elements, and half = n / 2, rounded down. Complex
// numbers are float2: real part x, imaginary part y.
extern \"C\" __global__ void ",
            $kernel,
            "(const float2* in, float2* out, int nz, int ny, int nx, int bz, int by, int bx, int axis, const float* low, const float* high, int taps, int sz, int sy, int sx)"
        )
    };
}

const OWN_FORWARD: &str = own_declaration!(
    "\
// One step of a wavelet transform: one level along one axis. Rayspin calls the kernel for all levels, the
// finest first, and for each axis that a level halves. `in` is what the step before wrote. With
// v(z, y, x) = in((z + sz) % nz, (y + sy) % ny, (x + sx) % nx), out is v outside of the box. For each line
// of the box and k < half, out(k) is the sum over j < taps of low[j] * v((2 * k + j) % (2 * half)), and
// out(half + k) the same with `high`. Where n is odd the line's last element is that of v.
",
    "wavelet"
);
const OWN_INVERSE: &str = own_declaration!(
    "\
// One step of an inverse wavelet transform: one level along one axis. Rayspin calls the kernel for all
// levels, the coarsest first, and for each axis that a level halved. `in` is what the step before wrote. v
// is `in` outside of the box. For each line of the box and i < 2 * half, v(i) is the sum of
// low[j] * in(k) + high[j] * in(half + k) over all k < half and j < taps with (2 * k + j) % (2 * half) = i.
// Where n is odd the line's last element is that of `in`. Then
// out((z + sz) % nz, (y + sy) % ny, (x + sx) % nx) = v(z, y, x).
",
    "wavelet_inverse"
);

fn extent(plan: &Plan) -> [usize; 3] {
    [plan.shape.iter().product(), 1, 1]
}

/// Calls a kernel of a user's own for every axis of every level.
fn called_by(data: &mut Data<Problem, Tools>, back: bool, call: &mut Call<'_>) -> Result<()> {
    let Data { problem: plan, inputs, out, tools, .. } = data;
    let device = out.device().clone();
    if tools.own.is_none() {
        let filter = |taps: Vec<f64>| {
            let taps = taps.into_iter().map(|tap| tap as f32).collect::<Vec<_>>();
            Array::from_vec(&device, &[taps.len()], taps)
        };
        let filters = [filter(plan.family.low())?, filter(plan.family.high())?];
        tools.own = Some((Array::zeros(&device, &[out.len()])?, filters));
    }
    let Some((room, [low, high])) = &mut tools.own else { return Ok(()) };
    let mut steps: Vec<_> = plan
        .levels
        .iter()
        .flat_map(|level| (0..level.size.len()).map(move |axis| (level, axis)))
        .filter(|(level, axis)| level.split[*axis])
        .collect();
    if back {
        steps.reverse();
    }
    if steps.is_empty() {
        return out.copy_from(&inputs[0]);
    }
    let shifted = if back { steps.len() - 1 } else { 0 };
    let split = &plan.levels[0].split;
    let shift = shift(plan).into_iter().zip(split).zip(&plan.shape);
    let shift: Vec<_> = shift.map(|((by, split), n)| if *split { by % n } else { 0 }).collect();
    for (step, (level, axis)) in steps.iter().enumerate() {
        // The last step writes the result.
        let [from, to] = match (steps.len() - step).is_multiple_of(2) {
            true => [out.cuda().into(), room.cuda_mut().into()],
            false => [room.cuda().into(), out.cuda_mut().into()],
        };
        let from = if step == 0 { inputs[0].cuda().into() } else { from };
        let by = |axis: usize| match (axis + shift.len()).checked_sub(3) {
            Some(axis) if step == shifted => int(shift[axis]),
            _ => int(0),
        };
        let box_axis = int(axis + 3 - plan.shape.len())?;
        let filters = [low.cuda().into(), high.cuda().into(), int(low.len())?];
        let arguments = [
            &[from, to][..],
            &zyx(&plan.shape)?,
            &zyx(&level.size)?,
            &[box_axis],
            &filters,
            &[by(0)?, by(1)?, by(2)?],
        ];
        call(&device, &mut arguments.concat())?;
    }
    Ok(())
}
