//! Random numbers from counters: number i of a stream is a function of i. So any number of threads can make
//! any part of a stream anywhere, and CPUs and GPUs give the same bits.
//!
//! Block b of a stream is Philox4x32-10 of the counter (b, stream) under the key `seed`: 128 bits, four
//! numbers of 32 bits or two of 64.

pub(crate) mod cpu;
pub(crate) mod cuda;
pub mod draw;
mod ladder;
pub mod poisson;
pub mod reference;
mod variants;
mod ziggurat;

use rayspin_core::{Error, Real, Result};
use rayspin_device::{Array, Backend, Cuda, Element};
use rayspin_tune::tuned;

use draw::{Bits, Draw, Shape};

pub use cuda::{PHILOX, keys};
pub use draw::philox;
pub use ladder::{Data, Kind, Problem, RandomNumbers};

/// A stream of random numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The generator's key.
    pub seed: u64,
    /// Which of the seed's 2⁶⁴ streams.
    pub number: u64,
}

/// `f32` or `f64`.
pub trait Number: Real + Element + sealed::Sealed {}
impl<T: Real + Element + sealed::Sealed> Number for T {}

mod sealed {
    use super::draw::Singles;
    use super::{Draw, Shape};

    pub trait Sealed: Sized {
        type Law: Draw<Out = Self>;
        fn law(shape: Shape<Self>) -> Self::Law;
    }

    impl Sealed for f32 {
        type Law = Singles;
        fn law(shape: Shape<f32>) -> Singles {
            Singles::new(shape)
        }
    }

    impl Sealed for f64 {
        type Law = Shape<f64>;
        fn law(shape: Shape<f64>) -> Shape<f64> {
            shape
        }
    }
}

/// 32 random bits each: the words of the stream.
///
/// Errors: errors of the device.
pub fn fill_bits(stream: Stream, out: &mut Array<u32>) -> Result<()> {
    match out.device().clone().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, &Bits, stream, out.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let none = Array::zeros(out.device(), &[1])?;
            let way = way(cuda, out, Kind::Bits)?;
            cuda::integers(cuda, way, stream, None, &none, out)
        }
    }
}

/// ⌊2ᵖ u⌋/2ᵖ on \[0, 1), p = 24 for `f32` and 53 for `f64`.
///
/// Errors: errors of the device.
pub fn fill_uniform<T: Number>(stream: Stream, out: &mut Array<T>) -> Result<()> {
    fill(stream, Shape::Uniform, out)
}

/// mean + deviation · z, z normal.
///
/// For `f32`, z comes from √(−2 ln u) (cos 2πv, sin 2πv) (Box and Muller, 1958), and |z| is at most 6.8. For
/// `f64`, z comes from a ziggurat of 2048 layers (Marsaglia and Tsang, 2000), and |z| is at most 13.
///
/// Errors: a mean or deviation that is not finite, a negative deviation, errors of the device.
pub fn fill_normal<T: Number>(stream: Stream, mean: T, deviation: T, out: &mut Array<T>) -> Result<()> {
    check("normal", mean, deviation)?;
    fill(stream, Shape::Normal(mean, deviation), out)
}

/// e^(location + scale · z), z normal.
///
/// Errors: a location or scale that is not finite, a negative scale, errors of the device.
pub fn fill_log_normal<T: Number>(stream: Stream, location: T, scale: T, out: &mut Array<T>) -> Result<()> {
    check("log-normal", location, scale)?;
    fill(stream, Shape::LogNormal(location, scale), out)
}

/// Numbers of events with mean `lambda`, P(k) = λᵏ e^(−λ) / k!, of 64 bits each by an alias table (Walker,
/// 1977); 32 bits decide but for once in millions.
///
/// Errors: λ that is not a number from 0 to [`poisson::MOST`], errors of the device.
pub fn fill_poisson(stream: Stream, lambda: f64, out: &mut Array<u32>) -> Result<()> {
    let table = poisson::Table::new(lambda)?;
    match out.device().clone().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, &table, stream, out.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let columns = Array::from_slice(out.device(), &[table.columns.len()], &table.columns)?;
            let way = way(cuda, out, Kind::Poisson(lambda))?;
            cuda::integers(cuda, way, stream, Some(&table), &columns, out)
        }
    }
}

fn check<T: Number>(law: &str, location: T, scale: T) -> Result<()> {
    let (location, scale) = (Real::to_f64(location), Real::to_f64(scale));
    if location.is_finite() && scale.is_finite() && scale >= 0.0 {
        return Ok(());
    }
    Err(Error::value(
        format!("parameters of {law} numbers"),
        "a finite location and a finite scale of at least 0",
        format!("{location} and {scale}"),
    ))
}

fn way<T: Element>(cuda: &Cuda, out: &Array<T>, kind: Kind) -> Result<cuda::Way<'static>> {
    let problem = Problem { numbers: out.len(), kind };
    let config = tuned(&RandomNumbers, &problem, &variants::gpu_grid(kind), out.device());
    let blocks = config.get("blocks")?.saturating_mul(cuda.properties().multiprocessors);
    Ok(cuda::Way::Fill { threads: config.get("threads")?, blocks: Some(blocks) })
}

fn fill<T: Number>(stream: Stream, shape: Shape<T>, out: &mut Array<T>) -> Result<()> {
    match out.device().clone().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, &T::law(shape), stream, out.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            // What a kind is tuned for is its form, whatever the parameters.
            let kind = match (shape, size_of::<T>()) {
                (Shape::Uniform, 4) => Kind::UniformF32,
                (Shape::Uniform, _) => Kind::UniformF64,
                (Shape::Normal(..), 4) => Kind::NormalF32,
                (Shape::Normal(..), _) => Kind::NormalF64,
                (Shape::LogNormal(..), 4) => Kind::LogNormalF32,
                (Shape::LogNormal(..), _) => Kind::LogNormalF64,
            };
            let way = way(cuda, out, kind)?;
            cuda::reals(cuda, way, stream, shape, out)
        }
    }
}
