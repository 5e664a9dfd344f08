//! The cells that a cell depends on after some steps of a method whose steps reach their nearest neighbours: what an oracle computes to
//! check one cell of a large problem.

/// The window (first cell and size along each axis) whose cells reach `at` within `steps` steps. Along an axis with walls (`closed`) it ends
/// where the box ends; along a periodic axis its first cell may be below 0. It spans an axis that is shorter than the reach.
pub(crate) fn window(
    shape: [usize; 3],
    closed: [bool; 3],
    steps: usize,
    at: [usize; 3],
) -> ([isize; 3], [usize; 3]) {
    let (mut low, mut size) = ([0; 3], shape);
    for axis in 0..3 {
        let (n, reach) = (shape[axis] as isize, steps as isize);
        let (from, to) = (at[axis] as isize - reach, at[axis] as isize + reach + 1);
        let (from, to) = if closed[axis] { (from.max(0), to.min(n)) } else { (from, to) };
        if to - from < n {
            (low[axis], size[axis]) = (from, (to - from) as usize);
        }
    }
    (low, size)
}

/// Index of cell `at` of the whole box in such a window.
pub(crate) fn index(at: [usize; 3], (low, size): ([isize; 3], [usize; 3])) -> usize {
    let [z, y, x] = [0, 1, 2].map(|axis| (at[axis] as isize - low[axis]) as usize);
    (z * size[1] + y) * size[2] + x
}
