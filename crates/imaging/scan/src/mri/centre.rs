//! The fully sampled centre of k-space on a grid.

use std::ops::Range;

use ndarray::{ArrayD, Dimension as _};

/// Below this width nothing of a coil's shape can be told.
pub const MIN_WIDTH: usize = 4;

/// The centred part of an axis of `n`, `width` wide or less.
///
/// ```
/// assert_eq!(rayspin_scan::mri::centre_of(9, 4), 2..6);
/// assert_eq!(rayspin_scan::mri::centre_of(3, 4), 0..3);
/// ```
pub fn centre_of(n: usize, width: usize) -> Range<usize> {
    let extent = width.min(n);
    let start = n / 2 - extent / 2;
    start..start + extent
}

/// The widest centred box without position `index` of `n`: wider ones hold it.
pub(super) fn reach(index: usize, n: usize) -> usize {
    let offset = index as isize - (n / 2) as isize;
    // A box of width w covers offsets -w/2 ..= (w-1)/2.
    if offset < 0 { (-offset) as usize * 2 - 1 } else { offset as usize * 2 }
}

/// Width of the widest centred cube (cut at short axes) in which everything is sampled.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_scan::mri::sampled_centre;
///
/// let lines = ArrayD::from_shape_fn(vec![16, 12], |index| (5..11).contains(&index[0]));
/// assert_eq!(sampled_centre(&lines), 6);
/// ```
pub fn sampled_centre(sampled: &ArrayD<bool>) -> usize {
    let shape = sampled.shape();
    // The distance of each missing position from the centre bounds the width; -half..half is even, hence the
    // two sides.
    let mut width = shape.iter().copied().max().unwrap_or(0);
    let Some((&n, outer)) = shape.split_last() else { return width };
    for (row, index) in sampled.rows().into_iter().zip(ndarray::indices(outer)) {
        let of_row =
            index.as_array_view().iter().zip(outer).map(|(&index, &n)| reach(index, n)).max().unwrap_or(0);
        if of_row < width {
            let missing = row.iter().enumerate().filter(|(_, known)| !**known);
            width = missing.map(|(index, _)| reach(index, n).max(of_row)).fold(width, usize::min);
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use ndarray::IxDyn;

    use super::*;

    #[test]
    fn the_sampled_centre_is_measured_on_both_sides() {
        let full = ArrayD::from_elem(IxDyn(&[16, 12]), true);
        assert_eq!(sampled_centre(&full), 16);
        let centred = |width: usize| {
            ArrayD::from_shape_fn(IxDyn(&[20, 30]), |i| {
                let inside = |v: usize, n: usize| {
                    let offset = v as isize - (n / 2) as isize;
                    offset >= -(width as isize) / 2 && offset <= (width as isize - 1) / 2
                };
                inside(i[0], 20) && inside(i[1], 30)
            })
        };
        for width in [1, 2, 5, 8] {
            assert_eq!(sampled_centre(&centred(width)), width, "width {width}");
        }
        let mut hole = ArrayD::from_elem(IxDyn(&[8, 8]), true);
        hole[[4, 4]] = false;
        assert_eq!(sampled_centre(&hole), 0);
    }
}
