//! Pictures on a CPU.

mod group;
mod packets;
mod rays;
mod shade;

use rayspin_core::{Result, VolumeGrid};
use rayspin_device::Cpu;

use super::Scene;
use super::blocks::Blocks;
use super::ray::Setup;
use super::voxels::Voxels;

/// What a picture is made of.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) scene: &'a Scene,
    pub(super) grid: &'a VolumeGrid,
    pub(super) voxels: Voxels<'a>,
    pub(super) blocks: &'a Blocks,
}

impl Input<'_> {
    fn setup(&self) -> Setup {
        Setup::new(self.scene, self.grid)
    }
}

/// Makes a picture `[row, column]` of pixels with the mode's channels. The lengths fit the scene and the
/// grid.
///
/// Errors: memory.
pub(super) type Draw = fn(&Cpu, Input<'_>, &mut [f32]) -> Result<()>;

/// Light that is left where a ray may end: less than 1/4 of a step of an 8-bit picture.
pub(super) const DARK: f32 = 1.0 / 1024.0;

pub(super) use packets::{packets, skipping};
pub(super) use rays::{alone, cores};
