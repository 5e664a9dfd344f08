//! Hounsfield units: water is 0 and air is −1000.
//!
//! ```text
//! HU = 1000 (μ − μ_water) / (μ_water − μ_air)
//! ```
//!
//! with the attenuations that the user states in 1/mm, or their means over the voxels of an image that marks
//! water or air.
//!
//! G. N. Hounsfield, *Computerized transverse axial scanning (tomography)*, Br J Radiol 46:1016, 1973.

use std::sync::Arc;

use ndarray::{Array3, ArrayD};
use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::Cpu;
use rayspin_run::{About, Param, Value, params};

use super::{ActsOn, Correction, GROUP, missing, positive};

params! {
    /// The volume in Hounsfield units.
    pub struct Hounsfield {
        /// Attenuation of water, 1/mm.
        water: Option<f64> = None => Param::new(GROUP, "Attenuation of water in 1/mm, which becomes 0 HU").title("attenuation of water").expects("above 0", positive)
            .remedies(&[
                (&["hounsfield"], "`--water` states what water attenuates; `--water-mask` marks it"),
            ]),
        /// Attenuation of air, 1/mm.
        air: f64 = 0.0 => Param::new(GROUP, "Attenuation of air in 1/mm, which becomes -1000 HU").title("attenuation of air")
            .remedies(&[(&["attenuation of water", "attenuation of air"], "`--water` and `--air` set them")])
            .expects("finite", |v| matches!(v, Value::Number(mu) if mu.is_finite())),
        /// Marks voxels of water.
        water_mask: Option<Arc<ArrayD<f32>>> = None => Param::new(GROUP, "Image of the volume's size that is not 0 in water; the mean there becomes 0 HU").title("image that marks water"),
        /// Marks voxels of air.
        air_mask: Option<Arc<ArrayD<f32>>> = None => Param::new(GROUP, "Image of the volume's size that is not 0 in air; the mean there becomes -1000 HU").title("image that marks air"),
    }
}

impl Correction for Hounsfield {
    fn about(&self) -> About {
        About { name: "hounsfield", help: "The volume in Hounsfield units, from water and air" }
    }

    fn acts_on(&self) -> ActsOn {
        ActsOn::Volume
    }

    fn check(&self) -> Result<()> {
        match (self.water, &self.water_mask) {
            (None, None) => Err(missing("hounsfield", "water", "`--water` in 1/mm, or `--water-mask`")),
            (Some(water), Some(_)) => {
                Err(Error::value("hounsfield", "`--water` or `--water-mask`", format!("both, {water}/mm")))
            }
            (Some(water), None) if self.air_mask.is_none() && water <= self.air => Err(Error::value(
                "attenuation of water",
                format!("above that of air, {} 1/mm", self.air),
                water,
            )),
            _ => Ok(()),
        }
    }

    fn expect_volume(&self, shape: [usize; 3]) -> Result<()> {
        for (mask, what) in [(&self.water_mask, "water"), (&self.air_mask, "air")] {
            let Some(mask) = mask else { continue };
            let what = format!("image that marks {what}");
            if mask.shape() != shape && !(shape[0] == 1 && mask.shape() == &shape[1..]) {
                return Err(Error::shape(what, &shape, mask.shape()));
            }
            if mask.iter().all(|mark| *mark == 0.0) {
                return Err(Error::value(what, "at least one voxel that is not 0", "none"));
            }
        }
        Ok(())
    }

    fn volume(&self, cpu: &Cpu, volume: &mut Array3<f32>) -> Result<()> {
        let (nz, ny, nx) = volume.dim();
        self.expect_volume([nz, ny, nx])?;
        let marked_mean = |mask: &Option<Arc<ArrayD<f32>>>| mask.as_ref().map(|mask| marked(volume, mask));
        let water = marked_mean(&self.water_mask).or(self.water);
        let water =
            water.ok_or_else(|| missing("hounsfield", "water", "`--water` in 1/mm, or `--water-mask`"))?;
        let air = marked_mean(&self.air_mask).unwrap_or(self.air);
        if water <= air {
            let expected = format!("above that of air, {air} 1/mm");
            return Err(Error::value("attenuation of water", expected, water));
        }
        let scale = 1000.0 / (water - air);
        let slices: Vec<_> = volume.outer_iter_mut().collect();
        cpu.run(|| {
            slices.into_par_iter().for_each(|mut slice| {
                slice.mapv_inplace(|mu| (scale * (f64::from(mu) - water)) as f32);
            });
        });
        Ok(())
    }
}

/// The mean of the voxels where the image is not 0.
fn marked(volume: &Array3<f32>, mask: &ArrayD<f32>) -> f64 {
    let marked = volume.iter().zip(mask).filter(|(_, mark)| **mark != 0.0);
    let (sum, count) = marked.fold((0.0, 0u64), |(sum, count), (mu, _)| (sum + f64::from(*mu), count + 1));
    sum / count.max(1) as f64
}
