use std::fmt::{Debug, Display, LowerExp};
use std::iter::Sum;

use bytemuck::Pod;
use num_complex::Complex;
use num_traits::{Float, FloatConst, FromPrimitive, NumAssign, Signed};

/// Single-precision complex number: the storage type of images and samples.
pub type C32 = Complex<f32>;
/// Double-precision complex number: the type of oracles.
pub type C64 = Complex<f64>;

/// `f32` or `f64`: the real numbers that transforms and solvers are generic over. Plain data, so that arrays
/// of them and of their complex numbers live on any device. No other type can implement it, so that unsafe
/// code may rely on their size and alignment.
pub trait Real:
    sealed::Sealed
    + Float
    + Pod
    + FloatConst
    + NumAssign
    + FromPrimitive
    + Signed
    + Sum
    + Send
    + Sync
    + Debug
    + Display
    + LowerExp
    + Default
    + 'static
{
    /// Unit round-off, the distance from 1 to the next number.
    const EPSILON: Self;
    /// `"f32"` or `"f64"`.
    const NAME: &'static str;

    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number in double precision (exact).
    fn to_f64(self) -> f64;
}

/// Whether no number is a NaN or an infinity.
///
/// ```
/// use rayspin_core::all_finite;
///
/// assert!(all_finite(&[0.0, -1e30]));
/// assert!(!all_finite(&[0.0, f32::NAN]));
/// ```
pub fn all_finite(values: &[f32]) -> bool {
    // Without an early end, so that it runs in vectors.
    values.iter().fold(true, |so_far, value| so_far & value.is_finite())
}

mod sealed {
    /// Keeps other types from being [`Real`](super::Real).
    ///
    /// Code outside can get every other supertrait from the bound of a generic type, but cannot name this
    /// one:
    ///
    /// ```compile_fail
    /// use num_traits::{Float, FloatConst, FromPrimitive, NumAssign, Signed};
    /// struct Mine<T>(T);
    /// impl<T> rayspin_core::Real for Mine<T>
    /// where
    ///     Mine<T>: Float + bytemuck::Pod + FloatConst + NumAssign + FromPrimitive + Signed + std::iter::Sum,
    ///     Mine<T>: Send + Sync + std::fmt::Debug + std::fmt::Display + std::fmt::LowerExp + Default + 'static,
    /// {
    ///     const EPSILON: Self = panic!();
    ///     const NAME: &'static str = "mine";
    ///     fn from_f64(_: f64) -> Self {
    ///         panic!()
    ///     }
    ///     fn to_f64(self) -> f64 {
    ///         0.0
    ///     }
    /// }
    /// ```
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Real for f32 {
    const EPSILON: Self = f32::EPSILON;
    const NAME: &'static str = "f32";

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    const EPSILON: Self = f64::EPSILON;
    const NAME: &'static str = "f64";

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}
