//! The volume that is drawn.

use anyhow::Result;
use ndarray::{ArrayView3, Axis};
use rayon::prelude::*;
use rayspin::core::vector::{cross, dot};
use rayspin::core::{Geometry, Image, Monitor, VolumeGrid};
use rayspin::io;
use rayspin_shell::BadInput;

use crate::args::render::Render;

/// Real numbers `[z, y, x]` in C order, whose axes form a right-handed system.
pub(super) struct Volume {
    pub(super) values: Vec<f32>,
    pub(super) geometry: Geometry,
    /// The voxels in coordinates of their own, with the middle at 0.
    pub(super) grid: VolumeGrid,
    /// Whether the numbers are Hounsfield units.
    pub(super) hounsfield: bool,
    /// Attenuation of water, 1/mm.
    pub(super) water: f32,
}

impl Volume {
    /// The smallest side of a voxel, mm.
    pub(super) fn finest_mm(&self) -> f64 {
        self.grid.spacing_mm().into_iter().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn view(&self) -> Result<ArrayView3<'_, f32>> {
        Ok(ArrayView3::from_shape(self.grid.shape_zyx(), &self.values)?)
    }

    /// A direction in the patient's coordinates along the volume's axes x, y and z.
    pub(super) fn along_axes(&self, direction: [f64; 3]) -> [f64; 3] {
        let Geometry { read_dir, phase_dir, slice_dir, .. } = self.geometry;
        [read_dir, phase_dir, slice_dir].map(|axis| dot(axis, direction))
    }
}

/// Errors: a file without an image; as [`of_image`].
pub(super) fn read(args: &Render, monitor: &Monitor<'_>) -> Result<Volume> {
    let io::ImageFile { image, notes, hounsfield, .. } = io::read_any_image(&args.image)?;
    let (image, magnitudes) = image.into_real();
    notes.iter().for_each(|note| monitor.note(note));
    if hounsfield && !args.hu {
        monitor.note("the file holds CT images: their numbers are Hounsfield units");
    }
    if magnitudes {
        monitor.note("magnitudes of complex numbers are drawn");
    }
    of_image(args, image, hounsfield)
}

/// Errors: a series; numbers that are not finite; an attenuation of water that is not positive.
pub(super) fn of_image(args: &Render, image: Image<f32>, hounsfield: bool) -> Result<Volume> {
    let path = args.image.display();
    if !(args.water > 0.0 && args.water.is_finite()) {
        let message = format!("`--water`: expected a positive attenuation in 1/mm, found {}", args.water);
        return Err(BadInput::new(message).hint("`--water 0.0206` holds at 60 keV").into());
    }
    if image.repetitions() > 1 {
        let message = format!("{path}: expected one volume, found {}", image.repetitions());
        let hint = "`rayspin convert --repetition 0` takes one of them";
        return Err(BadInput::new(message).hint(hint).into());
    }
    let (shape, mut geometry) = (image.shape_zyx(), *image.geometry());
    let mut values = image.into_data().into_shape_with_order(shape)?;
    // A mirrored volume would make mirrored pictures: its slices are taken the other way round.
    if dot(cross(geometry.read_dir, geometry.phase_dir), geometry.slice_dir) < 0.0 {
        values.invert_axis(Axis(0));
        values = values.as_standard_layout().into_owned();
        let centre = (shape[0] - 1 - shape[0] / 2) as f64 - (shape[0] / 2) as f64;
        for (position, along) in geometry.position_mm.iter_mut().zip(geometry.slice_dir) {
            *position += centre * geometry.spacing_mm[2] * along;
        }
        geometry.slice_dir = geometry.slice_dir.map(|x| -x);
    }
    let grid = VolumeGrid::new(shape, geometry.spacing_mm, [0.0; 3])?;
    let (values, _) = values.into_raw_vec_and_offset();
    if let Some(value) = values.par_iter().find_any(|value| !value.is_finite()) {
        let message = format!("{path}: expected finite numbers, found {value}");
        let hint = "rays sum what they meet: give such voxels a number";
        return Err(BadInput::new(message).hint(hint).into());
    }
    Ok(Volume { values, geometry, grid, hounsfield: args.hu || hounsfield, water: args.water })
}
