//! Outputs as rows and columns of a real matrix product.

use crate::nudft::grid::{Axis, Grid};

/// Points a + b i, components x, y, z in fields of view.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct List {
    pub(super) a: [f64; 3],
    pub(super) b: [f64; 3],
}

/// Equally spaced points along an axis, and how far apart their outputs are.
#[derive(Debug, Clone, Copy)]
struct Line {
    component: usize,
    n: f64,
    first: f64,
    count: usize,
    stride: usize,
}

impl Line {
    fn new(axis: &Axis, stride: usize) -> Option<Self> {
        let component = axis.component?;
        Some(Self { component, n: axis.n as f64, first: axis.first as f64, count: axis.count, stride })
    }

    /// Without the first `skipped` points, `count` of them.
    fn part(self, skipped: usize, count: usize) -> Self {
        Self { first: self.first + skipped as f64, count, ..self }
    }
}

/// A box of outputs, slowest axis first, at a fixed place along the other components.
#[derive(Debug, Clone)]
pub(super) struct Target {
    lines: Vec<Line>,
    fixed: [f64; 3],
    pub(super) base: usize,
}

/// Rows (u, v) and columns x of outputs. `tile.cuh` explains the fields.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rows {
    pub(super) u: List,
    pub(super) v: List,
    /// Offsets of the pairs of columns from the middle of the columns, which is part of `u`.
    pub(super) x: List,
    pub(super) columns: usize,
    pub(super) nu: usize,
    pub(super) nv: usize,
    pub(super) limit: usize,
    pub(super) wu: usize,
    pub(super) wv: usize,
    pub(super) wx: usize,
    pub(super) su: usize,
    pub(super) sv: usize,
    pub(super) sx: usize,
}

/// Points v of rows that come from one axis, and of columns where that is the only one.
const SPLIT: usize = 8;
const COLUMNS: usize = 64;

fn lines(grid: &Grid) -> Vec<Line> {
    let [_, y, x] = grid.axes.map(|axis| axis.count);
    grid.axes.iter().zip([y * x, x, 1]).filter_map(|(axis, stride)| Line::new(axis, stride)).collect()
}

impl Target {
    pub(super) fn of(grid: &Grid) -> Self {
        Self { lines: lines(grid), fixed: [0.0; 3], base: 0 }
    }

    pub(super) fn points(&self) -> usize {
        self.lines.iter().map(|line| line.count).product()
    }

    /// The same outputs side by side.
    pub(super) fn compact(&self) -> Self {
        let mut compact = Self { base: 0, ..self.clone() };
        let mut stride = 1;
        for line in compact.lines.iter_mut().rev() {
            line.stride = stride;
            stride *= line.count;
        }
        compact
    }

    /// Number of points along its axes, 1 for those that it does not have.
    pub(super) fn counts(&self) -> [usize; 3] {
        self.padded(1, |line| line.count)
    }

    /// How far apart they are.
    pub(super) fn strides(&self) -> [usize; 3] {
        self.padded(0, |line| line.stride)
    }

    fn padded(&self, absent: usize, value: impl Fn(&Line) -> usize) -> [usize; 3] {
        let mut out = [absent; 3];
        for (out, line) in out.iter_mut().rev().zip(self.lines.iter().rev()) {
            *out = value(line);
        }
        out
    }

    /// An axis of rows is split into eights where there is no second one, the columns' axis into runs of 64
    /// where there is no other.
    pub(super) fn rows(&self) -> Rows {
        let mut rows = Rows { u: List { a: self.fixed, ..List::default() }, ..Rows::default() };
        let Some((x, others)) = self.lines.split_last() else {
            // A single point: one row and one column.
            return Rows { columns: 1, nu: 1, nv: 1, limit: 1, ..rows };
        };
        rows.columns = if others.is_empty() { x.count.min(COLUMNS) } else { x.count };
        let (c, step) = (x.component, 1.0 / x.n);
        rows.x.a[c] = if rows.columns.is_multiple_of(2) { 0.5 * step } else { 0.0 };
        rows.x.b[c] = step;
        rows.u.a[c] += (x.first + 0.5 * (rows.columns as f64 - 1.0)) * step;
        rows.sx = x.stride;
        // The axis of the rows, how many points of it v and u step over.
        let (axis, v, u) = match others {
            [z, y] => {
                rows.u.a[z.component] += z.first / z.n;
                rows.u.b[z.component] = 1.0 / z.n;
                (rows.nu, rows.su) = (z.count, z.stride);
                rows.v.a[y.component] = y.first / y.n;
                rows.v.b[y.component] = 1.0 / y.n;
                (rows.nv, rows.sv) = (y.count, y.stride);
                (rows.wv, rows.limit) = (1, y.count);
                return rows;
            }
            [y, ..] => {
                rows.u.a[y.component] += y.first / y.n;
                (y, 1, SPLIT)
            }
            [] => {
                rows.wx = 1;
                (x, COLUMNS, COLUMNS * SPLIT)
            }
        };
        rows.u.b[axis.component] = u as f64 / axis.n;
        rows.v.b[axis.component] = v as f64 / axis.n;
        rows.nu = axis.count.div_ceil(u);
        rows.nv = axis.count.div_ceil(v).min(SPLIT);
        (rows.su, rows.sv) = (u * axis.stride, v * axis.stride);
        (rows.wu, rows.wv, rows.limit) = (u, v, axis.count);
        rows
    }
}

/// The parts of Q that must be summed, given Q(−x) = conj Q(x). These are displacements 0 … n−1 of the first
/// axis, and its face at −n. Among negative displacements they are also the faces at −n of the other axes,
/// whose mirror images lie outside the grid.
pub(super) fn faces(grid: &Grid) -> Vec<Target> {
    let grid_lines = lines(grid);
    let half = |line: &Line| line.count / 2;
    let fixed_at = |line: &Line| {
        let mut fixed = [0.0; 3];
        fixed[line.component] = line.first / line.n;
        fixed
    };
    let Some((lead, rest)) = grid_lines.split_first() else { return Vec::new() };
    let n = half(lead);
    let mut targets = vec![
        Target { lines: [&[lead.part(n, n)], rest].concat(), fixed: [0.0; 3], base: n * lead.stride },
        Target { lines: rest.to_vec(), fixed: fixed_at(lead), base: 0 },
    ];
    for (i, face) in rest.iter().enumerate() {
        let mut lines = vec![lead.part(1, n - 1)];
        let mut base = lead.stride;
        for (j, line) in rest.iter().enumerate() {
            if j < i {
                lines.push(line.part(1, line.count - 1));
                base += line.stride;
            } else if j > i {
                lines.push(*line);
            }
        }
        targets.push(Target { lines, fixed: fixed_at(face), base });
    }
    targets.retain(|target| target.lines.iter().all(|line| line.count > 0));
    targets
}
