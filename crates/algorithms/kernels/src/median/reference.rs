//! The reference: every window is sorted.

/// The element of an axis of `count` at a place that may lie beyond its ends, where the axis is mirrored.
pub fn mirrored(place: i64, count: usize) -> usize {
    let count = count as i64;
    let inside = place.rem_euclid(2 * count);
    (if inside < count { inside } else { 2 * count - 1 - inside }) as usize
}

/// The medians of boxes with `radius` elements on each side, along each of the axes z, y, x.
pub fn boxed(values: &[f32], shape: [usize; 3], radius: [usize; 3]) -> Vec<f32> {
    let [nz, ny, nx] = shape;
    let around = |centre: usize, axis: usize| {
        let reach = radius[axis] as i64;
        (centre as i64 - reach..=centre as i64 + reach).map(move |place| mirrored(place, shape[axis]))
    };
    let mut out = Vec::with_capacity(values.len());
    for voxel in 0..nz * ny * nx {
        let [z, y, x] = [voxel / nx / ny, voxel / nx % ny, voxel % nx];
        let mut window: Vec<f32> = around(z, 0)
            .flat_map(|z| around(y, 1).map(move |y| (z, y)))
            .flat_map(|(z, y)| around(x, 2).map(move |x| values[(z * ny + y) * nx + x]))
            .collect();
        window.sort_by(f32::total_cmp);
        out.push(window[window.len() / 2]);
    }
    out
}
