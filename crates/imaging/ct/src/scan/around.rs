//! Views in the order of their angles, and what lies between them.

use std::f64::consts::{PI, TAU};

use ndarray::{Array2, ArrayView2};

use crate::analytic::usual_gap;

/// A view stands for an angle that differs by this part of a step.
const SAME: f64 = 1e-3;
/// Views on both sides of an angle are interpolated up to this many steps between them.
const STEPS: f64 = 1.5;
/// Gaps of half a turn are interpolated up to this size, radian.
const FILLED: f64 = PI / 12.0;

/// Two views, and the share of the second.
pub(super) type Between = ([usize; 2], f32);

/// Views around a turn.
pub(super) struct Around {
    /// Ascending angles from 0 to 2π, and their views.
    angles: Vec<(f64, usize)>,
    /// The usual step, and the largest one.
    pub(super) step: f64,
    largest: usize,
}

impl Around {
    pub(super) fn new(angles: &[f64]) -> Self {
        let mut sorted: Vec<(f64, usize)> =
            angles.iter().enumerate().map(|(view, angle)| (angle.rem_euclid(TAU), view)).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gaps: Vec<f64> = (0..sorted.len()).map(|index| gap(&sorted, index)).collect();
        let largest = (0..gaps.len()).max_by(|&a, &b| gaps[a].total_cmp(&gaps[b])).unwrap_or(0);
        Self { step: usual_gap(&gaps), largest, angles: sorted }
    }

    /// The first angle after the largest gap.
    pub(super) fn start(&self) -> f64 {
        self.angles[(self.largest + 1) % self.angles.len()].0
    }

    /// The largest gap between directions, where opposite ones are one.
    pub(super) fn missing(&self) -> f64 {
        let mut half: Vec<f64> = self.angles.iter().map(|angle| angle.0.rem_euclid(PI)).collect();
        half.sort_by(f64::total_cmp);
        let around = half.first().map(|first| first + PI);
        let next = half.iter().skip(1).copied().chain(around);
        next.zip(&half).map(|(next, one)| next - one).fold(0.0, f64::max)
    }

    /// What stands for an angle: a view, or those on both sides of it if the gap between them is not larger
    /// than `most`.
    fn between(&self, angle: f64, most: f64) -> Option<Between> {
        let angle = angle.rem_euclid(TAU);
        let count = self.angles.len();
        let below = (self.angles.partition_point(|one| one.0 <= angle) + count - 1) % count;
        let gap = gap(&self.angles, below);
        let share = (angle - self.angles[below].0).rem_euclid(TAU) / gap;
        let ends = [self.angles[below].1, self.angles[(below + 1) % count].1];
        let same = SAME * self.step / gap;
        // Close to 2π as well, where rounding makes an angle one of the end of the turn.
        if share <= same || share >= TAU / gap - same {
            Some(([ends[0]; 2], 0.0))
        } else if share >= 1.0 - same {
            Some(([ends[1]; 2], 0.0))
        } else {
            (gap <= most).then_some((ends, share as f32))
        }
    }

    /// The view opposite to an angle.
    pub(super) fn opposite(&self, angle: f64) -> Option<Between> {
        self.between(angle + PI, STEPS * self.step)
    }

    /// Views in even steps over half a turn from an angle on, forwards or backwards.
    pub(super) fn half_turn(&self, start: f64, forwards: bool) -> Option<Vec<Between>> {
        let count = (PI / self.step).round().max(1.0) as usize;
        let step = if forwards { PI } else { -PI } / count as f64;
        let most = FILLED.max(STEPS * self.step);
        (0..count).map(|index| self.between(start + step * index as f64, most)).collect()
    }
}

/// The gap after an angle.
fn gap(angles: &[(f64, usize)], index: usize) -> f64 {
    angles.get(index + 1).map_or(angles[0].0 + TAU, |next| next.0) - angles[index].0
}

/// Interpolated views.
pub(super) fn interpolated(row: ArrayView2<'_, f32>, views: &[Between]) -> Array2<f32> {
    Array2::from_shape_fn((views.len(), row.dim().1), |(view, column)| {
        let ([first, second], share) = views[view];
        let value = row[[first, column]];
        if share == 0.0 { value } else { value + share * (row[[second, column]] - value) }
    })
}
