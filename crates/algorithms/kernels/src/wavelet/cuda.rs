#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Argument, Launch, Source, View, ViewMut};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::Plan;
use crate::cuda::{both, define};

static SOURCE: Source = Source { name: "wavelet", files: &[("wavelet.cu", include_str!("cuda/wavelet.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    both(&SOURCE)
}

/// Maximum number of filter coefficients in the kernel.
const TAPS: usize = 4;
/// Longest axis: the kernel counts elements and taps in 32 bits.
const LONGEST: usize = 1 << 30;
/// Threads along x and y.
const BLOCK: [u32; 2] = [32, 4];

/// The plan's shape, a level's box and its axes as [z, y, x].
fn padded<T: Copy>(list: &[T], with: T) -> [T; 3] {
    let mut out = [with; 3];
    out[3 - list.len()..].copy_from_slice(list);
    out
}

/// A box at the origin of an array: elements between planes and between rows.
fn strides([_, y, x]: [usize; 3]) -> [Argument<'static>; 2] {
    [Argument::from((y * x) as u64), Argument::from(x as u64)]
}

fn grid([z, y, x]: [usize; 3]) -> Launch {
    let [bx, by] = BLOCK;
    Launch {
        blocks: [(x as u32).div_ceil(bx), (y as u32).div_ceil(by), z as u32],
        threads: [bx, by, 1],
        shared: 0,
    }
}

/// What the launches of one transform share.
struct Levels<'a, R: Real> {
    cuda: &'a Cuda,
    plan: &'a Plan,
    filter: Array<R>,
    taps: i32,
    inverse: bool,
    /// The shift of the finest level.
    shift: [usize; 3],
}

impl<R: Real> Levels<'_, R> {
    /// Runs one level, from the box at the origin of an array of shape `from_shape` to the box at the origin
    /// of an array of shape `to_shape`.
    fn run(
        &self,
        index: usize,
        from: View<'_, Complex<R>>,
        from_shape: [usize; 3],
        to: ViewMut<'_, Complex<R>>,
        to_shape: [usize; 3],
    ) -> Result<()> {
        let level = &self.plan.levels()[index];
        let (size, split) = (padded(&level.size, 1), padded(&level.split, false));
        let shift = if index == 0 { self.shift } else { [0; 3] };
        let [from_plane, from_row] = strides(from_shape);
        let [to_plane, to_row] = strides(to_shape);
        let mut arguments = vec![
            from.into(),
            from_plane,
            from_row,
            to.into(),
            to_plane,
            to_row,
            self.filter.cuda().into(),
            self.taps.into(),
            i32::from(self.inverse).into(),
        ];
        arguments.extend(size.map(|n| Argument::from(n as i32)));
        arguments.extend(split.map(|s| Argument::from(i32::from(s))));
        arguments.extend(shift.map(|s| Argument::from(s as i32)));
        // SAFETY: a level's box lies inside both arrays, which have the shapes of the plan and of its second
        // level. Every element of the box is a sum of elements of the box, and the filter has `TAPS` places
        // for either half.
        unsafe { self.cuda.kernel(&SOURCE, &[define::<R>()], "level")?.launch(grid(size), &mut arguments) }
    }

    /// The box of a level from one array to another.
    fn copy(
        &self,
        index: usize,
        from: View<'_, Complex<R>>,
        from_shape: [usize; 3],
        to: ViewMut<'_, Complex<R>>,
        to_shape: [usize; 3],
    ) -> Result<()> {
        let size = padded(&self.plan.levels()[index].size, 1);
        let [from_plane, from_row] = strides(from_shape);
        let [to_plane, to_row] = strides(to_shape);
        let arguments = &mut [
            from.into(),
            from_plane,
            from_row,
            to.into(),
            to_plane,
            to_row,
            Argument::from(size[1] as i32),
            Argument::from(size[2] as i32),
        ];
        // SAFETY: the box lies inside both arrays.
        unsafe { self.cuda.kernel(&SOURCE, &[define::<R>()], "copy_box")?.launch(grid(size), arguments) }
    }
}

/// c ← W x(· + shift), or with `inverse` x(· + shift) ← Wᴴ c.
pub(super) fn transform<R: Real>(
    cuda: &Cuda,
    plan: &Plan,
    inverse: bool,
    shift: &[usize],
    from: &Array<Complex<R>>,
    to: &mut Array<Complex<R>>,
) -> Result<()> {
    let levels = plan.levels();
    if levels.is_empty() {
        return to.copy_from(from);
    }
    if let Some(&n) = plan.shape().iter().find(|&&n| n > LONGEST) {
        return Err(Error::value("axis of a wavelet transform on a GPU", format!("at most {LONGEST}"), n));
    }
    let shape = padded(plan.shape(), 1);
    let reduced: Vec<usize> = shift.iter().zip(plan.shape()).map(|(s, n)| s % n).collect();
    let (low, high) = (plan.family().low(), plan.family().high());
    let mut filter = vec![R::zero(); 2 * TAPS];
    for (j, (low, high)) in low.iter().zip(&high).enumerate() {
        filter[j] = <R as Real>::from_f64(*low);
        filter[TAPS + j] = <R as Real>::from_f64(*high);
    }
    let device = from.device().clone();
    let level = Levels {
        cuda,
        plan,
        filter: Array::from_slice(&device, &[2 * TAPS], &filter)?,
        taps: low.len() as i32,
        inverse,
        shift: padded(&reduced, 0),
    };
    // Levels after the finest go from the low-pass box of one array to another and back.
    let coarse = levels.get(1).map_or([0; 3], |level| padded(&level.size, 1));
    let mut work = Array::<Complex<R>>::zeros(&device, &coarse)?;
    if !inverse {
        level.run(0, from.cuda(), shape, to.cuda_mut(), shape)?;
        for index in 1..levels.len() {
            level.run(index, to.cuda(), shape, work.cuda_mut(), coarse)?;
            level.copy(index, work.cuda(), coarse, to.cuda_mut(), shape)?;
        }
        return Ok(());
    }
    if levels.len() == 1 {
        return level.run(0, from.cuda(), shape, to.cuda_mut(), shape);
    }
    // The coefficients are to stay as they are.
    let mut whole = from.try_clone()?;
    for index in (1..levels.len()).rev() {
        level.run(index, whole.cuda(), shape, work.cuda_mut(), coarse)?;
        level.copy(index, work.cuda(), coarse, whole.cuda_mut(), shape)?;
    }
    level.run(0, whole.cuda(), shape, to.cuda_mut(), shape)
}
