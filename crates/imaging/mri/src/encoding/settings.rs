//! What an encoding takes of a run: what the method asks, and those options that act on samples, maps and
//! transforms.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::C32;
use rayspin_run::Certify;
use serde::Serialize;

use super::{BatchSizes, Combine, KernelStore, Uses};
use crate::basis::Basis;
use crate::maps::Sensitivities;
use crate::prepare::Compression;

/// Density compensation of samples along a trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Density {
    /// Fixed-point iteration of Pipe and Menon, for any trajectory.
    PipeMenon,
    /// The ramp of straight spokes through the centre.
    Radial,
}

/// What an encoding takes of a run. An encoding knows neither methods nor runs, so that both can be written
/// over encodings.
///
/// A field with the name of an option has its meaning.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// What the method asks.
    pub(crate) uses: Uses,
    pub(crate) field_map: Option<&'a ArrayD<f32>>,
    pub(crate) basis: Option<&'a Arc<Basis>>,
    pub(crate) field_tolerance: f64,
    pub(crate) nufft_tolerance: f64,
    pub(crate) density: Density,
    pub(crate) density_iterations: usize,
    /// How coils were compressed.
    pub(crate) compression: Option<Compression>,
    pub(crate) calibration: Option<usize>,
    pub(crate) sensitivities: Option<Sensitivities>,
    pub(crate) maps: Option<&'a ArrayD<C32>>,
    /// Whether sensitivity maps are used.
    pub(crate) needs_maps: bool,
    /// Sets of them.
    pub(crate) map_sets: usize,
    pub(crate) keep_maps: bool,
    /// How coil images become one, where the method combines any.
    pub(crate) combine: Combine,
    /// Whether they stay apart.
    pub(crate) coil_images: bool,
    pub(crate) certify: Option<&'a Certify>,
    pub(crate) batch_sizes: BatchSizes,
    pub(crate) kernels: Option<&'a dyn KernelStore>,
}
