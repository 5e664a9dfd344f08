use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{View, ViewMut};
use rayspin_device::{Array, Device};

use super::line::{LONGEST, Line};
use super::{Beside, Extent, Lie, LinePass, Side, Span, Touch, Weigh};

/// The weighted transform between a centred image and the low modes of a finer grid, for the uniform side of
/// a non-uniform transform.
///
/// grid\[l\] = Σ_i (Π_a f_a\[i_a\]) image\[i\] e^{−i2π Σ_a (i_a − ⌊n_a/2⌋) l_a / N_a} and its adjoint, not
/// scaled. Image rows that are absent from the grid are neither transformed nor read as padding; everything
/// happens in the grid's own memory.
#[derive(Debug)]
pub(crate) struct PaddedFft<R: Real> {
    /// Image and grid, as z, y, x; a missing axis has size 1.
    image: [usize; 3],
    grid: [usize; 3],
    factors: [Array<R>; 3],
    passes: [Option<LinePass<R>>; 3],
}

impl<R: Real> PaddedFft<R> {
    /// Images of `matrix` in grids of `grid`, no smaller along any axis, 1 to 3 axes; `factors[a]` weighs the
    /// indices of axis a.
    ///
    /// Errors: factors of another length, an axis of the grid above [`LONGEST`] or with prime factors above
    /// 7, a GPU that cannot run the kernels.
    pub(crate) fn new(device: &Device, matrix: &[usize], grid: &[usize], factors: &[Vec<R>]) -> Result<Self> {
        let missing = 3usize.saturating_sub(matrix.len());
        let three = |shape: &[usize]| -> [usize; 3] {
            std::array::from_fn(|axis| if axis < missing { 1 } else { shape[axis - missing] })
        };
        if grid.len() != matrix.len()
            || factors.len() != matrix.len()
            || missing + matrix.len() != 3
            || matrix.iter().zip(grid).any(|(n, l)| n > l)
            || matrix.iter().zip(factors).any(|(n, f)| *n != f.len())
        {
            return Err(Error::value(
                "padded Fourier transform",
                "a grid no smaller than the image, a factor for each index",
                format!("image {matrix:?}, grid {grid:?}, {} lists of factors", factors.len()),
            ));
        }
        let (image, grid) = (three(matrix), three(grid));
        let mut passes = [None, None, None];
        for axis in missing..3 {
            let line = Line::new(grid[axis]).ok_or_else(|| {
                let most = format!("lengths up to {LONGEST} without prime factors above 7");
                Error::value("padded Fourier transform on a GPU", most, grid[axis])
            })?;
            let inner = grid[axis + 1..].iter().product();
            passes[axis] = Some(LinePass::new(device, &line, Lie::of(usize::MAX >> 1, inner), None, None)?);
        }
        let list = |axis: usize| match axis.checked_sub(missing) {
            Some(axis) => factors[axis].clone(),
            None => vec![R::one()],
        };
        let upload = |axis: usize| Array::from_vec(device, &[image[axis]], list(axis));
        Ok(Self { image, grid, factors: [upload(0)?, upload(1)?, upload(2)?], passes })
    }

    /// Elements of one grid.
    pub(crate) fn grid_len(&self) -> usize {
        self.grid.iter().product()
    }

    /// Elements of one image.
    pub(crate) fn image_len(&self) -> usize {
        self.image.iter().product()
    }

    /// Bytes of factors and of the tables of transforms.
    pub(crate) fn bytes(&self) -> u64 {
        let factors: usize = self.factors.iter().map(Array::len).sum();
        let tables: u64 = self.passes.iter().flatten().map(LinePass::bytes).sum();
        (factors * size_of::<R>()) as u64 + tables
    }

    /// [`PaddedFft::bytes`] of a transform that is yet to be made.
    pub(crate) fn bytes_needed(matrix: &[usize], grid: &[usize]) -> u64 {
        let factors = (matrix.iter().sum::<usize>() + 3usize.saturating_sub(matrix.len())) * size_of::<R>();
        factors as u64 + grid.iter().map(|&n| LinePass::<R>::bytes_needed(n)).sum::<u64>()
    }

    /// The passes of `axis`: sides in the grid and, for the last, in the image; and what lies beside its
    /// lines.
    fn sides(&self, axis: usize, batch: usize) -> (Extent, Side, Side) {
        let [_, iy, ix] = self.image;
        let [gz, gy, gx] = self.grid;
        let wrapped = |axis: usize, stride: usize| Beside {
            stride,
            shift: self.image[axis] / 2,
            length: self.grid[axis],
        };
        let low = Span::centred(self.image[axis]);
        let none = Beside::packed(0);
        let side = |a, b, stride, span| Side { batch: gz * gy * gx, a, b, stride, span };
        match axis {
            0 => {
                let extent = Extent { batch, a: 1, b: 1, inner: gy * gx };
                (extent, side(none, none, gy * gx, low.in_place()), side(none, none, gy * gx, Span::full(gz)))
            }
            1 => {
                let extent = Extent { batch, a: 1, b: self.image[0], inner: gx };
                let planes = wrapped(0, gy * gx);
                (extent, side(none, planes, gx, low.in_place()), side(none, planes, gx, Span::full(gy)))
            }
            _ => {
                let extent = Extent { batch, a: self.image[0], b: iy, inner: 1 };
                let image = Side {
                    batch: self.image_len(),
                    a: Beside::packed(iy * ix),
                    b: Beside::packed(ix),
                    stride: 1,
                    span: low,
                };
                (extent, image, side(wrapped(0, gy * gx), wrapped(1, gx), 1, Span::full(gx)))
            }
        }
    }

    fn check(&self, image: usize, grid: usize, batch: usize) -> Result<()> {
        if image == batch * self.image_len() && grid == batch * self.grid_len() {
            return Ok(());
        }
        Err(Error::value(
            "padded Fourier transform",
            format!("{batch} images of {:?} and as many grids of {:?}", self.image, self.grid),
            format!("{image} and {grid} elements"),
        ))
    }

    /// Images `[batch, matrix..]` to grids `[batch, grid..]`, e^{−i…}. Every element of the grids is written.
    pub(crate) fn forward_padded(
        &self,
        image: View<'_, Complex<R>>,
        mut grid: ViewMut<'_, Complex<R>>,
        batch: usize,
    ) -> Result<()> {
        self.check(image.len(), grid.len(), batch)?;
        for axis in [2, 1, 0] {
            let Some(pass) = &self.passes[axis] else { continue };
            let (extent, low, full) = self.sides(axis, batch);
            let weigh = Weigh::Read(self.factors[axis].cuda());
            let touch = Touch { inverse: false, scale: R::one(), weigh };
            pass.run((axis == 2).then_some(image), grid.reborrow(), extent, [low, full], &touch)?;
        }
        Ok(())
    }

    /// Grids to images, e^{+i…}: the adjoint of [`PaddedFft::forward_padded`]. The grids are worked in.
    pub(crate) fn inverse_cropped(
        &self,
        mut grid: ViewMut<'_, Complex<R>>,
        mut image: ViewMut<'_, Complex<R>>,
        batch: usize,
    ) -> Result<()> {
        self.check(image.len(), grid.len(), batch)?;
        for axis in [0, 1, 2] {
            let Some(pass) = &self.passes[axis] else { continue };
            let (extent, low, full) = self.sides(axis, batch);
            let weigh = Weigh::Write(self.factors[axis].cuda());
            let touch = Touch { inverse: true, scale: R::one(), weigh };
            if axis == 2 {
                pass.run(Some(grid.view()), image.reborrow(), extent, [full, low], &touch)?;
            } else {
                pass.run(None, grid.reborrow(), extent, [full, low], &touch)?;
            }
        }
        Ok(())
    }
}
