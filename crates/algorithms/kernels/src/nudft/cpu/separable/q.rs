use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Result, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::cpu::zeroed;

use super::adjoint::adjoint;
use crate::nudft::cpu::complex;
use crate::nudft::cpu::phases::Fold;
use crate::nudft::grid::{Axis, Grid};
use crate::nudft::tune::Host;

/// With real weights Q is Hermitian, Q(−x) = conj Q(x), so half of it is summed. These are displacements
/// −n..0 of the first axis. The rest is mirrored, except for the faces at −n of the other axes, whose mirror
/// images lie outside the grid; these are summed too.
pub(super) fn q<T: SimdReal>(
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    matrix: &[usize],
    weights: &[T],
    out: &mut [Complex<T>],
) -> Result<()> {
    let grid = Grid::displacements(matrix)?;
    let lead = 3 - matrix.len();
    let n = grid.axes[lead].n;
    let plane = grid.points() / grid.axes[lead].count;
    let weights = complex(weights)?;
    let (half, rest) = out.split_at_mut((n + 1) * plane);

    let mut half_grid = grid;
    half_grid.axes[lead].count = n + 1;
    adjoint(cpu, trajectory, &half_grid, &weights, half, Fold::Mirrored)?;

    cpu.run(|| {
        let planes = rest.par_chunks_exact_mut(plane).enumerate();
        planes.for_each(|(i, to)| {
            let from = &half[(n - 1 - i) * plane..][..plane];
            mirror(&grid, lead, from, to);
        });
    });

    for face in (lead + 1..3).filter(|_| n > 1) {
        let mut axes = grid.axes;
        axes[lead] = without_first(axes[lead], n + 1);
        for between in &mut axes[lead + 1..face] {
            *between = without_first(*between, 1);
        }
        axes[face].count = 1;
        // The single point goes first, which leaves a whole axis for the columns.
        let mut order = axes;
        order[..=face].rotate_right(1);
        let grid_of_face = Grid { axes: order };
        let mut values = zeroed::<Complex<T>>("displacements of a face", grid_of_face.points())?;
        adjoint(cpu, trajectory, &grid_of_face, &weights, &mut values, Fold::Mirrored)?;
        let box_of = |axis: usize| axes[axis].count;
        let offset = |axis: usize| (axes[axis].first - grid.axes[axis].first) as usize;
        let mut values = values.into_iter();
        for z in 0..box_of(0) {
            for y in 0..box_of(1) {
                for x in 0..box_of(2) {
                    let row = (offset(0) + z) * grid.axes[1].count + offset(1) + y;
                    let index = row * grid.axes[2].count + offset(2) + x;
                    if let (Some(to), Some(value)) = (rest.get_mut(index - half.len()), values.next()) {
                        *to = value;
                    }
                }
            }
        }
    }
    Ok(())
}

fn without_first(axis: Axis, skipped: usize) -> Axis {
    Axis { first: axis.first + skipped as isize, count: axis.count - skipped, ..axis }
}

/// One plane of the first axis from the plane of opposite displacement. Points whose mirror image lies
/// outside get the value of another point, to be overwritten.
fn mirror<T: SimdReal>(grid: &Grid, lead: usize, from: &[Complex<T>], to: &mut [Complex<T>]) {
    let count = |axis: usize| if axis > lead { grid.axes[axis].count } else { 1 };
    let (ny, nx) = (count(1), count(2));
    for (y, row) in to.chunks_exact_mut(nx).enumerate() {
        let from = &from[(ny - y) % ny * nx..][..nx];
        for (x, value) in row.iter_mut().enumerate() {
            *value = from[(nx - x) % nx].conj();
        }
    }
}
