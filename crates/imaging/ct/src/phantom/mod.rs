//! Objects whose line integrals have a closed form.

mod forbild;
mod named;
mod solid;

use rayon::prelude::*;
use rayspin_core::{ProjectionGeometry, RaySource, Result, VolumeGrid, voxels};
use rayspin_device::Cpu;
use rayspin_device::cpu::{Stop, zeroed};

pub use solid::{Form, HalfSpace, Solid};

/// A list of solids. Where they overlap, their attenuations add, or a later one
/// [replaces](Phantom::replacing) the earlier ones.
///
/// ```
/// use rayspin_ct::phantom::{Form, Phantom, Solid};
///
/// let ball = Solid::new(Form::Ellipsoid, [0.0; 3], [10.0; 3], 0.02); // 1/mm
/// let phantom = Phantom::new(vec![ball])?;
/// let line = phantom.line_integral([0.0, -50.0, 6.0], [0.0, 50.0, 6.0]);
/// assert!((line - 0.02 * 16.0).abs() < 1e-12); // a chord of 16 mm
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Phantom {
    solids: Vec<Solid>,
    replace: bool,
}

/// Points along each axis at which a voxel is sampled, if the phantom differs between its corners.
const FINE: usize = 4;

impl Phantom {
    /// A phantom of these solids. Their attenuations add where they overlap.
    ///
    /// Errors: as [`Solid::check`].
    pub fn new(solids: Vec<Solid>) -> Result<Self> {
        solids.iter().try_for_each(Solid::check)?;
        Ok(Self { solids, replace: false })
    }

    /// A phantom of these solids. Each solid replaces earlier ones where it lies.
    ///
    /// Errors: as [`Solid::check`].
    ///
    /// ```
    /// use rayspin_ct::phantom::{Form, Phantom, Solid};
    ///
    /// let ball = |radius: f64, attenuation| Solid::new(Form::Ellipsoid, [0.0; 3], [radius; 3], attenuation);
    /// let shell = Phantom::replacing(vec![ball(10.0, 0.04), ball(8.0, 0.02)])?;
    /// assert!((shell.line_integral([-20.0, 0.0, 0.0], [20.0, 0.0, 0.0]) - (0.04 * 4.0 + 0.02 * 16.0)).abs() < 1e-12);
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn replacing(solids: Vec<Solid>) -> Result<Self> {
        Ok(Self { replace: true, ..Self::new(solids)? })
    }

    /// The solids.
    pub fn solids(&self) -> &[Solid] {
        &self.solids
    }

    /// The same phantom moved by a vector, mm.
    #[must_use]
    pub fn moved(mut self, by_mm: [f64; 3]) -> Self {
        for solid in &mut self.solids {
            solid.centre_mm = std::array::from_fn(|axis| solid.centre_mm[axis] + by_mm[axis]);
            for cut in &mut solid.cuts {
                cut.offset_mm += (0..3).map(|axis| cut.normal[axis] * by_mm[axis]).sum::<f64>();
            }
        }
        self
    }

    /// The parts of the phantom that are tissue and that are bone; together they attenuate as the phantom
    /// does. Where later solids [replace](Self::replacing) earlier ones, bone is every solid with at least
    /// 0.8 of the largest attenuation. Else bone is a shell, as in the Shepp–Logan head: the first solid less
    /// the second, if the second takes away from it.
    ///
    /// ```
    /// use rayspin_ct::phantom::Phantom;
    /// use rayspin_imaging::phantom::Contrast;
    ///
    /// let head = Phantom::shepp_logan(2, 200.0, Contrast::Standard, 0.02)?;
    /// let [tissue, bone] = head.materials();
    /// assert_eq!(bone.at([0.0, 0.0, 0.0]), 0.0); // the brain
    /// assert!((bone.at([0.0, 90.0, 0.0]) - 2.0 * 0.02).abs() < 1e-12 && tissue.at([0.0, 90.0, 0.0]) == 0.0); // the skull
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn materials(&self) -> [Self; 2] {
        let none = Self { solids: Vec::new(), replace: self.replace };
        match &self.solids[..] {
            solids if self.replace => {
                let least = 0.8 * solids.iter().fold(0.0, |most: f64, solid| most.max(solid.attenuation));
                let part = |bone: bool| {
                    let kept = |solid: &Solid| {
                        let attenuation =
                            if (solid.attenuation >= least) == bone { solid.attenuation } else { 0.0 };
                        Solid { attenuation, ..solid.clone() }
                    };
                    Self { solids: self.solids.iter().map(kept).collect(), replace: true }
                };
                [part(false), part(true)]
            }
            [outer, inner, others @ ..] if inner.attenuation < 0.0 => {
                let solid = |attenuation: f64| Solid { attenuation, ..inner.clone() };
                let bone = vec![outer.clone(), solid(-outer.attenuation)];
                let mut tissue = vec![solid(outer.attenuation + inner.attenuation)];
                tissue.extend(others.iter().cloned());
                [Self { solids: tissue, replace: false }, Self { solids: bone, replace: false }]
            }
            _ => [self.clone(), none],
        }
    }

    /// ∫ μ ds along the segment from `start` to `end`, mm.
    pub fn line_integral(&self, start: [f64; 3], end: [f64; 3]) -> f64 {
        self.integral(start, end, [0.0, 1.0])
    }

    fn integral(&self, start: [f64; 3], end: [f64; 3], range: [f64; 2]) -> f64 {
        let along: [f64; 3] = std::array::from_fn(|axis| end[axis] - start[axis]);
        let length = along.iter().map(|d| d * d).sum::<f64>().sqrt();
        if self.replace {
            return length * self.replaced(start, along, range);
        }
        let chord = |solid: &Solid| {
            let [low, high] = solid.chord(start, along)?;
            Some(solid.attenuation * (high.min(range[1]) - low.max(range[0])).max(0.0))
        };
        length * self.solids.iter().filter_map(chord).sum::<f64>()
    }

    /// The integral over t of the attenuation at `start + t·along`, where later solids replace earlier ones.
    fn replaced(&self, start: [f64; 3], along: [f64; 3], range: [f64; 2]) -> f64 {
        // Ends of chords with the index of their solid. Between two of them the last solid that is entered
        // counts.
        let mut ends: Vec<(f64, usize)> = Vec::new();
        for (index, solid) in self.solids.iter().enumerate() {
            if let Some([low, high]) = solid.chord(start, along) {
                let (low, high) = (low.max(range[0]), high.min(range[1]));
                if low < high {
                    ends.extend([(low, index), (high, index)]);
                }
            }
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut entered: Vec<usize> = Vec::new();
        let (mut sum, mut last) = (0.0, 0.0);
        for (t, index) in ends {
            if let Some(top) = entered.iter().max() {
                sum += self.solids[*top].attenuation * (t - last);
            }
            match entered.iter().position(|other| *other == index) {
                Some(index) => drop(entered.swap_remove(index)),
                None => entered.push(index),
            }
            last = t;
        }
        sum
    }

    /// The line integral that the centre of a pixel measures. Rays of a parallel beam have no ends.
    pub fn ray(&self, geometry: &ProjectionGeometry, view: usize, row: usize, column: usize) -> f64 {
        self.ray_at(geometry, view, [row as f64, column as f64])
    }

    /// The line integral that a point of the detector measures, in rows and columns.
    pub fn ray_at(&self, geometry: &ProjectionGeometry, view: usize, [row, column]: [f64; 2]) -> f64 {
        let end = geometry.pixel_mm(view, row, column);
        match geometry.views()[view].source {
            RaySource::Point(start) => self.integral(start, end, [0.0, 1.0]),
            RaySource::Direction(along) => {
                let start = std::array::from_fn(|axis| end[axis] - along[axis]);
                self.integral(start, end, [f64::NEG_INFINITY, f64::INFINITY])
            }
        }
    }

    /// The line integrals of a scan, `[view, row, column]`.
    ///
    /// Errors: memory; interruption.
    pub fn project(&self, cpu: &Cpu, geometry: &ProjectionGeometry) -> Result<Vec<f32>> {
        let [_, rows, columns] = geometry.shape();
        let mut out = zeroed("projections", voxels(&geometry.shape())?)?;
        let stop = Stop::of_caller();
        cpu.run(|| {
            out.par_chunks_mut(columns).enumerate().filter(|_| !stop.is_set()).for_each(|(index, line)| {
                for (column, value) in line.iter_mut().enumerate() {
                    *value = self.ray(geometry, index / rows, index % rows, column) as f32;
                }
            });
        });
        stop.check()?;
        Ok(out)
    }

    /// The attenuation at a point, 1/mm.
    pub fn at(&self, point_mm: [f64; 3]) -> f64 {
        let mut here =
            self.solids.iter().filter(|solid| solid.contains(point_mm)).map(|solid| solid.attenuation);
        if self.replace { here.next_back().unwrap_or(0.0) } else { here.sum() }
    }

    /// The mean attenuation of each voxel `[z, y, x]`, 1/mm. Where the corners of a voxel and its centre
    /// differ, it is the mean over 4 × 4 × 4 points, or over 4 × 4 in a grid of one slice.
    ///
    /// Errors: memory; interruption.
    pub fn volume(&self, cpu: &Cpu, grid: &VolumeGrid) -> Result<Vec<f32>> {
        let ([nz, ny, nx], first, spacing) = (grid.shape_zyx(), grid.first_mm(), grid.spacing_mm());
        let mut out = zeroed("phantom", voxels(&[nz, ny, nx])?)?;
        let depth = if nz == 1 { 1 } else { FINE };
        let places = |count: usize| (0..count).map(move |index| (index as f64 + 0.5) / count as f64 - 0.5);
        let stop = Stop::of_caller();
        cpu.run(|| {
            out.par_chunks_mut(nx).enumerate().filter(|_| !stop.is_set()).for_each(|(line, row)| {
                for (i, value) in row.iter_mut().enumerate() {
                    let index = [i as f64, (line % ny) as f64, (line / ny) as f64];
                    let point =
                        |by: [f64; 3]| std::array::from_fn(|a| first[a] + (index[a] + by[a]) * spacing[a]);
                    let middle = self.at(point([0.0; 3]));
                    let flat = if nz == 1 { 0.0 } else { 0.5 };
                    let corners = (0..8).map(|bits| {
                        let sign = |bit: usize, size: f64| if bits >> bit & 1 == 0 { -size } else { size };
                        self.at(point([sign(0, 0.5), sign(1, 0.5), sign(2, flat)]))
                    });
                    let even = corners.into_iter().all(|corner| corner == middle);
                    *value = if even {
                        middle as f32
                    } else {
                        let points = places(depth).flat_map(|z| {
                            places(FINE).flat_map(move |y| places(FINE).map(move |x| [x, y, z]))
                        });
                        let sum: f64 = points.map(|by| self.at(point(by))).sum();
                        (sum / (depth * FINE * FINE) as f64) as f32
                    };
                }
            });
        });
        stop.check()?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests;
