//! Pixels that show nothing of the object, which views and their mirror images do not share.

use ndarray::{Array2, ArrayView2};

/// The part of the range of values by which a pixel differs from all around it, or a column from those beside
/// it.
const APART: f32 = 0.5;
/// Pixels that are looked at for the range, at most.
const SAMPLES: usize = 1 << 16;
/// A column does not vary if its standard deviation is below this part of the largest one.
const STILL: f64 = 1e-3;

/// Line integrals `[view, column]` without dead columns and without single pixels that are far from all
/// others around them. Others stay as they are.
pub(super) fn mended(row: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut values = row.to_owned();
    let apart = APART * range(row);
    if apart > 0.0 {
        mend_columns(&mut values, apart);
        mend_pixels(&mut values, apart);
    }
    values
}

/// From the 2nd to the 98th percentile.
fn range(row: ArrayView2<'_, f32>) -> f32 {
    let mut some: Vec<f32> = row.iter().step_by(row.len().div_ceil(SAMPLES).max(1)).copied().collect();
    some.sort_by(f32::total_cmp);
    let quantile =
        |part: f64| some.get((part * (some.len().max(1) - 1) as f64) as usize).copied().unwrap_or(0.0);
    quantile(0.98) - quantile(0.02)
}

/// Columns that do not vary, and differ from both columns beside them that do, become what is between these.
fn mend_columns(values: &mut Array2<f32>, apart: f32) {
    let columns = values.dim().1;
    let (means, deviations): (Vec<f32>, Vec<f64>) = values
        .columns()
        .into_iter()
        .map(|column| {
            let count = column.len() as f64;
            let mean = column.iter().map(|value| f64::from(*value)).sum::<f64>() / count;
            let square = column.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>();
            (mean as f32, (square / count).sqrt())
        })
        .unzip();
    let largest = deviations.iter().copied().fold(0.0, f64::max);
    let still = |column: &usize| deviations[*column] <= STILL * largest;
    let mut from = 0;
    while let Some(first) = (from..columns).find(still) {
        let end = (first..columns).find(|column| !still(column)).unwrap_or(columns);
        from = end;
        let beside = [first.checked_sub(1), (end < columns).then_some(end)];
        let differs = |column: usize| {
            beside.iter().flatten().all(|&other| (means[column] - means[other]).abs() > apart)
        };
        // Air and saturated pixels do not vary either, but go on where other columns begin.
        if beside == [None, None] || !(first..end).all(differs) {
            continue;
        }
        for column in first..end {
            let share = (column + 1 - first) as f32 / (end + 1 - first) as f32;
            for mut view in values.rows_mut() {
                let [before, after] = beside.map(|other| other.map(|other| view[other]));
                view[column] = match (before, after) {
                    (Some(before), Some(after)) => before + share * (after - before),
                    (one, other) => one.or(other).unwrap_or(0.0),
                };
            }
        }
    }
}

/// A pixel above all but one of those around it, or below, by more than `apart` becomes their median.
fn mend_pixels(values: &mut Array2<f32>, apart: f32) {
    let (views, columns) = values.dim();
    let from = values.clone();
    let mut around = Vec::with_capacity(8);
    for ((view, column), value) in values.indexed_iter_mut() {
        around.clear();
        for v in view.saturating_sub(1)..(view + 2).min(views) {
            for c in column.saturating_sub(1)..(column + 2).min(columns) {
                if (v, c) != (view, column) {
                    around.push(from[[v, c]]);
                }
            }
        }
        if around.len() < 3 {
            continue;
        }
        around.sort_by(f32::total_cmp);
        let [low, high] = [around[1] - apart, around[around.len() - 2] + apart];
        if *value < low || *value > high {
            *value = around[around.len() / 2];
        }
    }
}
