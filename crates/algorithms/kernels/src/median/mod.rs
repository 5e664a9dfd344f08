//! Medians of windows that move over an image.

mod cpu;
pub mod reference;

use rayspin_core::{Error, Result, expect_len, voxels};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::dispatch;

/// The most elements of a window.
pub const LARGEST: usize = 1 << 12;

/// y(i) = median of x(i − r) … x(i + r) along the first axis of an array `[count, inner]`, with 2r + 1 =
/// `width`. The rows of `out`, of `inner` elements each, are those places from `first` on. Beyond the ends
/// the axis is mirrored, its first and last element twice. The order of numbers that are NaN is not defined.
///
/// The calling thread does all of it: callers take stretches, or whole arrays, in parallel. The first window
/// of a stretch costs as much as `width` medians.
///
/// Errors: an even width, or one above [`LARGEST`]; arrays of another size; places beyond the end.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_kernels::median::moving;
///
/// let device = Device::cpu()?;
/// let mut out = [0.0; 4];
/// moving(device.cpu_side(), &[1.0, 9.0, 2.0, 3.0, 4.0], [5, 1], 3, 1, &mut out)?;
/// assert_eq!(out, [2.0, 3.0, 3.0, 4.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn moving(
    cpu: &Cpu,
    values: &[f32],
    shape: [usize; 2],
    width: usize,
    first: usize,
    out: &mut [f32],
) -> Result<()> {
    if width.is_multiple_of(2) || width > LARGEST {
        let expected = format!("an odd number of at most {LARGEST} elements");
        return Err(Error::value("width of a median", expected, width));
    }
    let [count, inner] = shape;
    expect_len("values of a median", &shape, values.len())?;
    let rows = out.len().checked_div(inner).unwrap_or(0);
    if rows * inner != out.len() || first.checked_add(rows).is_none_or(|end| end > count) {
        let expected = format!("rows of {inner} up to place {count}");
        return Err(Error::value("medians", expected, format!("{} elements from {first} on", out.len())));
    }
    if !out.is_empty() {
        dispatch!(cpu.level(), simd => cpu::stretch(simd, values, shape, width, first, out));
    }
    Ok(())
}

/// The medians of boxes around each voxel of an image `[z, y, x]`, with `radius` voxels on each side along
/// each axis. Beyond the edges the image is mirrored. The order of numbers that are NaN is not defined.
///
/// Errors: boxes of more than [`LARGEST`] voxels; arrays of another size.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_kernels::median::boxed;
///
/// let device = Device::cpu()?;
/// let mut image = [1.0; 5 * 5];
/// image[12] = 100.0; // one hot pixel
/// let mut out = [0.0; 5 * 5];
/// boxed(device.cpu_side(), &image, [1, 5, 5], [0, 1, 1], &mut out)?;
/// assert_eq!(out, [1.0; 5 * 5]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn boxed(cpu: &Cpu, image: &[f32], shape: [usize; 3], radius: [usize; 3], out: &mut [f32]) -> Result<()> {
    let sizes = radius.map(|radius| radius.saturating_mul(2).saturating_add(1));
    if voxels(&sizes).map_or(true, |count| count > LARGEST) {
        let expected = format!("a box of at most {LARGEST} voxels");
        return Err(Error::value("radius of a median", expected, format!("{radius:?}")));
    }
    expect_len("image of a median", &shape, image.len())?;
    expect_len("medians", &shape, out.len())?;
    if !out.is_empty() {
        cpu::boxed(cpu, image, shape, radius, out);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayspin_device::Device;
    use rayspin_tune::input::signed_unit;

    use super::*;

    /// Numbers, some of them equal.
    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        (0..count).map(|at| (signed_unit(seed, at) * 20.0).round() * 0.25).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn moving_medians_are_those_of_sorted_windows(
            count in 1usize..70,
            inner in 1usize..40,
            reach in 0usize..20,
            seed in any::<u64>(),
        ) {
            let device = Device::cpu().unwrap();
            let values = numbers(count * inner, seed);
            let mut out = vec![f32::NAN; values.len()];
            let (first, second) = out.split_at_mut(count / 3 * inner);
            for (from, part) in [(0, first), (count / 3, second)] {
                moving(device.cpu_side(), &values, [count, inner], 2 * reach + 1, from, part).unwrap();
            }
            prop_assert_eq!(out, reference::boxed(&values, [1, count, inner], [0, reach, 0]));
        }

        #[test]
        fn medians_of_boxes_are_those_of_sorted_boxes(
            shape in prop::array::uniform3(1usize..12),
            wide in 1usize..40,
            radius in prop::array::uniform3(0usize..3),
            seed in any::<u64>(),
        ) {
            let device = Device::cpu().unwrap();
            let shape = [shape[0], shape[1], wide];
            let values = numbers(shape.iter().product(), seed);
            for radius in [radius, [0, 1, 1], [1, 0, 1]] {
                let mut out = vec![f32::NAN; values.len()];
                boxed(device.cpu_side(), &values, shape, radius, &mut out).unwrap();
                prop_assert_eq!(&out, &reference::boxed(&values, shape, radius), "{:?}", radius);
            }
        }
    }

    #[test]
    fn every_instruction_set_and_number_of_threads_agree() {
        let values = numbers(90 * 33, 5);
        for level in rayspin_device::cpu::simd::levels() {
            let device = Device::cpu_with_level(3, level).unwrap();
            let mut out = vec![f32::NAN; values.len()];
            moving(device.cpu_side(), &values, [90, 33], 7, 0, &mut out).unwrap();
            assert_eq!(out, reference::boxed(&values, [1, 90, 33], [0, 3, 0]));
            boxed(device.cpu_side(), &values, [1, 90, 33], [0, 2, 2], &mut out).unwrap();
            assert_eq!(out, reference::boxed(&values, [1, 90, 33], [0, 2, 2]));
        }
    }

    #[test]
    fn what_has_no_median_is_refused() {
        let device = Device::cpu().unwrap();
        let cpu = device.cpu_side();
        let mut out = [0.0; 4];
        assert!(moving(cpu, &[0.0; 4], [4, 1], 2, 0, &mut out).is_err());
        assert!(moving(cpu, &[0.0; 4], [4, 1], LARGEST + 1, 0, &mut out).is_err());
        assert!(moving(cpu, &[0.0; 3], [4, 1], 3, 0, &mut out).is_err());
        assert!(moving(cpu, &[0.0; 4], [4, 1], 3, 1, &mut out).is_err());
        assert!(moving(cpu, &[0.0; 4], [2, 2], 3, 0, &mut out[..3]).is_err());
        assert!(boxed(cpu, &[0.0; 4], [1, 2, 2], [usize::MAX, 0, 0], &mut out).is_err());
        assert!(boxed(cpu, &[0.0; 4], [1, 2, 2], [0, 9, 100], &mut out).is_ok());
        assert!(boxed(cpu, &[], [0, 2, 2], [1, 1, 1], &mut []).is_ok());
    }
}
