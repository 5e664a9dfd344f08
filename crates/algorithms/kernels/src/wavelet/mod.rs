//! Orthogonal wavelet transform of images of any size, with the image shifted on a torus first.

mod cpu;
mod cuda;
mod ladder;
pub mod reference;
mod variants;

pub(crate) use cuda::builds;
pub(crate) use ladder::{inverse_ladder, ladder};
pub use variants::{Apply, Implementation, Problem, variants};

use std::sync::{Mutex, PoisonError};

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape, format_shape, voxels};
use rayspin_device::{Array, Backend};

use crate::vector::expect_device;

/// An axis is halved while it has at least this many elements.
pub const MIN_SPLIT_LENGTH: usize = 16;

/// The filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Family {
    /// Sums and differences of neighbours.
    Haar,
    /// Daubechies' four coefficients, two vanishing moments (D4).
    #[default]
    Daubechies2,
}

impl Family {
    /// h, the low-pass filter: Σ h = √2, Σ h² = 1.
    pub fn low(self) -> Vec<f64> {
        let root = 3f64.sqrt();
        match self {
            Self::Haar => vec![std::f64::consts::FRAC_1_SQRT_2; 2],
            Self::Daubechies2 => [1.0 + root, 3.0 + root, 3.0 - root, 1.0 - root]
                .map(|h| h / (4.0 * std::f64::consts::SQRT_2))
                .to_vec(),
        }
    }

    /// g_j = (−1)^j h_{T−1−j}, the high-pass filter.
    pub fn high(self) -> Vec<f64> {
        let sign = |j: usize| if j.is_multiple_of(2) { 1.0 } else { -1.0 };
        self.low().into_iter().rev().enumerate().map(|(j, h)| sign(j) * h).collect()
    }
}

/// One level: the box at the array's origin that it acts on, and the axes that it halves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Level {
    /// Elements of the box along each axis.
    pub size: Vec<usize>,
    /// Whether the axis is halved.
    pub split: Vec<bool>,
}

/// The shape, the filter and the levels of a transform.
///
/// ```
/// use rayspin_kernels::wavelet::{Family, Plan};
///
/// let plan = Plan::new(&[40, 17], Family::Haar)?;
/// assert_eq!(plan.levels()[0].split, [true, true]);
/// assert_eq!(plan.levels()[1].size, [20, 8]); // of 17 elements one is set aside
/// assert_eq!(plan.levels()[1].split, [true, false]); // 8 elements are too few
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan {
    shape: Vec<usize>,
    family: Family,
    levels: Vec<Level>,
}

impl Plan {
    /// For images of `shape`, 1 to 3 axes, with as many levels as [`MIN_SPLIT_LENGTH`] allows. Errors:
    /// another rank, an empty axis.
    pub fn new(shape: &[usize], family: Family) -> Result<Self> {
        Self::with_levels(shape, family, None)
    }

    /// [`Plan::new`] with `wanted` levels, or all if `None`. Errors: as [`Plan::new`]; 0 levels, or more than
    /// the shape allows.
    pub fn with_levels(shape: &[usize], family: Family, wanted: Option<usize>) -> Result<Self> {
        if !(1..=3).contains(&shape.len()) || voxels(shape)? == 0 {
            return Err(Error::Shape {
                what: "wavelet transform".into(),
                expected: "1 to 3 axes, none empty".into(),
                found: format_shape(shape),
            });
        }
        let mut levels = Vec::new();
        let mut size = shape.to_vec();
        loop {
            let split: Vec<bool> = size.iter().map(|&n| n >= MIN_SPLIT_LENGTH).collect();
            if !split.contains(&true) {
                break;
            }
            levels.push(Level { size: size.clone(), split: split.clone() });
            for (n, split) in size.iter_mut().zip(split) {
                *n /= if split { 2 } else { 1 };
            }
        }
        if let Some(wanted) = wanted {
            if wanted == 0 || wanted > levels.len() {
                let most = format!("1 to {} for a matrix of {}", levels.len(), format_shape(shape));
                return Err(Error::value("levels of wavelets", most, wanted));
            }
            levels.truncate(wanted);
        }
        Ok(Self { shape: shape.to_vec(), family, levels })
    }

    /// The shape of images and of coefficients.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The filter.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The levels, finest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// 1 for every detail, and 0 for coefficients that are low-pass (or set aside) along every axis. A
    /// threshold should touch the details only.
    pub fn details<R: Real>(&self) -> Vec<R> {
        let stride = |a: usize| self.shape[a + 1..].iter().product::<usize>();
        let mut out = vec![R::zero(); self.shape.iter().product()];
        for level in &self.levels {
            for (i, out) in out.iter_mut().enumerate() {
                let index = |a: usize| i / stride(a) % self.shape[a];
                if (0..self.shape.len()).all(|a| index(a) < level.size[a]) {
                    let high = |a: usize| {
                        let half = level.size[a] / 2;
                        level.split[a] && (half..2 * half).contains(&index(a))
                    };
                    *out = if (0..self.shape.len()).any(high) { R::one() } else { R::zero() };
                }
            }
        }
        out
    }
}

/// W: the orthogonal wavelet transform, WᴴW = WWᴴ = 1, for any size.
///
/// Along an axis of n elements, with m = 2⌊n/2⌋ and k < m/2, one level is
///
/// ```text
/// low(k)  = Σ_j h_j x((2k + j) mod m)        high(k) = Σ_j g_j x((2k + j) mod m)
/// ```
///
/// and for odd n the last element is set aside unchanged. The next level continues with the low-pass box at
/// the array's origin, and halves every axis of at least [`MIN_SPLIT_LENGTH`] elements. The image is first
/// shifted, x(i + shift) on a torus, so that random shifts move the grid of the wavelets, its seams, and the
/// elements set aside.
///
/// I. Daubechies, *Orthonormal bases of compactly supported wavelets*, Comm Pure Appl Math 41:909, 1988; S.
/// G. Mallat, *A theory for multiresolution signal decomposition*, IEEE PAMI 11:674, 1989.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector::norm_squared;
/// use rayspin_kernels::wavelet::{Family, Wavelet};
///
/// let device = Device::cpu()?;
/// let wavelet = Wavelet::<f32>::new(&[32, 20], Family::Daubechies2, None)?;
/// let image = Array::from_vec(&device, &[32, 20], (0..640).map(|i| C32::from((i % 20) as f32)).collect())?;
/// let (mut coefficients, mut back) = (image.try_clone()?, image.try_clone()?);
/// wavelet.forward(&[3, 1], &image, &mut coefficients)?;
/// assert!((norm_squared(&coefficients)? / norm_squared(&image)? - 1.0).abs() < 1e-5); // orthogonal
/// wavelet.inverse(&[3, 1], &coefficients, &mut back)?;
/// assert!(back.to_vec()?.iter().zip(&image.to_vec()?).all(|(a, b)| (a - b).norm() < 1e-4));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Wavelet<R: Real> {
    plan: Plan,
    free: Mutex<Vec<Vec<Complex<R>>>>,
}

impl<R: Real> Wavelet<R> {
    /// Plans the transform, as [`Plan::with_levels`].
    pub fn new(shape: &[usize], family: Family, levels: Option<usize>) -> Result<Self> {
        Ok(Self { plan: Plan::with_levels(shape, family, levels)?, free: Mutex::new(Vec::new()) })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// c ← W x(· + shift). Errors: other shapes, a shift of another rank, different devices.
    pub fn forward(&self, shift: &[usize], x: &Array<Complex<R>>, c: &mut Array<Complex<R>>) -> Result<()> {
        self.apply(false, shift, x, c)
    }

    /// x(· + shift) ← Wᴴc. Errors: as [`Wavelet::forward`].
    pub fn inverse(&self, shift: &[usize], c: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.apply(true, shift, c, x)
    }

    fn apply(
        &self,
        inverse: bool,
        shift: &[usize],
        from: &Array<Complex<R>>,
        to: &mut Array<Complex<R>>,
    ) -> Result<()> {
        expect_shape("wavelet transform: input", &self.plan.shape, from.shape())?;
        expect_shape("wavelet transform: output", &self.plan.shape, to.shape())?;
        expect_device("wavelet transform", from.device(), to)?;
        if shift.len() != self.plan.shape.len() {
            return Err(Error::value(
                "shift of a wavelet transform",
                "one number an axis",
                format!("{shift:?}"),
            ));
        }
        match from.device().backend() {
            Backend::Cpu(cpu) => {
                let rows = cpu::rows();
                let implementation = if inverse { rows.inverse } else { rows.forward };
                let lock = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
                let mut work = lock().pop().unwrap_or_default();
                implementation(cpu, &self.plan, shift, from.cpu(), to.cpu_mut(), &mut work);
                lock().push(work);
                Ok(())
            }
            Backend::Cuda(cuda) => cuda::transform(cuda, &self.plan, inverse, shift, from, to),
        }
    }
}

#[cfg(test)]
mod tests;
