//! The f64 references, as plain as the formulas.

use rayspin_core::{ProjectionGeometry, RaySource, VolumeGrid};

use super::Weighting;

/// A ray as its start, its direction per unit of a parameter, and the range of the parameter that it covers.
struct Ray {
    start: [f64; 3],
    along: [f64; 3],
    range: [f64; 2],
}

/// The ray of a pixel `[view, row, column]`, in voxel indices.
fn ray(geometry: &ProjectionGeometry, grid: &VolumeGrid, [view, row, column]: [usize; 3]) -> Ray {
    let (source, pixel) = geometry.ray(view, row, column);
    let (first, spacing) = (grid.first_mm(), grid.spacing_mm());
    let index =
        |p: [f64; 3]| -> [f64; 3] { std::array::from_fn(|axis| (p[axis] - first[axis]) / spacing[axis]) };
    let (start, end) = (index(source), index(pixel));
    let along = std::array::from_fn(|axis| end[axis] - start[axis]);
    let range = match geometry.is_parallel() {
        true => [f64::NEG_INFINITY, f64::INFINITY],
        false => [0.0, 1.0],
    };
    Ray { start, along, range }
}

/// Length of a ray's unit of the parameter, mm.
fn length(ray: &Ray, grid: &VolumeGrid) -> f64 {
    ray.along.iter().zip(grid.spacing_mm()).map(|(d, s)| (d * s) * (d * s)).sum::<f64>().sqrt()
}

/// Calls `visit(voxel, weight)` for every voxel that Joseph's method reads along the ray of pixel `[view,
/// row, column]`.
pub(super) fn joseph(
    geometry: &ProjectionGeometry,
    grid: &VolumeGrid,
    pixel: [usize; 3],
    mut visit: impl FnMut([usize; 3], f64),
) {
    let ray = ray(geometry, grid, pixel);
    let size = grid.shape_xyz();
    let mut main = 0;
    for axis in 1..3 {
        if ray.along[axis].abs() > ray.along[main].abs() {
            main = axis;
        }
    }
    let others: Vec<usize> = (0..3).filter(|&axis| axis != main).collect();
    let to_plane = |plane: f64| (plane - ray.start[main]) / ray.along[main];
    let step = length(&ray, grid) / ray.along[main].abs();
    for plane in 0..size[main] {
        let middle = plane as f64;
        let (s, e) = (to_plane(middle - 0.5), to_plane(middle + 0.5));
        let covered = s.max(e).min(ray.range[1]) - s.min(e).max(ray.range[0]);
        let part = (covered / (s - e).abs()).max(0.0);
        let t = to_plane(middle);
        let place: [f64; 3] = std::array::from_fn(|axis| ray.start[axis] + t * ray.along[axis]);
        for corner in 0..4 {
            let (mut voxel, mut weight, mut inside) = ([0; 3], part * step, true);
            voxel[main] = plane;
            for (bit, &axis) in others.iter().enumerate() {
                let low = place[axis].floor();
                let fraction = place[axis] - low;
                let (index, share) =
                    if corner >> bit & 1 == 0 { (low, 1.0 - fraction) } else { (low + 1.0, fraction) };
                inside &= index >= 0.0 && index < size[axis] as f64;
                voxel[axis] = index.max(0.0) as usize;
                weight *= share;
            }
            if inside && weight > 0.0 {
                visit([voxel[2], voxel[1], voxel[0]], weight);
            }
        }
    }
}

/// Calls `visit(voxel, length)` for every voxel that the ray of pixel `[view, row, column]` passes through,
/// with the length in mm (R. L. Siddon, Med Phys 12:252, 1985).
pub(super) fn siddon(
    geometry: &ProjectionGeometry,
    grid: &VolumeGrid,
    pixel: [usize; 3],
    mut visit: impl FnMut([usize; 3], f64),
) {
    let ray = ray(geometry, grid, pixel);
    let size = grid.shape_xyz();
    let mut crossings = Vec::new();
    let mut range = ray.range;
    for (axis, &count) in size.iter().enumerate() {
        let (low, high) = (-0.5, count as f64 - 0.5);
        if ray.along[axis] == 0.0 {
            if ray.start[axis] < low || ray.start[axis] > high {
                return;
            }
            continue;
        }
        let to = |index: f64| (index - ray.start[axis]) / ray.along[axis];
        range = [range[0].max(to(low).min(to(high))), range[1].min(to(low).max(to(high)))];
        crossings.extend((0..=count).map(|i| to(i as f64 - 0.5)));
    }
    crossings.extend(range);
    crossings.retain(|t| (range[0]..=range[1]).contains(t));
    crossings.sort_by(f64::total_cmp);
    let whole = length(&ray, grid);
    for pair in crossings.windows(2) {
        let middle = 0.5 * (pair[0] + pair[1]);
        let index: [f64; 3] =
            std::array::from_fn(|axis| (ray.start[axis] + middle * ray.along[axis]).round());
        let inside = (0..3).all(|axis| index[axis] >= 0.0 && index[axis] < size[axis] as f64);
        if inside && pair[1] > pair[0] {
            visit([index[2] as usize, index[1] as usize, index[0] as usize], (pair[1] - pair[0]) * whole);
        }
    }
}

fn flat(shape: [usize; 3], index: [usize; 3]) -> usize {
    (index[0] * shape[1] + index[1]) * shape[2] + index[2]
}

fn pixels(shape: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [views, rows, columns] = shape;
    (0..views).flat_map(move |view| {
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [view, row, column]))
    })
}

/// Which weights of voxels a projection is made with.
type Weights = fn(&ProjectionGeometry, &VolumeGrid, [usize; 3], &mut dyn FnMut([usize; 3], f64));

/// Joseph's weights.
pub const JOSEPH: Weights = |geometry, grid, index, visit| joseph(geometry, grid, index, visit);
/// Siddon's weights.
pub const SIDDON: Weights = |geometry, grid, index, visit| siddon(geometry, grid, index, visit);

/// Line integrals `[view, row, column]` of a volume `[z, y, x]`.
pub fn forward(
    weights: Weights,
    geometry: &ProjectionGeometry,
    grid: &VolumeGrid,
    volume: &[f64],
) -> Vec<f64> {
    pixels(geometry.shape()).map(|index| integral(weights, geometry, grid, volume, index)).collect()
}

fn integral<V: Copy + Into<f64>>(
    weights: Weights,
    geometry: &ProjectionGeometry,
    grid: &VolumeGrid,
    volume: &[V],
    index: [usize; 3],
) -> f64 {
    let mut sum = 0.0;
    let value = |voxel| -> f64 { volume[flat(grid.shape_zyx(), voxel)].into() };
    weights(geometry, grid, index, &mut |voxel, weight| sum += weight * value(voxel));
    sum
}

/// View, row and column, or z, y and x, of a flat index.
fn unflat(shape: [usize; 3], index: usize) -> [usize; 3] {
    [index / (shape[1] * shape[2]), index / shape[2] % shape[1], index % shape[2]]
}

/// One of the line integrals of [`forward`] by Joseph's method.
pub fn pixel<V: Copy + Into<f64>>(
    geometry: &ProjectionGeometry,
    grid: &VolumeGrid,
    volume: &[V],
    index: usize,
) -> f64 {
    integral(JOSEPH, geometry, grid, volume, unflat(geometry.shape(), index))
}

/// One voxel of [`adjoint`] by Joseph's method, from the rays that pass near it.
pub fn adjoint_at(geometry: &ProjectionGeometry, grid: &VolumeGrid, values: &[f64], element: usize) -> f64 {
    let (voxel, first, spacing) = (unflat(grid.shape_zyx(), element), grid.first_mm(), grid.spacing_mm());
    let [views, rows, columns] = geometry.shape();
    let mut sum = 0.0;
    for view in 0..views {
        // The box of all places where Joseph's method reads the voxel, on the detector.
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        for corner in 0..8 {
            let by = |bit: usize| if corner >> bit & 1 == 0 { -1.0 } else { 1.0 };
            let index = [voxel[2] as f64 + by(0), voxel[1] as f64 + by(1), voxel[0] as f64 + by(2)];
            let point = std::array::from_fn(|axis| first[axis] + index[axis] * spacing[axis]);
            let place = geometry.project(view, point);
            for axis in 0..2 {
                low[axis] = low[axis].min(place.map_or(f64::NEG_INFINITY, |place| place[axis]));
                high[axis] = high[axis].max(place.map_or(f64::INFINITY, |place| place[axis]));
            }
        }
        let within = |axis: usize, count: usize| {
            let end = (high[axis].floor() + 1.0).clamp(0.0, count as f64) as usize;
            (low[axis].ceil().clamp(0.0, count as f64) as usize).min(end)..end
        };
        for row in within(0, rows) {
            for column in within(1, columns) {
                let value = values[flat(geometry.shape(), [view, row, column])];
                let visit = &mut |read: [usize; 3], weight: f64| {
                    sum += if read == voxel { weight * value } else { 0.0 }
                };
                JOSEPH(geometry, grid, [view, row, column], visit);
            }
        }
    }
    sum
}

/// The transpose of [`forward`].
pub fn adjoint(
    weights: Weights,
    geometry: &ProjectionGeometry,
    grid: &VolumeGrid,
    values: &[f64],
) -> Vec<f64> {
    let mut volume = vec![0.0; grid.shape_zyx().iter().product()];
    for (index, value) in pixels(geometry.shape()).zip(values) {
        weights(geometry, grid, index, &mut |voxel, weight| {
            volume[flat(grid.shape_zyx(), voxel)] += weight * value
        });
    }
    volume
}

/// Σ over views of the weighted projection at the place on which a voxel's centre falls, linear between
/// pixels, 0 beyond the detector.
pub fn backproject(
    geometry: &ProjectionGeometry,
    grid: &VolumeGrid,
    weighting: Weighting,
    values: &[f64],
) -> Vec<f64> {
    let count: usize = grid.shape_zyx().iter().product();
    (0..count).map(|index| backproject_at(geometry, grid, weighting, values, index)).collect()
}

/// One voxel of [`backproject`].
pub fn backproject_at<V: Copy + Into<f64>>(
    geometry: &ProjectionGeometry,
    grid: &VolumeGrid,
    weighting: Weighting,
    values: &[V],
    element: usize,
) -> f64 {
    let ([k, j, i], first, spacing) = (unflat(grid.shape_zyx(), element), grid.first_mm(), grid.spacing_mm());
    let [views, rows, columns] = geometry.shape();
    let index = [i as f64, j as f64, k as f64];
    let point: [f64; 3] = std::array::from_fn(|axis| first[axis] + index[axis] * spacing[axis]);
    let mut sum = 0.0;
    for view in 0..views {
        let Some([row, column]) = geometry.project(view, point) else { continue };
        let (r, c) = (row.floor(), column.floor());
        let mut value = 0.0;
        for (index_r, share_r) in [(r, 1.0 - (row - r)), (r + 1.0, row - r)] {
            for (index_c, share_c) in [(c, 1.0 - (column - c)), (c + 1.0, column - c)] {
                let inside =
                    (0.0..rows as f64).contains(&index_r) && (0.0..columns as f64).contains(&index_c);
                if inside {
                    let pixel = [view, index_r as usize, index_c as usize];
                    value += share_r * share_c * values[flat(geometry.shape(), pixel)].into();
                }
            }
        }
        let weight = match (weighting, geometry.views()[view].source) {
            (Weighting::Magnification, RaySource::Point(source)) => {
                // The detector's distance from the source over the voxel's, both along the detector's normal.
                let pose = geometry.views()[view];
                let normal = pose.towards_source();
                let depth = |p: [f64; 3]| -> f64 { (0..3).map(|a| (source[a] - p[a]) * normal[a]).sum() };
                let m = depth(pose.detector_mm) / depth(point);
                m * m
            }
            _ => 1.0,
        };
        sum += weight * value;
    }
    sum
}
