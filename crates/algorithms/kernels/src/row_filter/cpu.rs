use num_complex::Complex32;
use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_line_fft::{Lines, plan_f32};

use super::Weights;

/// Transforms and the spectrum between them.
pub(super) struct Plan {
    /// h's spectrum over the length of the transforms, the inverse's scale included.
    spectrum: Vec<f32>,
    /// Transforms of the spectrum's length.
    lines: Lines<f32>,
}

impl Plan {
    pub(super) fn new(spectrum: Vec<f32>) -> Self {
        let lines = plan_f32(&[spectrum.len()]);
        Self { spectrum, lines }
    }

    pub(super) fn transform(&self) -> usize {
        self.spectrum.len()
    }

    /// Scratch memory of one thread for two rows.
    fn scratch(&self) -> (Vec<Complex32>, Vec<Complex32>) {
        let inner = self.lines.forward[0]
            .get_inplace_scratch_len()
            .max(self.lines.inverse[0].get_inplace_scratch_len());
        (vec![Complex32::default(); self.spectrum.len()], vec![Complex32::default(); inner])
    }

    /// Filters rows of `len` in place. The elements that weights belong to follow `before` others.
    pub(super) fn apply(
        &self,
        cpu: &Cpu,
        rows: &mut [f32],
        len: usize,
        weights: Option<&Weights>,
        before: usize,
    ) {
        let of_view = weights.map(|weights| (rows.len() / len / weights.views()).max(1));
        cpu.run(|| {
            rows.par_chunks_mut(2 * len).enumerate().for_each_init(
                || self.scratch(),
                |(line, inner), (index, pair)| {
                    if let (Some(weights), Some(rows)) = (weights, of_view) {
                        for (row, values) in pair.chunks_mut(len).enumerate() {
                            let row = 2 * index + row;
                            weights.apply(row / rows, row % rows, &mut values[before..]);
                        }
                    }
                    let (first, second) = pair.split_at_mut(len);
                    line.fill(Complex32::default());
                    line.iter_mut().zip(&*first).for_each(|(to, from)| to.re = *from);
                    line.iter_mut().zip(&*second).for_each(|(to, from)| to.im = *from);
                    self.lines.forward[0].process_with_scratch(line, inner);
                    line.iter_mut().zip(&self.spectrum).for_each(|(value, factor)| *value *= *factor);
                    self.lines.inverse[0].process_with_scratch(line, inner);
                    first.iter_mut().zip(&*line).for_each(|(to, from)| *to = from.re);
                    second.iter_mut().zip(&*line).for_each(|(to, from)| *to = from.im);
                },
            );
        });
    }
}

impl Weights {
    /// Multiplies a row of a view.
    fn apply(&self, view: usize, row: usize, values: &mut [f32]) {
        let (columns, points) = (self.columns(), &self.points.cpu()[3 * view..]);
        let table = &self.table.cpu()[view * columns..(view + 1) * columns];
        let v = (row as f32 - points[0]) * self.pitch_mm[1] * points[2];
        for (column, (value, weight)) in values.iter_mut().zip(table).enumerate() {
            let u = (column as f32 - points[1]) * self.pitch_mm[0] * points[2];
            *value *= weight / (1.0 + u * u + v * v).sqrt();
        }
    }
}
