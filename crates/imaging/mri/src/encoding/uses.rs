//! What a method asks of the encoding.

use crate::choices;

choices! {
    /// How coil images become one.
    pub enum Combine {
        /// √Σ_j |y_j|²: magnitude only.
        RootSumOfSquares = "rss", "Root of the sum of squares (magnitude only)";
        /// Σ_j conj(c_j) y_j / Σ_j |c_j|² with sensitivity maps: keeps the phase.
        Maps = "maps", "Weighted by sensitivity maps (keeps the phase)";
        /// y_j: the coil images as they are, `[coil, z, y, x]`.
        None = "none", "Coil images as they are, one volume a coil (keeps the phase)";
    }
}

/// What a method solves for at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// One image.
    Frame,
    /// All images of a slice.
    Series,
}

/// Which samples a method takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKind {
    /// Samples on a grid, in a homogeneous field.
    Grid,
    /// Samples with a trajectory, or on a grid in an inhomogeneous field.
    Trajectory,
    /// Either.
    Any,
}

/// How a method uses coil sensitivity maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapUse {
    /// To combine coil images, where [`Combine::Maps`] is the way. When absent, the maps that are given
    /// decide the way.
    Combining(Option<Combine>),
    /// It solves for an image that all coils see. One coil alone sees everything alike.
    One,
    /// The same, or for an image for each of several sets of maps.
    Sets,
}

/// What a method asks of the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uses {
    /// What it solves for at once.
    pub span: Span,
    /// Which samples it takes.
    pub samples: SampleKind,
    /// Coil sensitivity maps.
    pub maps: MapUse,
    /// Whether it weights samples by their density.
    pub density: bool,
    /// Whether it iterates with the normal operator FᴴF.
    pub normal: bool,
    /// Whether the coefficients of a temporal basis are images to it, `[coefficient, image…]`.
    pub coefficients: bool,
    /// Whether the step of its iterations depends on the largest eigenvalue, so that another frame's does not
    /// do.
    pub own_eigenvalue: bool,
}

impl Uses {
    /// A method over one image, which takes any samples and nothing else.
    pub fn new(maps: MapUse) -> Self {
        Self {
            span: Span::Frame,
            samples: SampleKind::Any,
            maps,
            density: false,
            normal: false,
            coefficients: false,
            own_eigenvalue: false,
        }
    }
}

/// Whether a method that uses this takes samples on a grid, or with a trajectory.
pub(crate) fn takes(uses: Uses, on_grid: bool) -> bool {
    match uses.samples {
        SampleKind::Any => true,
        SampleKind::Grid => on_grid,
        SampleKind::Trajectory => !on_grid,
    }
}
