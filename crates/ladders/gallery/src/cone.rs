//! Methods on a box of cells whose steps reach the nearest neighbours. After some steps a cell depends on a
//! window of cells: to check one cell of a large problem the oracle computes its window alone.

use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_tune::input;

/// Problems of more updates than this are checked at some cells.
const WHOLE: usize = 1 << 21;
/// How many cells are checked then: the last one, and others at random.
const CHECKED: u64 = 8;

/// A box of cells `[z, y, x]`, which axes have walls (`closed`; the others are periodic), and the steps.
#[derive(Clone, Copy)]
pub(crate) struct Cells {
    pub(crate) shape: [usize; 3],
    pub(crate) closed: [bool; 3],
    pub(crate) steps: usize,
}

impl Cells {
    /// The largest error of a cell. `reference` makes the values of a window of these first cell and size,
    /// and `apart` compares them with the result at a cell.
    pub(crate) fn error<T: Sync>(
        &self,
        cpu: &Cpu,
        seed: u64,
        reference: impl Fn([isize; 3], [usize; 3]) -> Vec<T> + Sync,
        apart: impl Fn(usize, &T) -> f64 + Sync,
    ) -> f64 {
        let [_, ny, nx] = self.shape;
        let cells = self.shape.iter().product::<usize>();
        if cells.saturating_mul(self.steps) <= WHOLE {
            let want = reference([0; 3], self.shape);
            return want.iter().enumerate().map(|(cell, want)| apart(cell, want)).fold(0.0, f64::max);
        }
        let error = |turn: u64| {
            let cell = match turn {
                0 => cells - 1,
                _ => (input::bits(seed ^ 0x1b3, turn) % cells as u64) as usize,
            };
            let position = [cell / nx / ny, cell / nx % ny, cell % nx];
            let (low, size) = window(self.shape, self.closed, self.steps, position);
            apart(cell, &reference(low, size)[index(position, low, size)])
        };
        cpu.run(|| (0..CHECKED).into_par_iter().map(error).reduce(|| 0.0, f64::max))
    }
}

/// The window (first cell and size along each axis) whose cells reach `position` within `steps` steps. Along
/// an axis with walls (`closed`) it ends where the box ends; along a periodic axis its first cell may be
/// below 0. It spans an axis that is shorter than the reach.
fn window(
    shape: [usize; 3],
    closed: [bool; 3],
    steps: usize,
    position: [usize; 3],
) -> ([isize; 3], [usize; 3]) {
    let (mut low, mut size) = ([0; 3], shape);
    for axis in 0..3 {
        let (n, reach) = (shape[axis] as isize, steps as isize);
        let (from, to) = (position[axis] as isize - reach, position[axis] as isize + reach + 1);
        let (from, to) = if closed[axis] { (from.max(0), to.min(n)) } else { (from, to) };
        if to - from < n {
            (low[axis], size[axis]) = (from, (to - from) as usize);
        }
    }
    (low, size)
}

/// Index in such a window of the cell at `position` of the whole box.
fn index(position: [usize; 3], low: [isize; 3], size: [usize; 3]) -> usize {
    let [z, y, x] = [0, 1, 2].map(|axis| (position[axis] as isize - low[axis]) as usize);
    (z * size[1] + y) * size[2] + x
}
