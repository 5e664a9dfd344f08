use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array2, ArrayView2};
use num_complex::Complex;
use rayspin_core::{C64, Error, Real, Result};
use rayspin_device::Array;
use rayspin_kernels::{toeplitz, vector};

use crate::{CoilMaps, LinearOp, Scratch};

/// AᴴA of images x_f = Σ_i Φ_fi c_i with k coefficient images c, `[coefficient, matrix…]`: k × k blocks, each
/// of them a convolution. With sensitivities each coil sees the images. Hermitian, its own adjoint.
///
/// ```text
/// (AᴴA)_ij = Σ_j c̄_j T_ij c_j,   T_ij = Σ_f conj(Φ_fi) Φ_fj F_fᴴF_f
/// Φ_fᴴΦ_f = Σ_q w_q(f) v_q v_qᴴ  ⇒  AᴴA = Σ_q v_q (Σ_j c̄_j T_q c_j) v_qᴴ,   T_q = Σ_f w_q(f) F_fᴴF_f
/// ```
///
/// The v_q are e_i and, for i < j, e_i + e_j; where Φ is complex also e_i − i e_j. So all weights w_q are
/// real, and each T_q has a real spectrum. There are k(k + 1)/2 of them for a real Φ, and k² for a complex
/// one. An error of T_q that is linear in the weights, as a NUFFT's, adds up in T_ij as if the T_ij were made
/// themselves.
///
/// Tamir et al., *T2 shuffling: sharp, multicontrast, volumetric fast spin-echo imaging*, Magn Reson Med
/// 77:180, 2017.
///
/// ```
/// use ndarray::Array2;
/// use rayspin_core::{C64, Trajectory};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::{nudft, toeplitz};
/// use rayspin_linop::{LinearOp, SubspaceToeplitz, random};
///
/// let device = Device::cpu()?;
/// let points = Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// // Four frames of ten samples each, and two coefficients.
/// let basis = Array2::from_shape_fn((4, 2), |(f, i)| C64::from(((1 + f) as f64).powi(-(i as i32))));
/// let weights = SubspaceToeplitz::<f32>::weights(basis.view());
/// assert_eq!(weights.nrows(), 3); // real spectra
/// let mut kernels = toeplitz::Series::new(&device, &[8, 8], weights.nrows(), None)?;
/// for row in weights.rows() {
///     let of_samples: Vec<f32> = (0..40).map(|m| row[m / 10] as f32).collect();
///     let mut q = Array::zeros(&device, &[16, 16])?;
///     nudft::q(&trajectory, Some(&Array::from_vec(&device, &[40], of_samples)?), &[8, 8], &mut q)?;
///     kernels.push(toeplitz::Toeplitz::from_kernel(&device, &[8, 8], &q)?)?;
/// }
/// let normal = SubspaceToeplitz::new(2, kernels, None)?;
/// assert_eq!(normal.forward(&random(&device, &[2, 8, 8], 1)?)?.shape(), [2, 8, 8]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct SubspaceToeplitz<R: Real> {
    shape: Vec<usize>,
    terms: Vec<Term>,
    kernels: Arc<toeplitz::Series<R>>,
    maps: Option<CoilMaps<R>>,
    scratch: Scratch<Complex<R>>,
}

/// v_q = e_first, or e_first + turn · e_second.
#[derive(Debug, Clone, Copy)]
struct Term {
    first: usize,
    second: Option<(usize, C64)>,
}

impl Term {
    fn of(first: usize, second: Option<(usize, C64)>) -> Self {
        Self { first, second }
    }
}

/// The v_q of k coefficients: first e_i, then the pairs.
fn terms(k: usize, complex: bool) -> Vec<Term> {
    let mut terms: Vec<Term> = (0..k).map(|i| Term::of(i, None)).collect();
    let turns: &[C64] = if complex { &[C64::ONE, C64::new(0.0, -1.0)] } else { &[C64::ONE] };
    for i in 0..k {
        for j in i + 1..k {
            terms.extend(turns.iter().map(|&turn| Term::of(i, Some((j, turn)))));
        }
    }
    terms
}

impl<R: Real> SubspaceToeplitz<R> {
    /// The number of weights, and so of spectra, of a basis with k columns: k(k + 1)/2, or k² where it is
    /// complex.
    pub fn spectra(k: usize, complex: bool) -> usize {
        if complex { k * k } else { k * (k + 1) / 2 }
    }

    /// w_q(f), `[q, frame]`, from Φ, `[frame, coefficient]`.
    pub fn weights(basis: ArrayView2<'_, C64>) -> Array2<f64> {
        let terms = terms(basis.ncols(), basis.iter().any(|v| v.im != 0.0));
        let mut weights = Array2::zeros((terms.len(), basis.nrows()));
        for (row, mut column) in basis.rows().into_iter().zip(weights.columns_mut()) {
            for (q, term) in terms.iter().enumerate() {
                let Some((second, turn)) = term.second else {
                    column[q] += row[term.first].norm_sqr();
                    continue;
                };
                let product = row[term.first].conj() * row[second];
                let weight = if turn.im == 0.0 { product.re } else { product.im };
                column[q] = weight;
                // vvᴴ has ones on the diagonal, which the e_i take back.
                column[term.first] -= weight;
                column[second] -= weight;
            }
        }
        weights
    }

    /// For k coefficients, from the T_q in the order of [`SubspaceToeplitz::weights`], with sensitivities
    /// `[coil, matrix…]` where there are any.
    ///
    /// Errors: a number of convolutions that k coefficients do not have; maps of another matrix.
    pub fn new(
        coefficients: usize,
        kernels: impl Into<Arc<toeplitz::Series<R>>>,
        maps: Option<CoilMaps<R>>,
    ) -> Result<Self> {
        let kernels = kernels.into();
        let fitting = [false, true]
            .into_iter()
            .find(|&complex| coefficients > 0 && Self::spectra(coefficients, complex) == kernels.len());
        let Some(complex) = fitting else {
            let [real, whole] = [false, true].map(|complex| Self::spectra(coefficients, complex));
            let expected = format!("{real} of a real basis or {whole} of a complex one");
            return Err(Error::value("spectra of a subspace", expected, kernels.len()));
        };
        if let Some(maps) = &maps {
            maps.expect(kernels.matrix())?;
        }
        let shape = [&[coefficients], kernels.matrix()].concat();
        Ok(Self { shape, terms: terms(coefficients, complex), kernels, maps, scratch: Scratch::default() })
    }

    /// y ← y + v T v_ᴴ x for one term; `convolve` is T, from its first argument to its second.
    fn term(
        &self,
        term: Term,
        x: &Array<Complex<R>>,
        y: &mut Array<Complex<R>>,
        convolve: impl FnOnce(&Array<Complex<R>>, &mut Array<Complex<R>>) -> Result<()>,
    ) -> Result<()> {
        let image = &self.shape[1..];
        let mut seen = self.scratch.take(x.device(), image)?;
        let mut convolved = self.scratch.take(x.device(), image)?;
        let n = seen.len();
        vector::copy_part(x, term.first * n, &mut seen, 0, n)?;
        if let Some((second, turn)) = term.second {
            vector::copy_part(x, second * n, &mut convolved, 0, n)?;
            vector::axpy(turn.conj(), &convolved, &mut seen)?;
        }
        convolve(&seen, &mut convolved)?;
        vector::add_part(&convolved, y, term.first * n)?;
        if let Some((second, turn)) = term.second {
            if turn != C64::ONE {
                vector::scale(turn, &mut convolved)?;
            }
            vector::add_part(&convolved, y, second * n)?;
        }
        Ok(())
    }
}

impl<R: Real> LinearOp<Complex<R>> for SubspaceToeplitz<R> {
    fn name(&self) -> &str {
        "subspace Toeplitz"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        y.fill(Complex::new(R::zero(), R::zero()))?;
        // All spectra for some coils together, so that maps are copied once per application.
        let mut some = |coils: Option<(&Array<Complex<R>>, Range<usize>)>| {
            self.kernels.each(|q, kernel| {
                self.term(self.terms[q], x, y, |seen, convolved| match &coils {
                    Some((maps, taken)) => {
                        kernel.apply_sense_coils(seen, maps, taken.clone(), convolved, false)
                    }
                    None => kernel.apply(seen, convolved),
                })
            })
        };
        match &self.maps {
            None => some(None),
            Some(maps) => maps.each(None, |_, maps, taken| some(Some((maps, taken)))),
        }
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.forward_into(y, x)
    }
    fn scratch(&self) -> Option<&Scratch<Complex<R>>> {
        Some(&self.scratch)
    }
}
