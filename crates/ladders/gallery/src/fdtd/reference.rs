//! The oracle: the equations in f64, all six components of a cell side by side.

use super::{COURANT, Problem};

/// Ex, Ey, Ez, Hx, Hy, Hz after all steps in a window of `size` cells from `low` on (z, y, x). Cells at an
/// end of the window that is no wall are wrong, by one cell more after each step.
pub fn window(p: &Problem, start: &[f32], low: [isize; 3], size: [usize; 3]) -> Vec<[f64; 6]> {
    let count = size.iter().product::<usize>();
    let place = |index: usize| [index / size[2] / size[1], index / size[2] % size[1], index % size[2]];
    let s = f64::from(COURANT);
    let mut f: Vec<[f64; 6]> = (0..count)
        .map(|index| {
            let inside = place(index);
            let [z, y, x] = [0, 1, 2].map(|axis| low[axis] as usize + inside[axis]);
            let cell = (z * p.shape[1] + y) * p.shape[2] + x;
            std::array::from_fn(|c| p.field(c).map_or(0.0, |c| f64::from(start[c * p.cells() + cell])))
        })
        .collect();
    for _ in 0..p.steps {
        for cell in 0..count {
            // E of the neighbour ahead along z, y, x; beyond the box 0.
            let ahead = |axis: usize, c: usize| match place(cell)[axis] + 1 < size[axis] {
                true => f[cell + stride(size, axis)][c],
                false => 0.0,
            };
            let [ex, ey, ez, ..] = f[cell];
            let curl = [
                (ahead(1, 2) - ez) - (ahead(0, 1) - ey),
                (ahead(0, 0) - ex) - (ahead(2, 2) - ez),
                (ahead(2, 1) - ey) - (ahead(1, 0) - ex),
            ];
            for c in 0..3 {
                f[cell][3 + c] -= s * curl[c];
            }
        }
        for cell in 0..count {
            // H of the neighbour behind; a window that begins inside the box knows none.
            let behind = |axis: usize, c: usize| match place(cell)[axis] {
                0 => 0.0,
                _ => f[cell - stride(size, axis)][3 + c],
            };
            let [.., hx, hy, hz] = f[cell];
            let curl = [
                (hz - behind(1, 2)) - (hy - behind(0, 1)),
                (hx - behind(0, 0)) - (hz - behind(2, 2)),
                (hy - behind(2, 1)) - (hx - behind(1, 0)),
            ];
            // What is tangential to the conductor stays 0: z for Ex and Ey, and so on.
            let inside = |axis: usize| low[axis] + place(cell)[axis] as isize > 0;
            for (c, [a, b]) in [[0, 1], [0, 2], [1, 2]].into_iter().enumerate() {
                if inside(a) && inside(b) {
                    f[cell][c] += s * curl[c];
                }
            }
        }
    }
    f
}

/// Cells from one to the next along an axis.
fn stride(size: [usize; 3], axis: usize) -> usize {
    size[axis + 1..].iter().product()
}
