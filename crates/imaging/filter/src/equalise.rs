//! Equalise: grey values spread so that each part of their range has equally many voxels.
//!
//! ```text
//! out = low + (high − low) F(image),    F(v) = (Σ_{i<b} h_i + t h_b) / N,    b + t = (v − low) n / (high − low)
//! ```
//!
//! with h the histogram of the image in n bins between its least value, low, and its largest, high; N the
//! number of voxels. F is the part of the voxels that lie below v, were they spread evenly within each bin.
//! So it grows without jumps, and the darkest voxels stay as they are. An image of one value stays as it is.
//!
//! R. A. Hummel, *Image enhancement by histogram transformation*, Comput Graph Image Process 6:184, 1977.

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_run::{About, Param, Value, params};

use super::passes::{slice_of, slice_of_mut};
use super::{Filter, GROUP, Histogram, Volume};

params! {
    /// Equalises the histogram.
    pub struct Equalise {
        /// Bins of the histogram.
        bins: usize = 4096 => Param::new(GROUP, "bins of the histogram").expects("2 to 65535", |v| matches!(v, Value::Count(2..=65_535))),
    }
}

impl Filter for Equalise {
    fn about(&self) -> About {
        About { name: "equalise", help: "Spread grey values so that all are equally frequent" }
    }

    fn apply(&self, device: &Device, volume: &mut Volume) -> Result<()> {
        let first = volume.values.first().copied();
        if volume.values.iter().all(|value| Some(*value) == first) {
            return Ok(());
        }
        let histogram = Histogram::of(device, slice_of(&volume.values)?, self.bins, None)?;
        let voxels = volume.values.len() as f64;
        let mut below = Vec::with_capacity(self.bins);
        let mut sum = 0;
        for count in &histogram.counts {
            below.push(sum as f64);
            sum += count;
        }
        let equalised = |value: f32| {
            let (bin, part) = histogram.place(value).unwrap_or_default();
            let share = (below[bin] + part * histogram.counts[bin] as f64) / voxels;
            (histogram.low + (histogram.high - histogram.low) * share) as f32
        };
        let values = slice_of_mut(&mut volume.values)?;
        device.cpu_side().run(|| values.par_iter_mut().for_each(|value| *value = equalised(*value)));
        Ok(())
    }
}
