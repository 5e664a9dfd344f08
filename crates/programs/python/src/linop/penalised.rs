use rayspin::core::{Error, Result};
use rayspin::device::Device;
use rayspin::linop::Wavelet;
use rayspin::solve::{NonNegative, Proximal, WaveletSparsity};

use super::make::family;

/// Penalties that not every type of numbers has.
pub(crate) trait Penalised: Sized + rayspin::kernels::vector::Scalar {
    fn non_negative<'a>() -> Result<Box<dyn Proximal<Self> + 'a>> {
        Err(Error::value("penalty", "one of complex numbers", "nonnegative, which is of real ones"))
    }

    fn wavelet_sparsity<'a>(
        _: &Device,
        _: &[usize],
        _: &str,
        _: Option<usize>,
        _: Option<u64>,
    ) -> Result<Box<dyn Proximal<Self> + 'a>> {
        Err(Error::value("penalty", "one of real numbers", "wavelet, which is of complex ones"))
    }
}

macro_rules! real {
    ($type:ty) => {
        impl Penalised for $type {
            fn non_negative<'a>() -> Result<Box<dyn Proximal<Self> + 'a>> {
                Ok(Box::new(NonNegative))
            }
        }
    };
}
real!(f32);
real!(f64);

macro_rules! complex {
    ($type:ty) => {
        impl Penalised for num_complex::Complex<$type> {
            fn wavelet_sparsity<'a>(
                device: &Device,
                shape: &[usize],
                name: &str,
                levels: Option<usize>,
                seed: Option<u64>,
            ) -> Result<Box<dyn Proximal<Self> + 'a>> {
                let family = family(name).map_err(|_| Error::value("family", "haar or db2", name))?;
                let wavelet = Wavelet::<$type>::with_levels(shape, family, levels)?;
                Ok(Box::new(WaveletSparsity::new(device, wavelet, seed)?))
            }
        }
    };
}
complex!(f32);
complex!(f64);
