//! Convolution of real rows with an even kernel: the filter of filtered back-projection.

mod cpu;
pub mod reference;

use std::sync::Arc;

use num_complex::Complex32;
use rayspin_core::{Error, Result};
use rayspin_device::{Array, Backend, Device};
use rustfft::{Fft, FftPlanner};

/// q(i) = Σ_j h(i − j) p(j) for every row p of an array `[…, row]`, with an even kernel h and zeros beyond the row, in f32.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::row_filter::RowFilter;
///
/// let device = Device::cpu()?;
/// // Differences to both neighbours.
/// let filter = RowFilter::new(&device, &[2.0, -1.0, 0.0, 0.0], |_| 1.0)?;
/// let mut rows = Array::from_vec(&device, &[1, 4], vec![0.0f32, 1.0, 0.0, 0.0])?;
/// filter.apply(&mut rows)?;
/// let wanted = [-1.0, 2.0, -1.0, 0.0];
/// assert!(rows.to_vec()?.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Clone)]
pub struct RowFilter {
    device: Device,
    len: usize,
    /// h's spectrum over the length of the transforms, the inverse's scale included.
    spectrum: Vec<f32>,
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
}

impl std::fmt::Debug for RowFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowFilter").field("len", &self.len).field("transform", &self.spectrum.len()).finish()
    }
}

impl RowFilter {
    /// A filter for rows of as many elements as `kernel` has: h(0), h(1), …. The spectrum of h is multiplied by `window(f)`, with f from
    /// 0 to 1 in units of the highest frequency, half a period per element.
    ///
    /// Errors: an empty kernel, numbers that are not finite, a device that is no CPU.
    pub fn new(device: &Device, kernel: &[f64], window: impl Fn(f64) -> f64) -> Result<Self> {
        if let Backend::Cuda(_) = device.backend() {
            return Err(Error::value("device of a row filter", "the CPU", "a GPU"));
        }
        let len = kernel.len();
        if len == 0 || len > 1 << 30 {
            return Err(Error::value("kernel of a row filter", "1 to 2^30 elements", len));
        }
        let size = (2 * len).next_power_of_two();
        let mut values = vec![num_complex::Complex64::default(); size];
        for (at, &h) in kernel.iter().enumerate() {
            values[at].re = h;
            values[(size - at) % size].re = h;
        }
        FftPlanner::<f64>::new().plan_fft_forward(size).process(&mut values);
        let spectrum = values.iter().enumerate().map(|(at, value)| {
            let frequency = at.min(size - at) as f64 / (size / 2) as f64;
            (value.re * window(frequency) / size as f64) as f32
        });
        let spectrum: Vec<f32> = spectrum.collect();
        if let Some((index, value)) = spectrum.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            return Err(Error::NotFinite {
                what: "spectrum of a row filter".into(),
                index,
                found: value.to_string(),
            });
        }
        let mut planner = FftPlanner::<f32>::new();
        let (forward, inverse) = (planner.plan_fft_forward(size), planner.plan_fft_inverse(size));
        Ok(Self { device: device.clone(), len, spectrum, forward, inverse })
    }

    /// Replaces every row of `rows` by its convolution.
    ///
    /// Errors: a last axis of another length, another device.
    pub fn apply(&self, rows: &mut Array<f32>) -> Result<()> {
        if rows.shape().last() != Some(&self.len) {
            let expected = format!("rows of {} elements", self.len);
            return Err(Error::value(
                "array for a row filter",
                expected,
                format!("shape {:?}", rows.shape()),
            ));
        }
        crate::vector::expect_device("row filter", &self.device, rows)?;
        cpu::apply(self, self.device.cpu_side(), rows.cpu_mut());
        Ok(())
    }

    /// Scratch memory of one thread for two rows.
    fn scratch(&self) -> (Vec<Complex32>, Vec<Complex32>) {
        let inner = self.forward.get_inplace_scratch_len().max(self.inverse.get_inplace_scratch_len());
        (vec![Complex32::default(); self.spectrum.len()], vec![Complex32::default(); inner])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayspin_tune::input::signed_unit;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_convolved(len in 1usize..70, rows in 1usize..6, seed in any::<u64>()) {
            let device = Device::cpu().unwrap();
            let kernel: Vec<f64> = (0..len).map(|i| f64::from(signed_unit(seed, i))).collect();
            let values: Vec<f32> = (0..rows * len).map(|i| signed_unit(seed ^ 1, i)).collect();
            let mut found = Array::from_slice(&device, &[rows, len], &values).unwrap();
            RowFilter::new(&device, &kernel, |_| 1.0).unwrap().apply(&mut found).unwrap();
            let wide: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
            for (found, wanted) in found.to_vec().unwrap().iter().zip(reference::convolve(&kernel, &wide)) {
                prop_assert!((f64::from(*found) - wanted).abs() < 1e-5 * (1.0 + (len as f64).sqrt()), "{found} for {wanted}");
            }
        }
    }

    #[test]
    fn windows_act_on_frequencies() {
        let device = Device::cpu().unwrap();
        let mut delta = vec![0.0; 64];
        delta[0] = 1.0;
        // A sampled cosine keeps the window's value at its frequency, far from the ends of the row.
        let filter = RowFilter::new(&device, &delta, |f| (1.0 - f).max(0.0)).unwrap();
        let wave = |i: usize| (std::f64::consts::PI * 0.25 * i as f64).cos() as f32;
        let mut rows = Array::from_vec(&device, &[64], (0..64).map(wave).collect()).unwrap();
        filter.apply(&mut rows).unwrap();
        let found = rows.to_vec().unwrap();
        assert!((24..40).all(|i| (found[i] - 0.75 * wave(i)).abs() < 0.01), "{found:?}");
    }

    #[test]
    fn what_cannot_be_filtered_is_refused() {
        let device = Device::cpu().unwrap();
        assert!(RowFilter::new(&device, &[], |_| 1.0).is_err());
        assert!(RowFilter::new(&device, &[f64::NAN], |_| 1.0).is_err());
        let filter = RowFilter::new(&device, &[1.0, 0.0], |_| 1.0).unwrap();
        assert!(filter.apply(&mut Array::zeros(&device, &[2, 3]).unwrap()).is_err());
        assert!(filter.apply(&mut Array::zeros(&device, &[0, 2]).unwrap()).is_ok());
    }
}
