//! Resize: another number of voxels over the same box, by bicubic interpolation.
//!
//! ```text
//! out[x] = Σ_i k(u − i) image[i],    u = (x + ½) n/m − ½
//! ```
//!
//! along each axis whose n voxels become m, with Keys' kernel k for a = −½, which is exact for parabolas. The
//! image's faces stay where they are, so that voxels become n/m times as large. An axis that shrinks is first
//! smoothed by a Gaussian of σ = (n/m − 1)/2 voxels against aliasing, as scikit-image does. Beyond an edge
//! the nearest voxel counts. At edges in the image the kernel overshoots by up to 7 % or so along each axis.
//!
//! R. G. Keys, *Cubic convolution interpolation for digital image processing*, IEEE Trans ASSP 29:1153, 1981.

use rayspin_core::{Error, Geometry, Result};
use rayspin_device::Device;
use rayspin_planes::bicubic::{self, Kernel};
use rayspin_run::{About, Param, Value, params};

use super::gaussian::smooth;
use super::passes::{along_z, each_slice};
use super::{Filter, GROUP, Volume};

/// Keys' kernel that is exact for parabolas.
const KEYS: Kernel = Kernel::Keys(-0.5);

/// Whether a value is a number above 0.
fn positive(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.is_finite() && *number > 0.0)
}

/// How many voxels an axis becomes.
const fn count(help: &'static str) -> Param {
    Param::new(GROUP, help).expects("1 to 1048576", |v| matches!(v, Value::Count(1..=1_048_576)))
}

params! {
    /// Gives the image another number of voxels.
    pub struct Resize {
        /// How many voxels come of one.
        factor: Option<f64> = None => Param::new(GROUP, "new voxels for each old voxel along each axis along each axis").title("factor of resize").expects("a number above 0", positive),
        /// The size of a voxel.
        voxel: Option<f64> = None => Param::new(GROUP, "size of a voxel in mm, as near as whole voxels allow").title("voxel of resize").expects("a length above 0 in mm", positive),
        /// Voxels along x.
        x: Option<usize> = None => count("voxels along x"),
        /// Voxels along y.
        y: Option<usize> = None => count("voxels along y"),
        /// Voxels along z.
        z: Option<usize> = None => count("voxels along z"),
    }
}

impl Resize {
    /// What x, y and z have along one axis.
    fn counts(&self) -> [Option<usize>; 3] {
        [self.x, self.y, self.z]
    }

    /// The voxels `[x, y, z]` that come of others. An axis of one voxel keeps it unless its number is stated.
    fn sizes(&self, from: [usize; 3], spacing_mm: [f64; 3]) -> Result<[usize; 3]> {
        let mut to = from;
        for axis in 0..3 {
            let wanted = match (self.counts()[axis], self.voxel, self.factor) {
                (Some(count), ..) => count as f64,
                _ if from[axis] == 1 => 1.0,
                (_, Some(voxel), _) => from[axis] as f64 * spacing_mm[axis] / voxel,
                (_, _, Some(factor)) => from[axis] as f64 * factor,
                _ => from[axis] as f64,
            };
            if wanted.round() > f64::from(1 << 20) {
                let what = format!("voxels of resize along {}", ["x", "y", "z"][axis]);
                return Err(Error::value(what, "at most 1048576", wanted.round()));
            }
            to[axis] = (wanted.round() as usize).max(1);
        }
        Ok(to)
    }
}

impl Filter for Resize {
    fn about(&self) -> About {
        About { name: "resize", help: "Another number of voxels over the same box, bicubic" }
    }

    fn check(&self) -> Result<()> {
        let one = "one of factor, voxel, x, y, z";
        let counts = self.counts();
        let rest = [self.factor, self.voxel].iter().flatten().count();
        if rest == 0 && counts.iter().all(Option::is_none) {
            return Err(Error::value("resize", one, "none"));
        }
        if rest == 2 {
            return Err(Error::value("resize", "factor or voxel", "both"));
        }
        if rest == 1 && counts.iter().all(Option::is_some) {
            return Err(Error::value("resize", "factor or voxel for an axis without a number", "x, y and z"));
        }
        Ok(())
    }

    fn apply(&self, device: &Device, volume: &mut Volume) -> Result<()> {
        let (depth, rows, columns) = volume.values.dim();
        let from = [columns, rows, depth];
        let to = self.sizes(from, volume.geometry.spacing_mm)?;
        let shrinks = |axis: usize| 0.5 * (from[axis] as f64 / to[axis] as f64 - 1.0).max(0.0);
        smooth(device, volume, [shrinks(0), shrinks(1), shrinks(2)])?;
        if to[..2] != from[..2] {
            volume.values = each_slice(device, &volume.values, [to[1], to[0]], &|slice, out| {
                bicubic::resize(slice, KEYS, out)
            })?;
        }
        if to[2] != depth {
            let values = std::mem::take(&mut volume.values);
            // Columns stay as many: there the kernel's weights are 1 and 0.
            volume.values = along_z(device, values, to[2], &|plane, out| bicubic::resize(plane, KEYS, out))?;
        }
        volume.geometry = resized(&volume.geometry, from, to)?;
        Ok(())
    }
}

/// Where `to` voxels `[x, y, z]` lie in the box of `from`.
fn resized(geometry: &Geometry, from: [usize; 3], to: [usize; 3]) -> Result<Geometry> {
    let Geometry { spacing_mm, mut position_mm, read_dir, phase_dir, slice_dir } = *geometry;
    let mut sizes = spacing_mm;
    for (axis, direction) in [read_dir, phase_dir, slice_dir].into_iter().enumerate() {
        let ratio = from[axis] as f64 / to[axis] as f64;
        // A geometry states the position of the voxel n/2, rounded down.
        let middle = ((to[axis] / 2) as f64 + 0.5) * ratio - 0.5;
        let moved = (middle - (from[axis] / 2) as f64) * spacing_mm[axis];
        for (position, along) in position_mm.iter_mut().zip(direction) {
            *position += moved * along;
        }
        sizes[axis] = spacing_mm[axis] * ratio;
    }
    Geometry::new(sizes, position_mm, read_dir, phase_dir, slice_dir)
}
