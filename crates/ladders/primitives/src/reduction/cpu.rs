//! One number of a piece by vectors, and pieces by all cores.

use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Level, Simd, SimdReal, dispatch};

use super::number::{Operation, Plain};

/// Elements a task without tuning: 128 KB of `f32`, within a core's second-level cache, and hundreds of tasks
/// of what is worth them.
pub(super) const PIECE: usize = 1 << 15;
/// Elements of the smallest task that tuning tries.
pub(super) const SMALLEST_PIECE: usize = 1 << 13;

/// Vectors under way at once: an addition takes four cycles, and two begin in each cycle.
const WIDE: usize = 8;

pub(super) fn scalar<T: Plain, O: Operation<T>>(a: &[T], b: &[T]) -> O::Acc {
    let joined = a.iter().zip(b).fold(O::identity(), |x, (&a, &b)| O::join(x, O::share(a, b)));
    O::finish(joined, a.len())
}

pub(super) fn simd<T: Plain, O: Operation<T>>(level: Level, a: &[T], b: &[T]) -> O::Acc {
    O::finish(O::vectors(level, a, b), a.len())
}

/// Pieces of `piece` elements by all threads, joined in their order: the bits do not depend on the number of
/// threads.
pub(super) fn threads<T: Plain, O: Operation<T>>(
    cpu: &Cpu,
    piece: usize,
    a: &[T],
    b: &[T],
    parts: &mut [O::Acc],
) -> O::Acc {
    let level = cpu.level();
    let piece = piece.max(1);
    let count = a.len().div_ceil(piece).min(parts.len());
    let parts = &mut parts[..count];
    cpu.run(|| {
        (a.par_chunks(piece), b.par_chunks(piece), &mut *parts)
            .into_par_iter()
            .for_each(|(a, b, part)| *part = O::vectors(level, a, b));
    });
    O::finish(parts.iter().fold(O::identity(), |x, &y| O::join(x, y)), a.len())
}

/// Σ of f64 vectors that `load` makes of as many elements as an f32 or f64 vector has, and of scalars behind
/// them.
macro_rules! float_sum {
    ($name:ident, $t:ty, $vector:ident, |$simd:ident, $from:ident| $load:expr, $($array:ident),+) => {
        pub(super) fn $name(level: Level, $($array: &[$t]),+) -> f64 {
            #[inline(always)]
            fn body<S: Simd>($simd: S, $($array: &[$t]),+) -> f64 {
                let lanes = S::$vector::LEN;
                let n = [$($array.len()),+].into_iter().min().unwrap_or(0);
                let whole = n / (WIDE * lanes) * (WIDE * lanes);
                let mut sums = [(S::f64s::splat($simd, 0.0), S::f64s::splat($simd, 0.0)); WIDE];
                let mut start = 0;
                while start < whole {
                    for sum in &mut sums {
                        let $from = |x: &[$t]| S::$vector::from_slice($simd, &x[start..start + lanes]);
                        let (low, high) = $load;
                        sum.0 += low;
                        sum.1 += high;
                        start += lanes;
                    }
                }
                let mut total = 0.0;
                for sum in sums {
                    total += (sum.0 + sum.1).reduce_sum();
                }
                for i in whole..n {
                    total += share!($($array[i]),+);
                }
                total
            }
            dispatch!(level, simd => body(simd, $($array),+))
        }
    };
}
macro_rules! share {
    ($a:expr) => {
        f64::from($a)
    };
    ($a:expr, $b:expr) => {
        (f64::from($a) - f64::from($b)).powi(2)
    };
}

float_sum!(sum_f32, f32, f32s, |simd, from| from(a).widen(), a);
float_sum!(sum_f64, f64, f64s, |simd, from| (from(a), S::f64s::splat(simd, 0.0)), a);
float_sum!(
    squares_f32,
    f32,
    f32s,
    |simd, from| {
        let ((a, c), (b, d)) = (from(a).widen(), from(b).widen());
        ((a - b) * (a - b), (c - d) * (c - d))
    },
    a,
    b
);
float_sum!(
    squares_f64,
    f64,
    f64s,
    |simd, from| {
        let d = from(a) - from(b);
        (d * d, S::f64s::splat(simd, 0.0))
    },
    a,
    b
);

/// The element that beats all; NaN where there is one.
macro_rules! float_extreme {
    ($name:ident, $beats:ident, $worst:ident, $reduce:expr) => {
        pub(super) fn $name<T: SimdReal + PartialOrd>(level: Level, a: &[T]) -> T {
            #[inline(always)]
            fn body<S: Simd, T: SimdReal + PartialOrd>(simd: S, a: &[T]) -> T {
                let lanes = Lanes::<S, T>::LEN;
                let mut best = [Lanes::<S, T>::splat(simd, T::$worst()); WIDE];
                let mut pieces = a.chunks_exact(WIDE * lanes);
                for piece in pieces.by_ref() {
                    for (best, x) in best.iter_mut().zip(piece.chunks_exact(lanes)) {
                        let x = Lanes::<S, T>::from_slice(simd, x);
                        *best = (x.$beats(*best) | x.is_nan()).select(x, *best);
                    }
                }
                let mut winner = T::$worst();
                let beats: fn(T, T) -> bool = $reduce;
                let mut meet = |x: T| {
                    if beats(x, winner) || x.is_nan() {
                        winner = x;
                    }
                };
                for vector in &best {
                    for &x in vector.as_slice() {
                        meet(x);
                    }
                }
                for &x in pieces.remainder() {
                    meet(x);
                }
                winner
            }
            dispatch!(level, simd => body(simd, a))
        }
    };
}
float_extreme!(min_float, simd_lt, infinity, |x, y| x < y);
float_extreme!(max_float, simd_gt, neg_infinity, |x, y| x > y);

/// Loops over whole numbers, which may be reordered, become vectors by themselves.
macro_rules! whole_numbers {
    ($name:ident($($array:ident),+) -> $out:ty, $body:expr) => {
        pub(super) fn $name(level: Level, $($array: &[i32]),+) -> $out {
            #[inline(always)]
            fn body<S: Simd>(_: S, $($array: &[i32]),+) -> $out {
                $body
            }
            dispatch!(level, simd => body(simd, $($array),+))
        }
    };
}
whole_numbers!(sum_i32(a) -> i64, {
    let mut sum = 0i64;
    for &x in a {
        sum += i64::from(x);
    }
    sum
});
whole_numbers!(min_i32(a) -> i32, {
    let mut best = i32::MAX;
    for &x in a {
        best = best.min(x);
    }
    best
});
whole_numbers!(max_i32(a) -> i32, {
    let mut best = i32::MIN;
    for &x in a {
        best = best.max(x);
    }
    best
});
whole_numbers!(squares_i32(a, b) -> f64, {
    let mut sums = [0.0f64; 32];
    let (a, b) = (a.chunks_exact(32), b.chunks_exact(32));
    let mut rest = 0.0;
    for (&a, &b) in a.remainder().iter().zip(b.remainder()) {
        rest += share!(a, b);
    }
    for (a, b) in a.zip(b) {
        for i in 0..32 {
            sums[i] += share!(a[i], b[i]);
        }
    }
    for sum in sums {
        rest += sum;
    }
    rest
});
