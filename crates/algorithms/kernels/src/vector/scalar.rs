use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::Element;
use rayspin_device::cuda::{Argument, Define, Source};
use rayspin_tune::Build;

use crate::cuda::define;

/// A number that vectors are made of: `f32`, `f64`, or a complex number of them. No other type can implement
/// it.
pub trait Scalar: sealed::Sealed + Element + Default + std::fmt::Display {
    /// The real numbers of its precision.
    type Real: Real;

    /// Whether it has an imaginary part.
    const COMPLEX: bool;

    /// Real and imaginary parts in turn; of real numbers themselves.
    fn flat(x: &[Self]) -> &[Self::Real];

    /// [`flat`](Self::flat), to write.
    fn flat_mut(x: &mut [Self]) -> &mut [Self::Real];

    /// The nearest number of this type; for a real type the real part.
    fn nearest(value: Complex<f64>) -> Self;

    /// The same number in double precision.
    fn widen(self) -> Complex<f64>;

    /// The product of two numbers, the first conjugated where `conjugate` holds.
    fn product(self, other: Self, conjugate: bool) -> Self;

    /// |x|².
    fn norm_sqr(self) -> Self::Real;

    /// The sum of two numbers.
    fn plus(self, other: Self) -> Self;

    /// The product with a real number.
    fn scaled(self, factor: Self::Real) -> Self;

    /// The number as an argument of a kernel.
    fn argument(self) -> Argument<'static>;

    /// A factor of vectors of this type. Errors: an imaginary part, for real vectors.
    fn factor(value: Complex<f64>) -> Result<Self> {
        if Self::COMPLEX || value.im == 0.0 {
            return Ok(Self::nearest(value));
        }
        Err(Error::value("factor of a real vector", "a real number", value))
    }

    /// Whether all its parts are finite.
    fn is_finite(self) -> bool {
        let wide = self.widen();
        wide.re.is_finite() && wide.im.is_finite()
    }
}

impl<R: Real> Scalar for Complex<R> {
    type Real = R;

    const COMPLEX: bool = true;

    fn flat(x: &[Self]) -> &[R] {
        bytemuck::cast_slice(x)
    }

    fn flat_mut(x: &mut [Self]) -> &mut [R] {
        bytemuck::cast_slice_mut(x)
    }

    fn nearest(value: Complex<f64>) -> Self {
        Self::new(<R as Real>::from_f64(value.re), <R as Real>::from_f64(value.im))
    }

    #[inline(always)]
    fn widen(self) -> Complex<f64> {
        Complex::new(self.re.to_f64(), self.im.to_f64())
    }

    #[inline(always)]
    fn product(self, other: Self, conjugate: bool) -> Self {
        let (a, b) = (self, other);
        match conjugate {
            false => Self::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re),
            true => Self::new(a.re * b.re + a.im * b.im, a.re * b.im - a.im * b.re),
        }
    }

    #[inline(always)]
    fn norm_sqr(self) -> R {
        self.re * self.re + self.im * self.im
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    fn scaled(self, factor: R) -> Self {
        Self::new(factor * self.re, factor * self.im)
    }

    fn argument(self) -> Argument<'static> {
        Argument::complex(self)
    }
}

macro_rules! real {
    ($real:ty) => {
        impl Scalar for $real {
            type Real = $real;

            const COMPLEX: bool = false;

            fn flat(x: &[Self]) -> &[$real] {
                x
            }

            fn flat_mut(x: &mut [Self]) -> &mut [$real] {
                x
            }

            fn nearest(value: Complex<f64>) -> Self {
                <$real as Real>::from_f64(value.re)
            }

            #[inline(always)]
            fn widen(self) -> Complex<f64> {
                Complex::new(Real::to_f64(self), 0.0)
            }

            #[inline(always)]
            fn product(self, other: Self, _: bool) -> Self {
                self * other
            }

            #[inline(always)]
            fn norm_sqr(self) -> $real {
                self * self
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn scaled(self, factor: $real) -> Self {
                factor * self
            }

            fn argument(self) -> Argument<'static> {
                Argument::real(self)
            }
        }
    };
}

real!(f32);
real!(f64);

mod sealed {
    use num_complex::Complex;

    /// Keeps other types from being [`Scalar`](super::Scalar).
    pub trait Sealed {}

    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl<R: rayspin_core::Real> Sealed for Complex<R> {}
}

/// The macros that set a program's `real`, and its `scalar` to `S`.
pub(crate) fn defines<S: Scalar>() -> Vec<Define> {
    let name = if S::COMPLEX { "cplx" } else { "real" };
    vec![define::<S::Real>(), ("scalar", name.to_owned())]
}

/// What kernels over real or complex numbers share.
pub(crate) const SCALAR: (&str, &str) = ("scalar.cuh", include_str!("scalar.cuh"));

/// The builds of a source over real and complex numbers in both precisions, without spills.
pub(crate) fn scalars(source: &'static Source) -> Vec<Build> {
    let build = |defines| Build { source, defines, spill_bytes: 0 };
    vec![
        build(defines::<Complex<f32>>()),
        build(defines::<Complex<f64>>()),
        build(defines::<f32>()),
        build(defines::<f64>()),
    ]
}
