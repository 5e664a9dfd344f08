//! The f64 reference, as plain as the formulas: each pixel walks the cells of its ray one by one.

use rayspin_core::VolumeGrid;

use super::ray::MARGIN;
use super::{Mode, Scene, Transfer};

/// A volume that is linear between the centres of voxels. In the outer half voxel it has the value of the
/// nearest point between centres.
struct Field<'a> {
    volume: &'a [f32],
    size: [usize; 3],
    grid: &'a VolumeGrid,
}

impl Field<'_> {
    /// The value at an index.
    fn at(&self, index: [f64; 3]) -> f64 {
        let mut sum = 0.0;
        for corner in 0..8 {
            let (mut weight, mut voxel) = (1.0, [0; 3]);
            for axis in 0..3 {
                let place = index[axis].clamp(0.0, (self.size[axis] - 1) as f64);
                let low = place.floor();
                let next = corner >> axis & 1;
                weight *= if next == 1 { place - low } else { 1.0 - (place - low) };
                voxel[axis] = (low as usize + next).min(self.size[axis] - 1);
            }
            sum += weight
                * f64::from(self.volume[(voxel[2] * self.size[1] + voxel[1]) * self.size[0] + voxel[0]]);
        }
        sum
    }

    /// The gradient in 1/mm, by differences over two voxels.
    fn gradient(&self, index: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|axis| {
            let beside = |by: f64| {
                let mut place = index;
                place[axis] += by;
                self.at(place)
            };
            (beside(1.0) - beside(-1.0)) / (2.0 * self.grid.spacing_mm()[axis])
        })
    }
}

/// Red, green, blue and opacity of a value.
fn look(transfer: &Transfer, value: f64) -> [f64; 4] {
    let values = |index: usize| {
        let knot = transfer.knots()[index];
        [knot.colour[0], knot.colour[1], knot.colour[2], knot.opacity].map(f64::from)
    };
    let knots = transfer.knots();
    let after = knots.iter().take_while(|knot| f64::from(knot.value) <= value).count();
    if after == 0 || after == knots.len() {
        return values(after.saturating_sub(1));
    }
    let (from, to) = (f64::from(knots[after - 1].value), f64::from(knots[after].value));
    let (a, b) = (values(after - 1), values(after));
    std::array::from_fn(|channel| a[channel] + (value - from) / (to - from) * (b[channel] - a[channel]))
}

/// The numbers of a pixel of a volume `[z, y, x]`; four of them, as many as the mode has count.
pub fn pixel(scene: &Scene, grid: &VolumeGrid, volume: &[f32], row: usize, column: usize) -> [f64; 4] {
    let (start, along) = scene.camera.ray(row as f64, column as f64);
    let (first, spacing, size) = (grid.first_mm(), grid.spacing_mm(), grid.shape_xyz());
    // In voxel indices for each mm.
    let start: [f64; 3] = std::array::from_fn(|axis| (start[axis] - first[axis]) / spacing[axis]);
    let to: [f64; 3] = std::array::from_fn(|axis| along[axis] / spacing[axis]);
    let field = Field { volume, size, grid };
    let missed = match scene.mode {
        Mode::Maximum { missed } => [f64::from(missed), 0.0, 0.0, 0.0],
        _ => [0.0; 4],
    };
    let mut range = [if scene.camera.from_point { 0.0 } else { f64::NEG_INFINITY }, f64::INFINITY];
    let mut main = 0;
    for axis in 0..3 {
        let ends = [-0.5, size[axis] as f64 - 0.5];
        if to[axis] == 0.0 {
            if start[axis] < ends[0] || start[axis] > ends[1] {
                return missed;
            }
            continue;
        }
        let [one, other] = ends.map(|end| (end - start[axis]) / to[axis]);
        range = [range[0].max(one.min(other)), range[1].min(one.max(other))];
        if to[axis].abs() > MARGIN * to[main].abs() {
            main = axis;
        }
    }
    if range[0] >= range[1] {
        return missed;
    }
    let samples = scene.samples[main] as usize;
    let count = samples * size[main];
    // The position along the ray at which it reaches an index of the main axis.
    let reach = |index: f64| (index - start[main]) / to[main];
    let place = |t: f64| -> [f64; 3] { std::array::from_fn(|axis| start[axis] + t * to[axis]) };
    let (mut sum, mut most, mut light, mut clear) = (0.0, f64::NEG_INFINITY, [0.0; 3], 1.0);
    let mut before: Option<(f64, f64)> = None;
    for cell in 0..count {
        let cell = if to[main] > 0.0 { cell } else { count - 1 - cell };
        let border = |k: usize| reach(k as f64 / samples as f64 - 0.5);
        let (one, other) = (border(cell), border(cell + 1));
        let length = one.max(other).min(range[1]) - one.min(other).max(range[0]);
        if length <= 0.0 {
            continue;
        }
        let t = reach((cell as f64 + 0.5) / samples as f64 - 0.5);
        let value = field.at(place(t));
        match &scene.mode {
            Mode::XRay => sum += value * length,
            Mode::Maximum { .. } => most = most.max(value),
            Mode::Volume(transfer) => {
                let [r, g, b, opacity] = look(transfer, value);
                let through = (-opacity * length).exp();
                for (light, colour) in light.iter_mut().zip([r, g, b]) {
                    *light += clear * (1.0 - through) * colour;
                }
                clear *= through;
            }
            Mode::Surface(surface) => {
                let wanted = f64::from(surface.value);
                if value >= wanted {
                    let hit = before.map_or(t, |(t0, v0)| t0 + (wanted - v0) / (value - v0) * (t - t0));
                    return surface.lit(
                        scene.camera.axes,
                        field.gradient(place(hit)),
                        along,
                        grid.spacing_mm(),
                    );
                }
                before = Some((t, value));
            }
        }
    }
    match scene.mode {
        Mode::XRay => [sum, 0.0, 0.0, 0.0],
        // A ray may touch an edge of the box without a cell.
        Mode::Maximum { .. } if most == f64::NEG_INFINITY => missed,
        Mode::Maximum { .. } => [most, 0.0, 0.0, 0.0],
        Mode::Volume(_) => [light[0], light[1], light[2], 1.0 - clear],
        Mode::Surface(_) => [0.0; 4],
    }
}
