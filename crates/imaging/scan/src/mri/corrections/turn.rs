//! Products along the transform of a readout: phases of pixels, which shift its samples.

use std::f64::consts::TAU;

use rayspin_core::{C32, C64};

use super::Readout;

/// Transforms of readouts of one length, and what their pixels are multiplied by.
pub(super) struct Turn {
    transform: rayspin_line_fft::Lines<f32>,
    turns: Vec<C32>,
}

impl Turn {
    /// What takes a phase of e^{i(constant + 2π shift x / n)} from readouts of `n` samples; x counts pixels
    /// from the middle of the field of view.
    pub(super) fn new(n: usize, constant: f64, shift: f64) -> Self {
        let phase = |index: usize| -(constant + TAU * shift / n as f64 * place(index, n));
        // The two transforms multiply by n.
        let turn = |index: usize| C32::from_polar(1.0 / n as f32, phase(index).rem_euclid(TAU) as f32);
        Self { transform: rayspin_line_fft::plan_f32(&[n]), turns: (0..n).map(turn).collect() }
    }

    /// Turns the phase of a readout of n samples.
    pub(super) fn apply(&self, readout: &mut Readout<'_>) {
        let (n, kept, reversed) = (self.turns.len(), readout.kept.clone(), readout.reversed);
        let index = |sample: usize| if reversed { n - 1 - sample } else { sample };
        let mut line = vec![C32::ZERO; n];
        for mut row in readout.change().data.rows_mut() {
            line.fill(C32::ZERO);
            kept.clone().for_each(|sample| line[index(sample)] = row[sample]);
            self.transform.inverse.iter().for_each(|inverse| inverse.process(&mut line));
            line.iter_mut().zip(&self.turns).for_each(|(value, turn)| *value *= turn);
            self.transform.forward.iter().for_each(|forward| forward.process(&mut line));
            row.iter_mut().enumerate().for_each(|(sample, value)| *value = line[index(sample)]);
        }
    }
}

/// The place in pixels of a number of a transform.
pub(super) fn place(index: usize, n: usize) -> f64 {
    if index < n.div_ceil(2) { index as f64 } else { index as f64 - n as f64 }
}

/// A coil's samples that are kept, in the direction in which k rises, transformed: x = 0 first. The centre of
/// k-space has no phase.
pub(super) fn transformed(
    transform: &rayspin_line_fft::Lines<f64>,
    readout: &Readout<'_>,
    coil: usize,
) -> Vec<C64> {
    let n = readout.data.ncols();
    let mut line = vec![C64::ZERO; n];
    for sample in readout.kept.clone() {
        let value = readout.data[[coil, sample]];
        let index = if readout.reversed { n - 1 - sample } else { sample };
        line[index] = C64::new(value.re.into(), value.im.into());
    }
    transform.inverse.iter().for_each(|inverse| inverse.process(&mut line));
    let turn = |index: usize| C64::from_polar(1.0, -TAU * place(index, n) * readout.centre as f64 / n as f64);
    line.iter_mut().enumerate().for_each(|(index, value)| *value *= turn(index));
    line
}
