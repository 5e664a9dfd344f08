//! The oracle: the equations in f64, all six components of a cell side by side.

use super::{COURANT, Problem};

/// Ex, Ey, Ez, Hx, Hy, Hz after all steps in a window of `size` cells from `low` on (z, y, x). Cells at an
/// end of the window that is no wall are wrong, by one cell more after each step.
pub fn window(p: &Problem, start: &[f32], low: [isize; 3], size: [usize; 3]) -> Vec<[f64; 6]> {
    let count = size.iter().product::<usize>();
    let place = |at: usize| [at / size[2] / size[1], at / size[2] % size[1], at % size[2]];
    let s = f64::from(COURANT);
    let mut f: Vec<[f64; 6]> = (0..count)
        .map(|at| {
            let at = place(at);
            let [z, y, x] = [0, 1, 2].map(|axis| low[axis] as usize + at[axis]);
            let cell = (z * p.shape[1] + y) * p.shape[2] + x;
            std::array::from_fn(|c| p.field(c).map_or(0.0, |c| f64::from(start[c * p.cells() + cell])))
        })
        .collect();
    for _ in 0..p.steps {
        for at in 0..count {
            // E of the neighbour ahead along z, y, x; beyond the box 0.
            let ahead = |axis: usize, c: usize| match place(at)[axis] + 1 < size[axis] {
                true => f[at + stride(size, axis)][c],
                false => 0.0,
            };
            let [ex, ey, ez, ..] = f[at];
            let curl = [
                (ahead(1, 2) - ez) - (ahead(0, 1) - ey),
                (ahead(0, 0) - ex) - (ahead(2, 2) - ez),
                (ahead(2, 1) - ey) - (ahead(1, 0) - ex),
            ];
            for c in 0..3 {
                f[at][3 + c] -= s * curl[c];
            }
        }
        for at in 0..count {
            // H of the neighbour behind; a window that begins inside the box knows none.
            let behind = |axis: usize, c: usize| match place(at)[axis] {
                0 => 0.0,
                _ => f[at - stride(size, axis)][3 + c],
            };
            let [.., hx, hy, hz] = f[at];
            let curl = [
                (hz - behind(1, 2)) - (hy - behind(0, 1)),
                (hx - behind(0, 0)) - (hz - behind(2, 2)),
                (hy - behind(2, 1)) - (hx - behind(1, 0)),
            ];
            // What is tangential to the conductor stays 0: z for Ex and Ey, and so on.
            let inside = |axis: usize| low[axis] + place(at)[axis] as isize > 0;
            for (c, [a, b]) in [[0, 1], [0, 2], [1, 2]].into_iter().enumerate() {
                if inside(a) && inside(b) {
                    f[at][c] += s * curl[c];
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
