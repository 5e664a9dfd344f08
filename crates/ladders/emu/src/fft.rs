//! Complex Fourier transforms in the layout of cuFFT's plans.

#![allow(unsafe_code)]

use num_complex::Complex;
use rayspin_core::{Error, Result};
use rayspin_device::cuda::FftPlan;
use rayspin_line_fft::{FftNum, Lines, plan_f32, plan_f64};

/// Number of elements from the first to the last one of the plan. `None` for an impossible plan.
pub(crate) fn extent(plan: &FftPlan) -> Option<usize> {
    let transform = plan.axes.iter().try_fold(1usize, |n, &a| n.checked_mul(a))?;
    let last = transform
        .checked_sub(1)?
        .checked_mul(plan.stride)?
        .checked_add(plan.batch.checked_sub(1)?.checked_mul(plan.distance)?)?;
    (matches!(plan.axes.len(), 1..=3) && plan.stride > 0).then(|| last.checked_add(1))?
}

/// x̂[k] = Σ x[j] e^{±2πi jk/n} along each axis of the plan, without scaling.
///
/// # Safety
/// [`extent`] elements are allocated at `from` and at `to`, which may be equal.
pub(crate) unsafe fn run(plan: &FftPlan, sign: i32, from: u64, to: u64) -> Result<()> {
    if plan.double {
        // SAFETY: as the caller promises.
        unsafe { transform::<f64>(plan, plan_f64, sign, from as usize as *const _, to as usize as *mut _) }
    } else {
        // SAFETY: as the caller promises.
        unsafe { transform::<f32>(plan, plan_f32, sign, from as usize as *const _, to as usize as *mut _) }
    }
}

unsafe fn transform<T: FftNum>(
    plan: &FftPlan,
    plan_lines: fn(&[usize]) -> Lines<T>,
    sign: i32,
    from: *const Complex<T>,
    to: *mut Complex<T>,
) -> Result<()> {
    if extent(plan).is_none() || !matches!(sign, -1 | 1) {
        return Err(Error::value(
            "Fourier transform",
            "one to three axes and a sign of ±1",
            format!("{plan:?}, {sign}"),
        ));
    }
    let lines = plan_lines(&plan.axes);
    let lines = if sign < 0 { lines.forward } else { lines.inverse };
    let size: usize = plan.axes.iter().product();
    let mut values = vec![Complex::new(T::zero(), T::zero()); size];
    let mut line = Vec::new();
    for batch in 0..plan.batch {
        let offset = |i: usize| batch * plan.distance + i * plan.stride;
        for (i, value) in values.iter_mut().enumerate() {
            // SAFETY: inside what the plan describes.
            *value = unsafe { *from.add(offset(i)) };
        }
        let mut inner = 1;
        for (&n, fft) in plan.axes.iter().zip(&lines).rev() {
            line.resize(n, Complex::new(T::zero(), T::zero()));
            for outer in 0..size / (n * inner) {
                for i in 0..inner {
                    let index = |k: usize| (outer * n + k) * inner + i;
                    for (k, value) in line.iter_mut().enumerate() {
                        *value = values[index(k)];
                    }
                    fft.process(&mut line);
                    for (k, value) in line.iter().enumerate() {
                        values[index(k)] = *value;
                    }
                }
            }
            inner *= n;
        }
        for (i, value) in values.iter().enumerate() {
            // SAFETY: inside what the plan describes.
            unsafe { *to.add(offset(i)) = *value };
        }
    }
    Ok(())
}
