//! What a picture shows.

use rayspin_core::vector::{add, dot, norm, scaled, sub};
use rayspin_core::{Error, Result, VolumeGrid};

use super::Camera;

/// What a pixel is made of, along its ray.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// ∫ f ds, with the length s in mm: the line integral of an attenuation f in 1/mm. One number a pixel.
    XRay,
    /// The largest f. One number a pixel.
    Maximum {
        /// The number of pixels whose rays miss the volume.
        missed: f32,
    },
    /// Emission and absorption: light of colour c(f) that material of opacity σ(f) sends out and absorbs,
    ///
    /// ```text
    /// ∫ c(f) σ(f) T ds,  T(s) = exp(−∫₀ˢ σ(f) ds')
    /// ```
    ///
    /// Four numbers a pixel: red, green and blue, already multiplied by opacity, and the opacity 1 − T of the
    /// whole ray.
    Volume(Transfer),
    /// The first place at which f reaches a value, lit. Four numbers a pixel: red, green and blue, and 1
    /// where there is such a place.
    Surface(Surface),
}

impl Mode {
    /// Numbers of a pixel.
    pub fn channels(&self) -> usize {
        match self {
            Self::XRay | Self::Maximum { .. } => 1,
            Self::Volume(_) | Self::Surface(_) => 4,
        }
    }
}

/// One point of a [`Transfer`] function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knot {
    /// The voxel's value.
    pub value: f32,
    /// Red, green and blue, 0 to 1.
    pub colour: [f32; 3],
    /// σ in 1/mm.
    pub opacity: f32,
}

/// A transfer function: colour and opacity are linear in the value between knots, and constant beyond the
/// first and the last.
///
/// ```
/// use rayspin_kernels::render::{Knot, Transfer};
///
/// let knot = |value, opacity| Knot { value, colour: [1.0, 0.5, 0.2], opacity };
/// let bone = Transfer::new(vec![knot(150.0, 0.0), knot(400.0, 0.3)])?;
/// assert_eq!(bone.most_opaque(-1000.0, 100.0), 0.0);
/// assert!((bone.most_opaque(0.0, 275.0) - 0.15).abs() < 1e-6);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    knots: Vec<Knot>,
}

impl Transfer {
    /// Knots that a function may have.
    pub const MOST: usize = 64;

    /// Errors: no knots or more than 64; values that do not grow; colours outside 0 to 1; a negative opacity;
    /// numbers that are not finite.
    pub fn new(knots: Vec<Knot>) -> Result<Self> {
        if !(1..=Self::MOST).contains(&knots.len()) {
            return Err(Error::value("transfer function", "1 to 64 points", knots.len()));
        }
        for (index, knot) in knots.iter().enumerate() {
            let what = format!("point {} of the transfer function", index + 1);
            if !knot.value.is_finite()
                || index.checked_sub(1).is_some_and(|last| knots[last].value >= knot.value)
            {
                return Err(Error::value(what, "finite values that grow", knot.value));
            }
            if knot.colour.iter().any(|c| !(0.0..=1.0).contains(c)) {
                return Err(Error::value(what, "colours from 0 to 1", format!("{:?}", knot.colour)));
            }
            if !(knot.opacity >= 0.0 && knot.opacity.is_finite()) {
                return Err(Error::value(what, "an opacity of at least 0 per mm", knot.opacity));
            }
        }
        Ok(Self { knots })
    }

    /// The points.
    pub fn knots(&self) -> &[Knot] {
        &self.knots
    }

    /// The largest opacity of values from `low` to `high`.
    pub fn most_opaque(&self, low: f32, high: f32) -> f32 {
        let within = self.knots.iter().filter(|knot| knot.value >= low && knot.value <= high);
        let inner = within.map(|knot| knot.opacity).fold(0.0, f32::max);
        inner.max(self.opacity(low)).max(self.opacity(high))
    }

    fn opacity(&self, value: f32) -> f32 {
        let after = self.knots.partition_point(|knot| knot.value <= value);
        match (after.checked_sub(1).and_then(|index| self.knots.get(index)), self.knots.get(after)) {
            (Some(a), Some(b)) => {
                a.opacity + (value - a.value) / (b.value - a.value) * (b.opacity - a.opacity)
            }
            (Some(only), None) | (None, Some(only)) => only.opacity,
            (None, None) => 0.0,
        }
    }

    /// The function as a constant and ramps: red, green, blue and opacity are `base + Σ slope · clamp(value −
    /// from, 0, width)`. A ramp holds `from`, `width` and four slopes.
    pub(super) fn ramps(&self) -> ([f32; 4], Vec<[f32; 6]>) {
        let channels = |knot: &Knot| [knot.colour[0], knot.colour[1], knot.colour[2], knot.opacity];
        let base = self.knots.first().map_or([0.0; 4], channels);
        let ramp = |pair: &[Knot]| {
            let (a, b) = (channels(&pair[0]), channels(&pair[1]));
            let width = pair[1].value - pair[0].value;
            let slope = |channel: usize| (b[channel] - a[channel]) / width;
            [pair[0].value, width, slope(0), slope(1), slope(2), slope(3)]
        };
        (base, self.knots.windows(2).map(ramp).collect())
    }
}

/// A surface of one value, and how it is lit.
///
/// ```text
/// colour · (ambient + diffuse · max(0, n·l)) + specular · max(0, r·v)^shininess
/// ```
///
/// The normal n is the direction of the gradient at the surface, on the side of the viewer. Where the value
/// changes by less than 1e-5 of itself from voxel to voxel, the gradient is rounding, and the surface faces
/// the viewer. v points to the viewer, and r is the reflected light (B. T. Phong, *Illumination for computer
/// generated pictures*, Commun ACM 18:311, 1975).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Surface {
    /// The value.
    pub value: f32,
    /// Red, green and blue of the surface, 0 to 1.
    pub colour: [f32; 3],
    /// The direction to the light: to the right, upwards and towards the viewer.
    pub light: [f64; 3],
    /// Light from everywhere.
    pub ambient: f32,
    /// Light that a rough surface throws back.
    pub diffuse: f32,
    /// Light that a smooth surface reflects.
    pub specular: f32,
    /// How narrow the reflection is.
    pub shininess: f32,
}

/// The part of a value by which it changes over two voxels, at least, for its gradient to be known.
const FAINT: f64 = 1e-5;

impl Surface {
    /// The surface of a value in the colour of bone, lit from the upper left.
    pub fn of(value: f32) -> Self {
        Self {
            value,
            colour: [0.95, 0.9, 0.82],
            light: [-0.5, 0.6, 1.0],
            ambient: 0.2,
            diffuse: 0.75,
            specular: 0.15,
            shininess: 20.0,
        }
    }

    /// The direction to the light, a unit vector in the volume's coordinates. `axes` point to the right,
    /// upwards and towards the viewer.
    pub(super) fn light_from(&self, axes: [[f64; 3]; 3]) -> [f64; 3] {
        let light = (0..3).fold([0.0; 3], |sum, axis| add(sum, scaled(axes[axis], self.light[axis])));
        scaled(light, 1.0 / norm(light))
    }

    /// Red, green, blue and 1 at a place of the surface with this gradient, seen along the unit vector
    /// `along`.
    pub(super) fn lit(
        &self,
        axes: [[f64; 3]; 3],
        gradient: [f64; 3],
        along: [f64; 3],
        spacing_mm: [f64; 3],
    ) -> [f64; 4] {
        let (to_viewer, light) = (scaled(along, -1.0), self.light_from(axes));
        let steep = norm(gradient);
        let finest = spacing_mm.into_iter().fold(f64::INFINITY, f64::min);
        let known = 2.0 * finest * steep > FAINT * f64::from(self.value).abs();
        let mut normal = if known { scaled(gradient, 1.0 / steep) } else { to_viewer };
        if dot(normal, to_viewer) < 0.0 {
            normal = scaled(normal, -1.0);
        }
        let facing = dot(normal, light);
        let reflected = sub(scaled(normal, 2.0 * facing), light);
        let shine = if facing > 0.0 { dot(reflected, to_viewer).max(0.0) } else { 0.0 };
        let rough = f64::from(self.ambient) + f64::from(self.diffuse) * facing.max(0.0);
        let smooth = f64::from(self.specular) * shine.powf(f64::from(self.shininess));
        let [r, g, b] = self.colour.map(|colour| (f64::from(colour) * rough + smooth).min(1.0));
        [r, g, b, 1.0]
    }
}

/// A picture to be made: its mode, its camera and its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// What a pixel is made of.
    pub mode: Mode,
    /// The rays.
    pub camera: Camera,
    /// Samples of a ray for each voxel that it passes along its main axis, for x, y and z as the main axis.
    pub(super) samples: [u32; 3],
}

/// Samples for each voxel at most.
const MOST: f64 = 256.0;

impl Scene {
    /// A picture with one sample for each voxel of a ray's main axis.
    pub fn new(camera: Camera, mode: Mode) -> Self {
        Self { mode, camera, samples: [1; 3] }
    }

    /// The same with samples that are at most `step_mm` apart along the main axis.
    ///
    /// Errors: a step that is not positive, or finer than 1/256 of a voxel.
    pub fn step(mut self, grid: &VolumeGrid, step_mm: f64) -> Result<Self> {
        let widest = grid.spacing_mm().into_iter().fold(0.0, f64::max);
        if !(step_mm.is_finite() && step_mm * MOST >= widest) {
            let expected = format!("at least {} mm, 1/256 of a voxel", widest / MOST);
            return Err(Error::value("step along rays", expected, step_mm));
        }
        // A voxel that is a step wide but for rounding takes one sample.
        self.samples = grid.spacing_mm().map(|spacing| (spacing / step_mm - 1e-6).ceil().max(1.0) as u32);
        Ok(self)
    }

    /// Rows, columns and numbers of a pixel of the picture, without the last where it is 1.
    pub fn shape(&self) -> Vec<usize> {
        let mut shape = self.camera.shape().to_vec();
        shape.extend(Some(self.mode.channels()).filter(|&count| count > 1));
        shape
    }
}
