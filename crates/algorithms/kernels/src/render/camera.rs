//! Where the rays of a picture run.

use rayspin_core::vector::{add, cross, dot, norm, scaled, sub};
use rayspin_core::{Error, ProjectionGeometry, RaySource, Result, voxels};

/// How rays leave a camera.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lens {
    /// Rays start at the eye.
    Perspective {
        /// The angle between the left and the right edge of the picture, radian.
        field_of_view: f64,
    },
    /// Rays are parallel. They come from beyond the volume, wherever the eye is.
    Orthographic {
        /// The width of the picture in mm.
        width_mm: f64,
    },
}

/// A camera: the ray of each pixel of a picture `[row, column]`, whose row 0 is the upper one.
///
/// ```text
/// start = s₀ + x s₁ + y s₂        direction = d₀ + x d₁ + y d₂
/// ```
///
/// x and y count columns and rows from the middle of the picture. Pixels are square, and points are in mm in
/// the coordinates of a [`VolumeGrid`](rayspin_core::VolumeGrid).
///
/// ```
/// use rayspin_kernels::render::{Camera, Lens};
///
/// // From the front, z upwards, at a picture of 30 × 40 pixels of 2 mm.
/// let camera = Camera::new(Lens::Orthographic { width_mm: 80.0 }, [0.0, -200.0, 0.0], [0.0; 3], [0.0, 0.0, 1.0], [30, 40])?;
/// assert_eq!(camera.shape(), [30, 40]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Camera {
    shape: [usize; 2],
    pub(super) start: [[f64; 3]; 3],
    pub(super) along: [[f64; 3]; 3],
    /// Whether rays start at one point.
    pub(super) from_point: bool,
    /// Unit vectors to the right, upwards and towards the viewer.
    pub(super) axes: [[f64; 3]; 3],
}

fn unit(what: &str, a: [f64; 3]) -> Result<[f64; 3]> {
    let length = norm(a);
    if length > 0.0 && length.is_finite() {
        Ok(scaled(a, 1.0 / length))
    } else {
        Err(Error::value(what, "a finite vector that is not 0", format!("{a:?}")))
    }
}

impl Camera {
    /// A camera at `eye` that looks at `target`; `up` is upwards in the picture, as far as it is at right
    /// angles to the view.
    ///
    /// Errors: no pixels; a width that is not positive; a field of view that is not between 0 and half a
    /// turn; an eye at the target; `up` along the view; numbers that are not finite.
    pub fn new(
        lens: Lens,
        eye: [f64; 3],
        target: [f64; 3],
        up: [f64; 3],
        [rows, columns]: [usize; 2],
    ) -> Result<Self> {
        if voxels(&[rows, columns])? == 0 {
            return Err(Error::value(
                "picture",
                "at least one row and column",
                format!("{rows} × {columns}"),
            ));
        }
        let forward = unit("direction of view", sub(target, eye))?;
        let right = unit("direction upwards, less the direction of view", cross(forward, unit("up", up)?))?;
        let down = cross(forward, right);
        let wide = columns as f64;
        let (from_point, pitch) = match lens {
            Lens::Perspective { field_of_view } => {
                if !(field_of_view > 0.0 && field_of_view < std::f64::consts::PI) {
                    let angle = format!("{}°", field_of_view.to_degrees());
                    return Err(Error::value("angle of the lens", "more than 0° and less than 180°", angle));
                }
                (true, 2.0 * (0.5 * field_of_view).tan() / wide)
            }
            Lens::Orthographic { width_mm } => {
                if !(width_mm > 0.0 && width_mm.is_finite()) {
                    return Err(Error::value("width of the picture", "a positive length in mm", width_mm));
                }
                (false, width_mm / wide)
            }
        };
        let (across, below) = (scaled(right, pitch), scaled(down, pitch));
        let none = [0.0; 3];
        let (start, along) = match from_point {
            true => ([eye, none, none], [forward, across, below]),
            false => ([eye, across, below], [forward, none, none]),
        };
        let axes = [right, scaled(down, -1.0), scaled(forward, -1.0)];
        Ok(Self { shape: [rows, columns], start, along, from_point, axes })
    }

    /// The camera with the rays of a view of a scan, row by row as the detector has them. They do not end at
    /// the detector.
    ///
    /// Errors: a view that does not exist; a curved detector.
    pub fn of_view(geometry: &ProjectionGeometry, view: usize) -> Result<Self> {
        let [views, rows, columns] = geometry.shape();
        let detector = geometry.detector();
        if detector.radius_mm.is_some() {
            return Err(Error::value("detector of a camera", "a flat one", "a curved one"));
        }
        let pose = geometry.views().get(view);
        let pose = pose
            .ok_or_else(|| Error::value("view", format!("one of 0 to {}", views.saturating_sub(1)), view))?;
        let (across, below) = (scaled(pose.u, detector.pitch_mm[0]), scaled(pose.v, detector.pitch_mm[1]));
        let none = [0.0; 3];
        let (from_point, start, along) = match pose.source {
            RaySource::Point(source) => {
                (true, [source, none, none], [sub(pose.detector_mm, source), across, below])
            }
            RaySource::Direction(along) => (false, [pose.detector_mm, across, below], [along, none, none]),
        };
        let axes = [pose.u, scaled(pose.v, -1.0), pose.towards_source()];
        Ok(Self { shape: [rows, columns], start, along, from_point, axes })
    }

    /// Rows and columns of the picture.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// A point of a pixel's ray in mm, the eye where there is one, and the unit vector along which the ray
    /// runs. Rows and columns may lie between pixels.
    pub fn ray(&self, row: f64, column: f64) -> ([f64; 3], [f64; 3]) {
        let [x, y] = self.place(row, column);
        let affine = |rows: [[f64; 3]; 3]| add(rows[0], add(scaled(rows[1], x), scaled(rows[2], y)));
        let along = affine(self.along);
        (affine(self.start), scaled(along, 1.0 / dot(along, along).sqrt()))
    }

    pub(super) fn place(&self, row: f64, column: f64) -> [f64; 2] {
        [column - 0.5 * (self.shape[1] - 1) as f64, row - 0.5 * (self.shape[0] - 1) as f64]
    }
}
