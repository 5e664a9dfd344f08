#![doc = include_str!("../README.md")]

mod across;
mod algebra;
mod basic;
mod block;
mod fourier;
mod grid;
pub mod laws;
mod maps;
mod nonuniform;
mod off_resonance;
mod op;
mod projection;
mod scratch;
mod sense;
mod subspace;
mod wavelet;

pub use across::{Across, AcrossDevices};
pub use algebra::{Adjoint, Compose, Normal, Op, Scaled, Stack, Sum};
pub use basic::{Diagonal, FiniteDifference, Identity, SamplingMask, weighted_differences};
pub use block::BlockDiagonal;
pub use fourier::Fourier;
pub use grid::GridNormal;
pub use laws::{random, random_of};
pub use maps::{CoilMaps, MapsBuilder, batches};
pub use nonuniform::{Nudft, Nufft, NufftType3, SenseNufft, SenseToeplitz, ToeplitzNormal};
pub use off_resonance::{OffResonanceNufft, OffResonanceToeplitz};
pub use op::LinearOp;
pub use projection::Projection;
pub use scratch::{Lease, Scratch};
pub use sense::{Sense, SoftSense};
pub use subspace::SubspaceToeplitz;
pub use wavelet::{Wavelet, WaveletFamily};
