//! Filters of images `[z, y, x]`: smoothing, edges, size, contrast. Each is a value, a struct of its
//! parameters, in a file of its own that opens with its equation; [`Filters`] lists them, and [`run`] applies
//! some of them one after another.
//!
//! This is a crate of its own because `imaging`, at the ground of the house, knows no [`Device`].
//! `planes` and `kernels` have the inner loops, which filter planes. This crate applies them to volumes:
//! a separable filter goes along x and y slice by slice, then along z with the volume as one plane of `z`
//! rows.
//!
//! All filters take finite f32 and give f32. Beyond an edge the nearest voxel counts, except that [`Median`]
//! mirrors the image. A volume of one slice is filtered as a 2-D image is, because its neighbours along z are
//! itself.

mod box_mean;
mod equalise;
mod gaussian;
mod histogram;
mod median;
mod passes;
mod resize;
mod sobel;
mod text;

use std::sync::Arc;

use ndarray::{Array3, ArrayD, Axis, Ix3};
use rayspin_core::{Error, Geometry, Image, Monitor, Result};
use rayspin_device::Device;
pub use rayspin_run::{About, Idle, Param, Parameters, Value};
use rayspin_run::{choices, table};

pub use box_mean::BoxMean;
pub use equalise::Equalise;
pub use gaussian::{Gaussian, Unit};
pub use histogram::{Histogram, MOST_BINS};
pub use median::Median;
pub use resize::Resize;
pub use sobel::Sobel;

/// A volume that is filtered.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume {
    /// The numbers `[z, y, x]`.
    pub values: Array3<f32>,
    /// Where they lie.
    pub geometry: Geometry,
}

/// A filter with its parameters.
pub trait Filter: Parameters + CopyFilter {
    /// Its name and what it does.
    fn about(&self) -> About;

    /// Fails where its parameters do not go together, or one is missing.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the result has the unit of the image, so that one window shows both.
    fn keeps_unit(&self) -> bool {
        true
    }

    /// Filters a volume.
    ///
    /// Errors: a size that it cannot make; memory; errors of the device.
    fn apply(&self, device: &Device, volume: &mut Volume) -> Result<()>;
}

impl<F: Filter + 'static> From<F> for Box<dyn Filter> {
    fn from(filter: F) -> Self {
        Box::new(filter)
    }
}

table! {
    /// The table of filters, each with the defaults of its parameters.
    ///
    /// ```
    /// use rayspin_filter::Filters;
    ///
    /// let filters = Filters::default();
    /// let filter = filters.parse("gaussian:1.5,axes=xy")?;
    /// assert_eq!(rayspin_filter::text(&*filter), "gaussian:sigma=1.5,axes=xy,unit=mm");
    /// assert!(filters.parse("gaussian:-1").is_err());
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub struct Filters of dyn Filter, called "filter", copied by CopyFilter, checked by Filter::check:
        Gaussian, BoxMean, Median, Sobel, Resize, Equalise;
}

impl Filters {
    /// The filter that a text names: `median`, `gaussian:1.5`, `resize:x=256,y=256`. Values follow the colon,
    /// separated by commas, in the order of the filter's parameters or by their names.
    ///
    /// Errors: a filter or a parameter that is unknown; a parameter twice; as [`with`].
    pub fn parse(&self, text: &str) -> Result<Arc<dyn Filter>> {
        text::parse(self, text)
    }
}

pub use text::text;

/// The image after some filters, in their order. Each repetition of a series is filtered alone.
///
/// Errors: a number that is not finite; errors of the filters; [`Error::Interrupted`] where the monitor says
/// so.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{Geometry, Image, Monitor};
/// use rayspin_device::Device;
/// use rayspin_filter::{Filters, run};
///
/// let image = Image::new(ArrayD::from_elem(IxDyn(&[8, 20, 30]), 5.0f32), Geometry::default())?;
/// let filters = Filters::default();
/// let steps = [filters.parse("gaussian:1.5")?, filters.parse("resize:0.5")?];
/// let small = run(&Device::cpu()?, &steps, image, &Monitor::silent())?;
/// assert_eq!(small.shape_zyx(), [4, 10, 15]);
/// assert_eq!(small.geometry().spacing_mm, [2.0; 3]);
/// assert!(small.data().iter().all(|value| (value - 5.0).abs() < 1e-5));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn run(
    device: &Device,
    filters: &[Arc<dyn Filter>],
    image: Image<f32>,
    monitor: &Monitor<'_>,
) -> Result<Image<f32>> {
    if let Some((index, value)) = image.data().iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(Error::NotFinite { what: "image to filter".into(), index, found: value.to_string() });
    }
    let (series, repetitions, geometry) = (image.data().ndim() == 4, image.repetitions(), *image.geometry());
    let data = image.into_data();
    let filtered = |values: ArrayD<f32>| -> Result<Volume> {
        let values = values.into_dimensionality::<Ix3>().map_err(not_a_volume)?;
        let mut volume = Volume { values, geometry };
        for filter in filters {
            filter.apply(device, &mut volume)?;
            monitor.step("")?;
        }
        Ok(volume)
    };
    monitor.stage("filter", repetitions * filters.len(), || {
        if !series {
            let Volume { values, geometry } = filtered(data)?;
            return Image::new(values.into_dyn(), geometry);
        }
        let volumes = data.outer_iter().map(|one| filtered(one.to_owned())).collect::<Result<Vec<_>>>()?;
        let geometry = volumes.first().map_or(geometry, |volume| volume.geometry);
        let views: Vec<_> = volumes.iter().map(|volume| volume.values.view()).collect();
        let values = ndarray::stack(Axis(0), &views).map_err(not_a_volume)?;
        Image::new(values.into_dyn(), geometry)
    })
}

fn not_a_volume(error: ndarray::ShapeError) -> Error {
    Error::value("image to filter", "volumes [z, y, x] of one shape", error)
}

choices! {
    /// The axes along which a filter acts.
    pub enum Axes {
        /// All three.
        Xyz = "xyz", "along all three axes";
        /// Each slice without its neighbours.
        Xy = "xy", "within each slice";
    }
}

const AXES: Param = Param::new(GROUP, "xyz, or xy: within each slice");

/// The width of a window in voxels.
const SIZE: Param = Param::new(GROUP, "width of the window in voxels")
    .title("width of the window")
    .expects("an odd number from 1 to 4095", |v| matches!(v, Value::Count(n) if n % 2 == 1 && *n < 4096));

/// The heading of all filters in help.
pub const GROUP: &str = "Filters";

#[cfg(test)]
mod tests;
