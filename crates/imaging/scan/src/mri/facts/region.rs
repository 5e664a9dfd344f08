use rayon::prelude::*;

/// The part of k-space that samples span: a box around the centre, with the ellipsoid or cylinder within it.
///
/// Coordinates are in the order x, y, z, in steps of the grid or in cycles per field of view.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Region {
    /// Lowest and highest cell along each axis.
    pub(super) cells: Vec<[i64; 2]>,
    /// Half-axes of the round part; none along an axis where the region is a box.
    round: Vec<Option<f64>>,
}

/// Corners of a round region hold this much beyond the ellipse at most.
const ROUND: f64 = 1.1;

impl Region {
    /// A box.
    pub(super) fn of_box(cells: Vec<[i64; 2]>) -> Self {
        let round = vec![None; cells.len()];
        Self { cells, round }
    }

    /// The region of a trajectory: round in the largest group of axes in which all points lie within an
    /// ellipse. Cells that points at the edge cover in part are left out.
    pub(super) fn spanned(extent: &[f64], points: impl ParallelIterator<Item = [f64; 3]>) -> Self {
        const GROUPS: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[1, 2]];
        let dims = extent.len();
        let mut scale = [0.0; 3];
        scale.iter_mut().zip(extent).for_each(|(scale, extent)| *scale = 1.0 / extent.max(0.5));
        let squares = points.map(|k| {
            let [x, y, z]: [f64; 3] = std::array::from_fn(|axis| (k[axis] * scale[axis]).powi(2));
            [x + y + z, x + y, x + z, y + z]
        });
        let larger = |a: [f64; 4], b: [f64; 4]| std::array::from_fn(|group| a[group].max(b[group]));
        let most = squares.reduce(|| [0.0; 4], larger);
        // An axis without extent makes no ellipse.
        let is_round = |(most, group): &(f64, &[usize])| {
            group.iter().all(|&axis| axis < dims && extent[axis] >= 1.0) && *most <= ROUND
        };
        let group = most.into_iter().zip(GROUPS).find(is_round).map_or(&[][..], |(_, group)| group);
        let reach = |axis: usize| (extent[axis] - 0.5).max(0.0);
        let cells = (0..dims).map(|axis| [-(reach(axis).floor() as i64), reach(axis).floor() as i64]);
        let round = (0..dims).map(|axis| group.contains(&axis).then(|| reach(axis).max(0.5)));
        Self { cells: cells.collect(), round: round.collect() }
    }

    pub(super) fn contains(&self, cell: &[i64]) -> bool {
        let within = |(&coordinate, [low, high]): (&i64, &[i64; 2])| (*low..=*high).contains(&coordinate);
        let part = |(&coordinate, half): (&i64, &Option<f64>)| {
            half.map_or(0.0, |half| (coordinate as f64 / half).powi(2))
        };
        cell.iter().zip(&self.cells).all(within) && cell.iter().zip(&self.round).map(part).sum::<f64>() <= 1.0
    }

    /// Cells along each axis of the box.
    pub(super) fn shape(&self) -> Vec<usize> {
        self.cells.iter().map(|[low, high]| (high - low + 1).max(0) as usize).collect()
    }

    /// The largest distance of a cell from the centre, and 1.
    pub(super) fn shells(&self) -> usize {
        let square = |[low, high]: &[i64; 2]| (low.unsigned_abs().max(high.unsigned_abs()) as f64).powi(2);
        self.cells.iter().map(square).sum::<f64>().sqrt().round() as usize + 1
    }

    /// Half of the box along each axis.
    pub(super) fn half(&self) -> Vec<f64> {
        self.cells.iter().map(|[low, high]| low.unsigned_abs().max(high.unsigned_abs()) as f64).collect()
    }

    /// The number of cells with each key, below `keys`.
    pub(super) fn counts_by(&self, keys: usize, key: impl Fn(&[i64]) -> usize + Sync) -> Vec<f64> {
        let Some((&[low, high], inner)) = self.cells.split_last() else { return vec![0.0; keys] };
        let count = |mut counts: Vec<f64>, outer: i64| {
            let mut cell: Vec<i64> = inner.iter().map(|[low, _]| *low).chain([outer]).collect();
            let empty = inner.iter().any(|[low, high]| low > high);
            let mut going = !empty;
            while going {
                if self.contains(&cell)
                    && let Some(count) = counts.get_mut(key(&cell))
                {
                    *count += 1.0;
                }
                // The next cell of this outermost place, with the first axis running fastest.
                going = inner.iter().zip(&mut cell).any(|([low, high], coordinate)| {
                    let more = *coordinate < *high;
                    *coordinate = if more { *coordinate + 1 } else { *low };
                    more
                });
            }
            counts
        };
        let add = |mut one: Vec<f64>, other: Vec<f64>| {
            one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
            one
        };
        let outer = low..high.saturating_add(1).max(low);
        outer.into_par_iter().fold(|| vec![0.0; keys], count).reduce(|| vec![0.0; keys], add)
    }

    /// The number of cells at each rounded distance from the centre.
    pub(super) fn counts(&self) -> Vec<f64> {
        self.counts_by(self.shells(), |cell| shell(cell.iter().map(|&coordinate| coordinate as f64)))
    }
}

/// The rounded distance of a point from the centre.
pub(super) fn shell(point: impl Iterator<Item = f64>) -> usize {
    (point.map(|k| k * k).sum::<f64>().sqrt() + 0.5) as usize
}
