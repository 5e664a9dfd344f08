use ndarray::ArrayView2;
use rayspin_core::{Error, Result};

/// Lines (z, y) with z = oz + m·rz and y ≡ oy + shift·m mod ry, m any whole number. This is regular
/// undersampling along one or two axes. Where shift is not 0 it is sheared from one row to the next
/// (CAIPIRINHA).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lattice {
    /// rz and ry.
    pub step: [usize; 2],
    /// By how much a row of the lattice is sheared against the row before it.
    pub shift: usize,
    /// oz and oy.
    pub origin: [usize; 2],
}

impl Lattice {
    /// Largest acceleration along an axis that lines are filled in for.
    pub const LARGEST: usize = 8;

    /// Where a line stands: steps from the row and from the line of the lattice before it; \[0, 0\] on the
    /// lattice.
    pub fn class(&self, z: usize, y: usize) -> [usize; 2] {
        let [rz, ry] = self.step;
        let from = z as isize - self.origin[0] as isize;
        let (row, cz) = (from.div_euclid(rz as isize), from.rem_euclid(rz as isize));
        let first = self.origin[1] as isize + self.shift as isize * row;
        [cz as usize, (y as isize - first).rem_euclid(ry as isize) as usize]
    }

    /// Sources of a class as steps (z, y): in the nearest rows of the lattice, the nearest lines of each.
    pub fn sources(&self, [cz, cy]: [usize; 2], flat: bool) -> Vec<[isize; 2]> {
        let [rz, ry] = self.step.map(|r| r as isize);
        let rows: &[isize] = match (flat, cz) {
            (true, _) => &[0],
            (false, 0) => &[-1, 0, 1],
            _ => &[0, 1],
        };
        let mut out = Vec::new();
        for &row in rows {
            let dz = row * rz - cz as isize;
            let next = (self.shift as isize * row - cy as isize).rem_euclid(ry);
            let steps = match (next, flat) {
                (0, _) => -1..2,
                (_, true) => -2..2,
                (_, false) => -1..1,
            };
            out.extend(steps.map(|k| [dz, next + k * ry]));
        }
        out
    }

    /// The coarsest lattice within the box around the sampled lines. Sampled lines off the lattice form a
    /// full block.
    ///
    /// Errors: an irregular pattern, or one without gaps.
    pub fn of(lines: ArrayView2<'_, bool>) -> Result<Self> {
        Self::of_at_most(lines, Self::LARGEST)
    }

    /// The same with at most this acceleration along each axis.
    ///
    /// Errors: as [`Lattice::of`].
    pub fn of_at_most(lines: ArrayView2<'_, bool>, largest: usize) -> Result<Self> {
        let (nz, ny) = lines.dim();
        let sampled: Vec<[usize; 2]> =
            lines.indexed_iter().filter(|(_, s)| **s).map(|((z, y), _)| [z, y]).collect();
        let block = |points: &mut dyn Iterator<Item = [usize; 2]>| {
            points.fold(None, |block: Option<[[usize; 2]; 2]>, p| {
                let [low, high] = block.unwrap_or([p, p]);
                Some([[low[0].min(p[0]), low[1].min(p[1])], [high[0].max(p[0]), high[1].max(p[1])]])
            })
        };
        let area = |[low, high]: [[usize; 2]; 2]| (high[0] - low[0] + 1) * (high[1] - low[1] + 1);
        let inside = |[low, high]: [[usize; 2]; 2], [z, y]: [usize; 2]| {
            (low[0]..=high[0]).contains(&z) && (low[1]..=high[1]).contains(&y)
        };
        let Some(bounds) = block(&mut sampled.iter().copied()) else {
            return Err(Error::value("k-space", "at least one line", "none"));
        };
        if sampled.len() == area(bounds) {
            return Err(Error::value("method", "cartesian for a grid without gaps", "grappa"));
        }
        let fits = |lattice: &Self| {
            let whole = (bounds[0][0]..=bounds[1][0]).all(|z| {
                (bounds[0][1]..=bounds[1][1]).all(|y| lattice.class(z, y) != [0, 0] || lines[[z, y]])
            });
            if !whole {
                return false;
            }
            let beside: Vec<_> =
                sampled.iter().copied().filter(|&[z, y]| lattice.class(z, y) != [0, 0]).collect();
            block(&mut beside.iter().copied())
                .is_none_or(|beside| sampled.iter().filter(|&&p| inside(beside, p)).count() == area(beside))
        };
        let mut steps: Vec<[usize; 2]> = (1..=largest.min(nz))
            .flat_map(|rz| (1..=largest.min(ny)).map(move |ry| [rz, ry]))
            .filter(|[rz, ry]| rz * ry > 1)
            .collect();
        steps.sort_by_key(|[rz, ry]| std::cmp::Reverse(rz * ry));
        for step in steps {
            let shifts = if nz > 1 { step[1] } else { 1 };
            for shift in 0..shifts {
                for oz in 0..step[0] {
                    for oy in 0..step[1] {
                        let lattice = Self { step, shift, origin: [oz, oy] };
                        if fits(&lattice) {
                            return Ok(lattice);
                        }
                    }
                }
            }
        }
        Err(Error::value(
            "sampling for grappa",
            format!(
                "every R-th line, R up to {largest} along each axis, and a full block of calibration lines"
            ),
            "an irregular pattern",
        ))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    #[test]
    fn lattices_are_found_with_and_without_calibration() {
        for (nz, ny, step, shift, origin) in [
            (1, 40, [1, 2], 0, [0, 1]),
            (1, 61, [1, 5], 0, [0, 3]),
            (20, 24, [2, 3], 0, [1, 2]),
            (20, 24, [2, 2], 1, [0, 0]),
            (16, 24, [1, 4], 2, [0, 3]),
        ] {
            let wanted = Lattice { step, shift, origin };
            for calibration in [0, 8] {
                let lines = Array2::from_shape_fn((nz, ny), |(z, y)| {
                    let near =
                        |i: usize, n: usize| i + calibration / 2 >= n / 2 && i < n / 2 + calibration / 2;
                    wanted.class(z, y) == [0, 0] || (near(y, ny) && (nz == 1 || near(z, nz)))
                });
                let found = Lattice::of(lines.view()).unwrap();
                assert_eq!(found.step.iter().product::<usize>(), step.iter().product::<usize>());
                for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
                    assert_eq!(
                        found.class(z, y) == [0, 0],
                        wanted.class(z, y) == [0, 0],
                        "{found:?} {wanted:?}"
                    );
                    // Sources lie on the lattice, whatever the class.
                    for [dz, dy] in found.sources(found.class(z, y), nz == 1) {
                        let at = |i: usize, d: isize| (i as isize + d) as usize;
                        if z as isize + dz >= 0 && y as isize + dy >= 0 {
                            assert_eq!(found.class(at(z, dz), at(y, dy)), [0, 0]);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn irregular_and_full_patterns_are_refused() {
        let random =
            Array2::from_shape_fn((1, 40), |(_, y)| [0, 3, 4, 9, 15, 16, 17, 25, 33, 38].contains(&y));
        assert!(Lattice::of(random.view()).is_err());
        assert!(Lattice::of(Array2::from_elem((3, 8), true).view()).is_err());
        assert!(Lattice::of(Array2::from_elem((3, 8), false).view()).is_err());
    }
}
