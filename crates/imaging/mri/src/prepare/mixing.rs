use std::borrow::Cow;
use std::ops::Range;

use ndarray::{Array2, Array3, ArrayD, ArrayViewD};
use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::coil_mixing;
use rayspin_kernels::fft::{Fft, Norm};

/// What coils become before anything else, on their way from the host to a device: y' = M y, one matrix for
/// every sample, or one at each position along the readout of a grid.
#[derive(Debug, Clone)]
pub(crate) struct Mixing {
    /// `[coil made, coil, position]`.
    matrices: Array3<C32>,
    along: bool,
}

/// Bytes of samples that are on a device before they are mixed. On a GPU, copying them takes longer than the
/// start of a copy. On a CPU they stay in its cache.
const fn at_once(kind: BackendKind) -> usize {
    match kind {
        BackendKind::Cuda => 16 << 20,
        BackendKind::Cpu => 1 << 20,
    }
}

impl Mixing {
    /// One matrix `[coil made, coil]` for every sample.
    pub(super) fn alike(matrix: Array2<C32>) -> Self {
        Self { matrices: matrix.insert_axis(ndarray::Axis(2)), along: false }
    }

    /// A matrix for each position along the readout, all of one shape.
    pub(super) fn along(positions: &[Array2<C32>]) -> Self {
        let (kept, coils) = positions.first().map_or((0, 0), Array2::dim);
        let matrices =
            Array3::from_shape_fn((kept, coils, positions.len()), |(i, j, x)| positions[x][[i, j]]);
        Self { matrices, along: true }
    }

    /// Coils made.
    pub(crate) fn kept(&self) -> usize {
        self.matrices.shape()[0]
    }

    /// What makes the coils `rows` of those made alone.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Self {
        let matrices = self.matrices.slice_axis(ndarray::Axis(0), rows.into()).to_owned();
        Self { matrices, along: self.along }
    }

    /// Whether it takes whole lines of a grid, and not any sample.
    pub(crate) fn needs_lines(&self) -> bool {
        self.along
    }

    /// The coils `rows` of those made, `[row, …]`, from samples `[coil, …]` of the host: of a grid, where
    /// there is a matrix for each position. They come to the device a piece at a time.
    ///
    /// Errors: samples of other coils, lines of another length, memory.
    pub(crate) fn of(
        &self,
        device: &Device,
        samples: &ArrayViewD<'_, C32>,
        rows: Range<usize>,
    ) -> Result<Array<C32>> {
        let (_, coils, positions) = self.matrices.dim();
        let line = samples.shape().last().copied().unwrap_or(0);
        if samples.shape()[0] != coils || (self.along && line != positions) {
            let expected = if self.along { [coils, positions] } else { [coils, line] };
            return Err(Error::shape("coils and readout", &expected, &[samples.shape()[0], line]));
        }
        let matrices = Array::from_host(device, self.matrices.view().into_dyn())?;
        let mut out = Array::zeros(device, &[&[rows.len()], &samples.shape()[1..]].concat())?;
        let points = samples.len() / coils.max(1);
        let transform = if self.along { Some(Fft::new(device, &[line], Norm::Unitary)?) } else { None };
        pieces(device, samples, if self.along { line } else { 1 }, |start, mut piece| {
            let Some(fft) = &transform else {
                return coil_mixing::mix(&matrices, rows.clone(), &piece, &mut out, start);
            };
            fft.inverse(&mut piece)?;
            let count = piece.len() / coils;
            let mut mixed = Array::zeros(device, &[&[rows.len()], &piece.shape()[1..]].concat())?;
            coil_mixing::mix(&matrices, rows.clone(), &piece, &mut mixed, 0)?;
            fft.forward(&mut mixed)?;
            (0..rows.len())
                .try_for_each(|row| out.copy_range(row * points + start, &mixed, row * count, count))
        })?;
        Ok(out)
    }

    /// The same on the host.
    pub(crate) fn on_host(&self, device: &Device, samples: &ArrayViewD<'_, C32>) -> Result<ArrayD<C32>> {
        self.of(&device.host(), samples, 0..self.kept())?.into_host()
    }
}

/// Copies samples `[coil, …]` from the host to the device in pieces of a size that suits it. `take` gets the
/// first point of each piece among the points of a coil, and the piece `[coil, line, point]`: whole lines of
/// `line` points.
pub(super) fn pieces(
    device: &Device,
    samples: &ArrayViewD<'_, C32>,
    line: usize,
    mut take: impl FnMut(usize, Array<C32>) -> Result<()>,
) -> Result<()> {
    if samples.is_empty() {
        return Ok(());
    }
    let (coils, points) = (samples.shape()[0], samples.len() / samples.shape()[0]);
    let rows: Vec<Cow<'_, [C32]>> = samples
        .outer_iter()
        .map(|coil| coil.to_slice().map_or_else(|| coil.iter().copied().collect(), Cow::Borrowed))
        .collect();
    let size = piece(device.kind(), coils, points, line);
    for start in (0..points).step_by(size) {
        let count = size.min(points - start);
        let mut piece = Array::zeros(device, &[coils, count / line, line])?;
        for (coil, row) in rows.iter().enumerate() {
            piece.set_part(coil * count, &row[start..start + count])?;
        }
        take(start, piece)?;
    }
    Ok(())
}

/// Points of a piece.
fn piece(kind: BackendKind, coils: usize, points: usize, line: usize) -> usize {
    let most = at_once(kind) / (coils * size_of::<C32>()).max(1);
    (most / line * line).clamp(line, points.max(line))
}

/// Bytes of a device, beside the results, for mixing `coils` coils into `kept` coils. Each coil has `points`
/// points in lines of `line` points.
pub(crate) fn needs(kind: BackendKind, coils: u64, kept: u64, points: u64, line: u64) -> u64 {
    let piece = piece(kind, coils as usize, points as usize, line as usize) as u64;
    // Whole lines need room for the mixed lines too.
    size_of::<C32>() as u64 * piece * (coils + if line > 1 { kept } else { 0 })
}
