//! The oracle: the method in f64, population by population, with 19 numbers a cell that arrive there.

use super::{DIRECTIONS, Problem, opposite, weight};

/// Density less 1 and velocity after all steps in a window of `size` cells from `low` on (z, y, x; beyond a
/// periodic axis' ends it is counted round). Cells at an end of the window that is no wall are wrong, by one
/// cell more after each step.
pub fn window(p: &Problem, start: &[f32], low: [isize; 3], size: [usize; 3]) -> Vec<[f64; 4]> {
    let count = size.iter().product::<usize>();
    let place = |index: usize| [index / size[2] / size[1], index / size[2] % size[1], index % size[2]];
    let cells = p.cells();
    let mut arrived: Vec<[f64; 19]> = (0..count)
        .map(|index| {
            let inside = place(index);
            let [z, y, x] =
                [0, 1, 2].map(|a| (low[a] + inside[a] as isize).rem_euclid(p.shape[a] as isize) as usize);
            let cell = (z * p.shape[1] + y) * p.shape[2] + x;
            let field = [0, 1, 2, 3].map(|f| f64::from(start[f * cells + cell]));
            std::array::from_fn(|i| equilibrium(i, field))
        })
        .collect();
    for _ in 0..p.steps {
        let mut next = vec![[0.0; 19]; count];
        for (cell, here) in arrived.iter().enumerate() {
            let field = moments(here);
            for i in 0..19 {
                let [cx, cy, cz] = DIRECTIONS[i];
                let kick = 3.0 * weight(i) * f64::from(cx) * f64::from(p.flow.force);
                let leaves = here[i] + f64::from(p.flow.omega) * (equilibrium(i, field) - here[i]) + kick;
                let to = beside(p, place(cell), size, [cz, cy, cx]);
                match to {
                    Some([z, y, x]) => next[(z * size[1] + y) * size[2] + x][i] = leaves,
                    None => {
                        let lid = p.flow.walls[1]
                            && cy == 1
                            && low[1] + place(cell)[1] as isize + 1 == p.shape[1] as isize;
                        let pushed = 6.0 * weight(i) * f64::from(cx) * f64::from(p.flow.lid);
                        next[cell][opposite(i)] = leaves - if lid { pushed } else { 0.0 };
                    }
                }
            }
        }
        arrived = next;
    }
    let half_a_kick = 0.5 * f64::from(p.flow.force);
    let finished = |g: &[f64; 19]| {
        let [d, ux, uy, uz] = moments(g);
        [d, ux + half_a_kick / (1.0 + d), uy, uz]
    };
    arrived.iter().map(finished).collect()
}

/// The cell one step along (z, y, x) inside the window; `None` where the step meets a wall or leaves the
/// window.
fn beside(p: &Problem, position: [usize; 3], size: [usize; 3], by: [i32; 3]) -> Option<[usize; 3]> {
    let mut to = position;
    for axis in 0..3 {
        let (next, n) = (position[axis] as isize + by[axis] as isize, size[axis] as isize);
        to[axis] = match next {
            next if (0..n).contains(&next) => next as usize,
            next if size[axis] == p.shape[axis] && !p.flow.walls[axis] => next.rem_euclid(n) as usize,
            _ => return None,
        };
    }
    Some(to)
}

/// f_i − w_i in equilibrium: w_i (δ + ρ (3 c·u + 4.5 (c·u)² − 1.5 u²)).
fn equilibrium(i: usize, [d, ux, uy, uz]: [f64; 4]) -> f64 {
    let [cx, cy, cz] = DIRECTIONS[i].map(f64::from);
    let along = cx * ux + cy * uy + cz * uz;
    let square = ux * ux + uy * uy + uz * uz;
    weight(i) * (d + (1.0 + d) * (3.0 * along + 4.5 * along * along - 1.5 * square))
}

/// δ = Σ g_i and u = Σ c_i g_i / (1 + δ).
fn moments(g: &[f64; 19]) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for (g, c) in g.iter().zip(DIRECTIONS) {
        sums[0] += g;
        for (sum, c) in sums[1..].iter_mut().zip(c) {
            *sum += g * f64::from(c);
        }
    }
    let [d, jx, jy, jz] = sums;
    [d, jx / (1.0 + d), jy / (1.0 + d), jz / (1.0 + d)]
}
