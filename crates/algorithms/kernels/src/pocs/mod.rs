//! The two projections of partial Fourier imaging: onto images of a known phase, onto k-space with the
//! measured samples.

mod cuda;
pub mod reference;

pub(crate) use cuda::builds;

use rayon::prelude::*;
use rayspin_core::{C32, Result, expect_shape};
use rayspin_device::{Array, Backend};

use crate::vector::expect_device;

/// x ← u Re(ū x) with u = p/|p|: the nearest image with the phase of p. 0 where p is 0.
///
/// Errors: different shapes or devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::pocs::project_phase;
///
/// let device = Device::cpu()?;
/// let phase = Array::from_vec(&device, &[2], vec![C32::new(0.0, 2.0), C32::ZERO])?;
/// let mut image = Array::from_vec(&device, &[2], vec![C32::new(3.0, 5.0); 2])?;
/// project_phase(&phase, &mut image)?;
/// assert_eq!(image.to_vec()?, [C32::new(0.0, 5.0), C32::ZERO]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn project_phase(phase: &Array<C32>, image: &mut Array<C32>) -> Result<()> {
    expect_shape("phase of an image", image.shape(), phase.shape())?;
    expect_device("phase of an image", image.device(), phase)?;
    match phase.device().backend() {
        Backend::Cpu(cpu) => {
            let phase = phase.cpu();
            cpu.run(|| {
                image.cpu_mut().par_iter_mut().zip(phase).with_min_len(4096).for_each(|(x, p)| {
                    let size = p.norm_sqr();
                    *x = if size > 0.0 { p * ((p.re * x.re + p.im * x.im) / size) } else { C32::ZERO };
                });
            });
            Ok(())
        }
        Backend::Cuda(cuda) => cuda::project_phase(cuda, phase, image),
    }
}

/// k ← d where the mask is not 0.
///
/// Errors: different shapes or devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::pocs::restore_samples;
///
/// let device = Device::cpu()?;
/// let mask = Array::from_vec(&device, &[3], vec![1.0f32, 0.0, 1.0])?;
/// let measured = Array::from_vec(&device, &[3], [1.0, 0.0, 3.0].map(C32::from).to_vec())?;
/// let mut kspace = Array::from_vec(&device, &[3], vec![C32::from(7.0); 3])?;
/// restore_samples(&mask, &measured, &mut kspace)?;
/// assert_eq!(kspace.to_vec()?, [1.0, 7.0, 3.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn restore_samples(mask: &Array<f32>, measured: &Array<C32>, kspace: &mut Array<C32>) -> Result<()> {
    expect_shape("measured k-space", kspace.shape(), measured.shape())?;
    expect_shape("mask of k-space", kspace.shape(), mask.shape())?;
    expect_device("measured k-space", kspace.device(), measured)?;
    expect_device("mask of k-space", kspace.device(), mask)?;
    match measured.device().backend() {
        Backend::Cpu(cpu) => {
            let samples = measured.cpu().par_iter().zip(mask.cpu());
            cpu.run(|| {
                kspace.cpu_mut().par_iter_mut().zip(samples).with_min_len(4096).for_each(|(k, (d, m))| {
                    if *m != 0.0 {
                        *k = *d;
                    }
                });
            });
            Ok(())
        }
        Backend::Cuda(cuda) => cuda::restore_samples(cuda, mask, measured, kspace),
    }
}
