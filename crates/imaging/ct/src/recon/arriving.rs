use std::ops::Range;

use ndarray::{Array3, ArrayView3};
use rayspin_core::{Error, ProjectionGeometry, Result, VolumeGrid};
use rayspin_device::{Array, Device};
use rayspin_run::{Budget, Bytes, Cost, Ledger, Memory, Step};

use super::{ReconOptions, Reconstruction};
use crate::analytic::{Filter, FilteredBackprojection, extension_note};
use crate::scan::{angle_notes, view_angles};
use crate::solving::checks::{Means, expect_finite, expect_met, first_not_finite, note_of_seen};
use crate::solving::{REAL, lost};

/// A volume to which views are added as they arrive, filtered and projected back, some at a time, on one
/// device.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_ct::methods::Fbp;
/// use rayspin_ct::phantom::{Form, Phantom, Solid};
/// use rayspin_ct::recon::{Arriving, ReconOptions};
/// use rayspin_device::Device;
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 1, columns: 64, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 90);
/// let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
/// let rod = Phantom::new(vec![Solid::new(Form::Cylinder, [0.0; 3], [20.0, 20.0, 1e3], 0.02)])?;
/// let lines = rod.project(device.cpu_side(), &geometry)?;
/// let options = ReconOptions::new(Fbp::default(), VolumeGrid::new([1, 64, 64], [1.0; 3], [0.0; 3])?);
/// let mut volume = Arriving::new(&device, &geometry, &options)?;
/// for views in lines.chunks(32 * 64) {
///     volume.add(views.to_vec())?;
/// }
/// let slice = volume.finish()?.volume;
/// assert!((slice[[0, 32, 32]] - 0.02).abs() < 2e-4); // 1/mm
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Arriving {
    method: FilteredBackprojection,
    geometry: ProjectionGeometry,
    grid: VolumeGrid,
    volume: Array<f32>,
    part: Option<Array<f32>>,
    done: usize,
    /// Views whose rows were extended on either side.
    extended: [usize; 2],
    means: Means,
    notes: Vec<String>,
}

fn filter_of(options: &ReconOptions) -> Result<Filter> {
    options
        .method
        .filter()
        .ok_or_else(|| Error::value("method of views that arrive", "fbp or fdk", options.method.about().name))
}

/// Slices of the volumes that [`Arriving`] makes one after another, each of all views.
pub fn slices_at_a_time(options: &ReconOptions) -> usize {
    let depth = options.grid.shape_zyx()[0];
    options.batch_sizes.slices.map_or(depth, |some| some.clamp(1, depth))
}

/// What [`Arriving`] takes for `views` views and [`slices_at_a_time`].
///
/// Errors: a method that needs all views at once, or does not take these rays.
pub fn arriving_budget(
    device: &Device,
    geometry: &ProjectionGeometry,
    options: &ReconOptions,
    views: usize,
) -> Result<Budget> {
    let options = &ReconOptions { beside: Vec::new(), ..options.clone() };
    let spec = options.spec(device, geometry);
    let filter = filter_of(options)?;
    // What the method refuses.
    options.method.steps(&spec)?;
    let method = FilteredBackprojection::new(&device.host(), geometry, &options.grid, filter)?;
    let slices = slices_at_a_time(options);
    let volume = REAL * spec.voxels()? / options.grid.shape_zyx()[0] as u64 * slices as u64;
    let [_, rows, columns] = method.filtered_geometry().shape();
    let copies = u64::from(method.filtered_geometry().shape() != geometry.shape());
    let [extensions, on_gpu] = method.extension_bytes(views);
    let part = REAL * (views.min(geometry.views().len()) * rows * columns) as u64;
    let needs = move || {
        let projector = spec.backproject_bytes(views as u64, slices as u64);
        // Views that are read while others are added; a copy of these if the detector is shifted; a volume of
        // them beside the sum.
        let memory = match spec.on_gpu() {
            true => Bytes {
                host: volume + 2 * part + extensions,
                gpu: 2 * volume + 2 * part + projector + on_gpu,
            },
            false => Bytes::host(2 * volume + (2 + copies) * part + projector + extensions),
        };
        Ok(Cost::of(Memory::temporary(memory).holding(Bytes::host(volume))))
    };
    let mut ledger = Ledger::new(Bytes::default(), 1);
    ledger.result(volume);
    ledger.add(Step::<()>::new("views", |(), _| Ok(())).needs(needs))?;
    Ok(ledger.finish())
}

impl Arriving {
    /// A volume without views.
    ///
    /// Errors: a method that needs all views at once, or does not take these rays; memory.
    pub fn new(device: &Device, geometry: &ProjectionGeometry, options: &ReconOptions) -> Result<Self> {
        let method = FilteredBackprojection::new(device, geometry, &options.grid, filter_of(options)?)?;
        expect_met(geometry, &options.grid)?;
        let seen = note_of_seen(&options.grid, method.seen_radius_mm())?;
        let mut notes = angle_notes(&view_angles(geometry));
        notes.extend(method.notes().iter().cloned().chain(seen));
        let volume = Array::zeros(device, &options.grid.shape_zyx())?;
        let means = Means::default();
        let (geometry, grid) = (geometry.clone(), options.grid);
        Ok(Self { method, geometry, grid, volume, part: None, done: 0, extended: [0; 2], means, notes })
    }

    /// Views that were added.
    pub fn views(&self) -> usize {
        self.done
    }

    /// Adds the next views: line integrals `[view, row, column]` in C order.
    ///
    /// Errors: a part of a view, or more than are missing; numbers that are not finite; memory.
    pub fn add(&mut self, lines: Vec<f32>) -> Result<()> {
        let [view_count, rows, columns] = self.geometry.shape();
        let count = lines.len() / (rows * columns);
        if lines.is_empty() || count * rows * columns != lines.len() || count > view_count - self.done {
            let expected = format!("whole views of {rows} x {columns}, at most {}", view_count - self.done);
            return Err(Error::value("views that arrive", expected, format!("{} numbers", lines.len())));
        }
        if let Some(offset) = first_not_finite(self.volume.device(), &lines) {
            let (index, found) = (self.done * rows * columns + offset, lines[offset].to_string());
            return Err(Error::NotFinite { what: "line integrals".into(), index, found });
        }
        let views = self.done..self.done + count;
        let device = self.method.filter_device();
        let shape = (count, rows, columns);
        let of_views = ArrayView3::from_shape(shape, &lines).map_err(|_| lost("views"))?;
        of_views.outer_iter().for_each(|view| self.means.add(view));
        let ends = self.method.ends(&lines, views.clone())?;
        self.extended.iter_mut().zip(ends.count()).for_each(|(sum, count)| *sum += count);
        let lines = Array::from_vec(device, &[count, rows, columns], lines)?;
        let filtered =
            self.method.filter_extended(lines, views.clone(), &ends)?.to_device(self.volume.device())?;
        self.method.add_views(&filtered, views, &self.grid, &mut self.volume, &mut self.part)?;
        self.done += count;
        Ok(())
    }

    /// A slice `[y, x]` of the views so far, in C order: brighter with each view.
    ///
    /// Errors: a slice beyond the volume.
    pub fn slice(&self, slice: usize) -> Result<Vec<f32>> {
        let [nz, ny, nx] = self.grid.shape_zyx();
        if slice >= nz {
            return Err(Error::value("slice of a volume", format!("less than {nz}"), slice));
        }
        let range: Range<usize> = slice * ny * nx..(slice + 1) * ny * nx;
        let mut values = self.volume.read()?[range].to_vec();
        self.method.clear_unseen(&mut values);
        Ok(values)
    }

    /// The volume of all views.
    ///
    /// Errors: views that did not arrive.
    pub fn finish(self) -> Result<Reconstruction> {
        let view_count = self.geometry.views().len();
        if self.done < view_count {
            return Err(Error::value("views that arrive", format!("all {view_count}"), self.done));
        }
        let device = self.volume.device().clone();
        let mut values = self.volume.into_vec()?;
        self.method.clear_unseen(&mut values);
        expect_finite(&device, &values)?;
        let volume = Array3::from_shape_vec(self.grid.shape_zyx(), values).map_err(|_| lost("volume"))?;
        let mut notes = self.notes;
        notes.extend(self.means.note());
        notes.extend(extension_note(self.method.extend(), self.extended, view_count));
        Ok(Reconstruction { volume, solve: None, notes, certificates: Vec::new() })
    }
}
