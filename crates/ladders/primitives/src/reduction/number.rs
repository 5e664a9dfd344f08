//! What is reduced, and what of it is computed.

use rayspin_core::Result;
use rayspin_device::cpu::simd::Level;
use rayspin_device::{Array, Element};

use super::{cpu, reduce, reference};

/// Elements that are reduced: `i32`, `f32`, `f64`.
pub trait Number: sealed::Reduce {
    /// What their sum is: `i64` of `i32`, exact for fewer than 2³² elements, `f64` of others.
    type Sum: Element;
}

pub(super) mod sealed {
    use rayspin_core::Result;
    use rayspin_device::Array;

    pub trait Reduce: super::Plain {
        fn sum(x: &Array<Self>) -> Result<<Self as super::Number>::Sum>
        where
            Self: super::Number;
        fn min(x: &Array<Self>) -> Result<Self>;
        fn max(x: &Array<Self>) -> Result<Self>;
        fn mean_square_error(a: &Array<Self>, b: &Array<Self>) -> Result<f64>;
    }
}

/// A number with a name in CUDA C++.
pub trait Plain: Element {
    /// The name.
    const C: &'static str;
}

impl Plain for i32 {
    const C: &'static str = "int";
}
impl Plain for i64 {
    const C: &'static str = "long long";
}
impl Plain for f32 {
    const C: &'static str = "float";
}
impl Plain for f64 {
    const C: &'static str = "double";
}

/// One of Σa, min a, max a and (1/n) Σ(a − b)² of elements `T`.
pub(super) trait Operation<T: Plain>: Send + Sync + 'static {
    /// What is joined.
    type Acc: Plain;
    /// Its number in the CUDA source.
    const OP: u32;
    /// The number of the operation that joins what blocks have left.
    const REST: u32;
    /// Whether two arrays are read.
    const PAIRS: bool = false;

    /// What changes nothing that it is joined with.
    fn identity() -> Self::Acc;
    /// An element's share.
    fn share(a: T, b: T) -> Self::Acc;
    /// Two numbers to one.
    fn join(x: Self::Acc, y: Self::Acc) -> Self::Acc;
    /// The number of a whole piece, by vectors.
    fn vectors(level: Level, a: &[T], b: &[T]) -> Self::Acc;
    /// What becomes of the last number of n elements.
    fn finish(x: Self::Acc, _n: usize) -> Self::Acc {
        x
    }
    /// What the GPU multiplies the last number with.
    fn scale(_n: usize) -> f64 {
        1.0
    }
    /// How far a result is from the oracle's.
    fn error(result: Self::Acc, a: &[T], b: &[T]) -> f64;
}

pub(super) struct Sum;
pub(super) struct Min;
pub(super) struct Max;
pub(super) struct SquareError;

/// 0 or 1.
fn unequal(equal: bool) -> f64 {
    if equal { 0.0 } else { 1.0 }
}

macro_rules! number {
    ($t:ty, $sum:ty, $wrong:expr, $sum_of:path, $least:path, $greatest:path, $squares:path, $low:expr, $high:expr) => {
        impl Number for $t {
            type Sum = $sum;
        }

        impl sealed::Reduce for $t {
            fn sum(x: &Array<$t>) -> Result<$sum> {
                reduce::<$t, Sum>(x, None)
            }
            fn min(x: &Array<$t>) -> Result<$t> {
                reduce::<$t, Min>(x, None)
            }
            fn max(x: &Array<$t>) -> Result<$t> {
                reduce::<$t, Max>(x, None)
            }
            fn mean_square_error(a: &Array<$t>, b: &Array<$t>) -> Result<f64> {
                reduce::<$t, SquareError>(a, Some(b))
            }
        }

        impl Operation<$t> for Sum {
            type Acc = $sum;
            const OP: u32 = 0;
            const REST: u32 = 0;
            fn identity() -> $sum {
                0 as $sum
            }
            fn share(a: $t, _: $t) -> $sum {
                <$sum>::from(a)
            }
            fn join(x: $sum, y: $sum) -> $sum {
                x + y
            }
            fn vectors(level: Level, a: &[$t], _: &[$t]) -> $sum {
                $sum_of(level, a)
            }
            fn error(result: $sum, a: &[$t], _: &[$t]) -> f64 {
                let wrong: fn($sum, &[$t]) -> f64 = $wrong;
                wrong(result, a)
            }
        }

        impl Operation<$t> for Min {
            type Acc = $t;
            const OP: u32 = 1;
            const REST: u32 = 1;
            fn identity() -> $t {
                $high
            }
            fn share(a: $t, _: $t) -> $t {
                a
            }
            #[allow(clippy::eq_op, reason = "NaN")]
            fn join(x: $t, y: $t) -> $t {
                if y < x || y != y { y } else { x }
            }
            fn vectors(level: Level, a: &[$t], _: &[$t]) -> $t {
                $least(level, a)
            }
            #[allow(clippy::eq_op, reason = "NaN")]
            fn error(result: $t, a: &[$t], _: &[$t]) -> f64 {
                let want = reference::min(a).unwrap_or($high);
                unequal(result == want || (result != result && want != want))
            }
        }

        impl Operation<$t> for Max {
            type Acc = $t;
            const OP: u32 = 2;
            const REST: u32 = 2;
            fn identity() -> $t {
                $low
            }
            fn share(a: $t, _: $t) -> $t {
                a
            }
            #[allow(clippy::eq_op, reason = "NaN")]
            fn join(x: $t, y: $t) -> $t {
                if y > x || y != y { y } else { x }
            }
            fn vectors(level: Level, a: &[$t], _: &[$t]) -> $t {
                $greatest(level, a)
            }
            #[allow(clippy::eq_op, reason = "NaN")]
            fn error(result: $t, a: &[$t], _: &[$t]) -> f64 {
                let want = reference::max(a).unwrap_or($low);
                unequal(result == want || (result != result && want != want))
            }
        }

        impl Operation<$t> for SquareError {
            type Acc = f64;
            const OP: u32 = 3;
            const REST: u32 = 0;
            const PAIRS: bool = true;
            fn identity() -> f64 {
                0.0
            }
            fn share(a: $t, b: $t) -> f64 {
                (f64::from(a) - f64::from(b)).powi(2)
            }
            fn join(x: f64, y: f64) -> f64 {
                x + y
            }
            fn vectors(level: Level, a: &[$t], b: &[$t]) -> f64 {
                $squares(level, a, b)
            }
            fn finish(x: f64, n: usize) -> f64 {
                x * <Self as Operation<$t>>::scale(n)
            }
            fn scale(n: usize) -> f64 {
                1.0 / n as f64
            }
            fn error(result: f64, a: &[$t], b: &[$t]) -> f64 {
                let want = reference::mean_square_error(a, b);
                reference::relative(result, want, want)
            }
        }
    };
}

/// The error of a sum of floating-point numbers, relative to the sum of their magnitudes, as roundings of its
/// terms are.
macro_rules! of_magnitudes {
    () => {
        |result, a| {
            let (want, magnitude) = reference::sum(a);
            reference::relative(result, want, magnitude)
        }
    };
}

number!(
    i32,
    i64,
    |result, a| unequal(i128::from(result) == reference::sum_i32(a)),
    cpu::sum_i32,
    cpu::min_i32,
    cpu::max_i32,
    cpu::squares_i32,
    i32::MIN,
    i32::MAX
);
number!(
    f32,
    f64,
    of_magnitudes!(),
    cpu::sum_f32,
    cpu::min_float,
    cpu::max_float,
    cpu::squares_f32,
    f32::NEG_INFINITY,
    f32::INFINITY
);
number!(
    f64,
    f64,
    of_magnitudes!(),
    cpu::sum_f64,
    cpu::min_float,
    cpu::max_float,
    cpu::squares_f64,
    f64::NEG_INFINITY,
    f64::INFINITY
);
