use ndarray::parallel::prelude::*;
use ndarray::{ArcArray2, Array2, ArrayView2};

use crate::{Error, Result};

/// Where in k-space each sample lies, `[sample, dim]` in **cycles per field of view**, components in the
/// order x, y, z.
///
/// Along an axis of n voxels a fully sampling trajectory spans −n/2 … n/2. Points outside that range are
/// legal (the transforms are periodic in k with period n) but readers treat them as a sign of other units.
/// Copies share the points.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    points: ArcArray2<f64>,
    /// The largest |k| of each component; 0 beyond the last.
    extent: [f64; 3],
}

/// A unit in which files state trajectories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrajectoryUnits {
    /// Cycles per field of view, −n/2 … n/2.
    CyclesPerFov,
    /// Cycles per voxel, −0.5 … 0.5.
    CyclesPerVoxel,
    /// Radians per voxel, −π … π.
    RadiansPerVoxel,
    /// Cycles per metre (1/m), as sequence design states k.
    CyclesPerMetre,
    /// Radians per metre (rad/m).
    RadiansPerMetre,
    /// Cycles per centimetre (1/cm), as GE's sequences and MIRT state k.
    CyclesPerCentimetre,
}

impl TrajectoryUnits {
    /// Every unit, with the name the command line uses.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::CyclesPerFov, "cycles/fov"),
        (Self::CyclesPerVoxel, "cycles/voxel"),
        (Self::RadiansPerVoxel, "radians/voxel"),
        (Self::CyclesPerMetre, "cycles/m"),
        (Self::RadiansPerMetre, "radians/m"),
        (Self::CyclesPerCentimetre, "cycles/cm"),
    ];

    /// The name the command line uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::CyclesPerFov => "cycles/fov",
            Self::CyclesPerVoxel => "cycles/voxel",
            Self::RadiansPerVoxel => "radians/voxel",
            Self::CyclesPerMetre => "cycles/m",
            Self::RadiansPerMetre => "radians/m",
            Self::CyclesPerCentimetre => "cycles/cm",
        }
    }

    /// Factor that turns one component in this unit into cycles per field of view, for `n` voxels over
    /// `fov_mm`.
    pub fn to_cycles_per_fov(self, n: usize, fov_mm: f64) -> f64 {
        let tau = std::f64::consts::TAU;
        match self {
            Self::CyclesPerFov => 1.0,
            Self::CyclesPerVoxel => n as f64,
            Self::RadiansPerVoxel => n as f64 / tau,
            Self::CyclesPerMetre => fov_mm * 1e-3,
            Self::RadiansPerMetre => fov_mm * 1e-3 / tau,
            Self::CyclesPerCentimetre => fov_mm * 0.1,
        }
    }
}

impl std::fmt::Display for TrajectoryUnits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for TrajectoryUnits {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(unit, _)| *unit).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
            Error::value("trajectory units", format!("one of {}", names.join(", ")), text)
        })
    }
}

impl Trajectory {
    /// A trajectory from points `[sample, dim]` in cycles per field of view; dim is 1, 2 or 3.
    ///
    /// Errors: no samples, another number of dimensions, or a component that is not finite.
    pub fn from_cycles_per_fov(points: Array2<f64>) -> Result<Self> {
        let (samples, dims) = points.dim();
        if samples == 0 {
            return Err(Error::value("trajectory", "at least one sample", "0 samples"));
        }
        if !(1..=3).contains(&dims) {
            return Err(Error::value("trajectory", "1 to 3 dimensions", format!("{dims} dimensions")));
        }
        let points = match points.is_standard_layout() {
            true => points,
            false => points.as_standard_layout().into_owned(),
        };
        let values = points.as_slice().unwrap_or_default();
        let parts: Vec<_> = values.chunks(dims << 14).collect();
        let parts = parts.into_par_iter().map(|values| match dims {
            1 => measured::<1>(values),
            2 => measured::<2>(values),
            _ => measured::<3>(values),
        });
        let both = |one: (bool, [f64; 3]), other: (bool, [f64; 3])| {
            (one.0 && other.0, std::array::from_fn(|axis| one.1[axis].max(other.1[axis])))
        };
        let (finite, extent) = parts.reduce(|| (true, [0.0; 3]), both);
        if !finite
            && let Some((index, value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite())
        {
            return Err(Error::NotFinite { what: "trajectory".into(), index, found: value.to_string() });
        }
        Ok(Self { points: points.into_shared(), extent })
    }

    /// A trajectory from points in `units`; `matrix` and `fov_mm` are in the order x, y, z, one entry a
    /// dimension.
    pub fn from_units(
        mut points: Array2<f64>,
        units: TrajectoryUnits,
        matrix: &[usize],
        fov_mm: &[f64],
    ) -> Result<Self> {
        let dims = points.ncols();
        if matrix.len() != dims || fov_mm.len() != dims {
            return Err(Error::value(
                "trajectory",
                format!("{dims} matrix and field-of-view entries"),
                format!("{} and {}", matrix.len(), fov_mm.len()),
            ));
        }
        for (dim, mut column) in points.columns_mut().into_iter().enumerate() {
            let factor = units.to_cycles_per_fov(matrix[dim], fov_mm[dim]);
            column.mapv_inplace(|k| k * factor);
        }
        Self::from_cycles_per_fov(points)
    }

    /// Number of samples.
    #[inline]
    pub fn samples(&self) -> usize {
        self.points.nrows()
    }

    /// Number of dimensions, 1 to 3.
    #[inline]
    pub fn dims(&self) -> usize {
        self.points.ncols()
    }

    /// The points `[sample, dim]` in cycles per field of view.
    pub fn points(&self) -> ArrayView2<'_, f64> {
        self.points.view()
    }

    /// One sample's components.
    #[inline]
    pub fn point(&self, sample: usize) -> &[f64] {
        let dims = self.dims();
        self.points.as_slice().map_or(&[], |numbers| &numbers[sample * dims..(sample + 1) * dims])
    }

    /// The largest |k| of each component.
    pub fn extent(&self) -> Vec<f64> {
        self.extent[..self.dims()].to_vec()
    }
}

/// Whether all components are finite, and the largest size of each. Without an early end, so that it runs in
/// vectors.
fn measured<const DIMS: usize>(values: &[f64]) -> (bool, [f64; 3]) {
    let (mut finite, mut most) = ([true; DIMS], [0.0f64; DIMS]);
    for point in values.as_chunks::<DIMS>().0 {
        for (axis, k) in point.iter().enumerate() {
            finite[axis] &= k.is_finite();
            most[axis] = if k.abs() > most[axis] { k.abs() } else { most[axis] };
        }
    }
    let mut extent = [0.0; 3];
    extent[..DIMS].copy_from_slice(&most);
    (finite.iter().all(|&finite| finite), extent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_extent_is_the_largest_size_of_each_component() {
        let points = array![[1.0, -5.0, 0.0], [-2.5, 4.0, 0.25], [2.0, 3.0, -0.5]];
        for dims in 1..=3 {
            let some = points.slice(ndarray::s![.., ..dims]).to_owned();
            let trajectory = Trajectory::from_cycles_per_fov(some).unwrap();
            assert_eq!(trajectory.extent(), [2.5, 5.0, 0.5][..dims]);
        }
        let columns_first = points.t().as_standard_layout().into_owned().reversed_axes();
        assert_eq!(Trajectory::from_cycles_per_fov(columns_first).unwrap().extent(), [2.5, 5.0, 0.5]);
        for wrong in [f64::NAN, f64::INFINITY] {
            let error = Trajectory::from_cycles_per_fov(array![[1.0, 2.0], [3.0, wrong]]).unwrap_err();
            assert!(error.to_string().contains('3'), "{error}");
        }
    }

    #[test]
    fn every_unit_of_the_same_point_agrees() {
        let (n, fov) = (256usize, 320.0);
        let k = 100.0; // cycles per field of view
        for (unit, name) in TrajectoryUnits::ALL {
            let stated = k / unit.to_cycles_per_fov(n, fov);
            let t = Trajectory::from_units(array![[stated]], unit, &[n], &[fov]).unwrap();
            assert!((t.points()[[0, 0]] - k).abs() < 1e-9, "{name}");
            assert_eq!(name.parse::<TrajectoryUnits>().unwrap(), unit);
        }
        assert!(
            (TrajectoryUnits::RadiansPerVoxel.to_cycles_per_fov(2, 1.0) * std::f64::consts::PI - 1.0).abs()
                < 1e-12
        );
    }

    #[test]
    fn bad_points_are_named() {
        let nan = Trajectory::from_cycles_per_fov(array![[0.0, 1.0], [f64::NAN, 0.0]]);
        assert!(matches!(nan, Err(Error::NotFinite { index: 2, .. })));
        assert!(Trajectory::from_cycles_per_fov(Array2::zeros((0, 2))).is_err());
        assert!(Trajectory::from_cycles_per_fov(Array2::zeros((3, 4))).is_err());
        assert!("furlongs".parse::<TrajectoryUnits>().is_err());
    }
}
