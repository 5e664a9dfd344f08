//! What a method gets and what it leaves: rays, voxels and device before anything is allocated ([`Spec`]),
//! line integrals and what becomes of them while its steps run ([`Solving`]), and the volume
//! ([`Reconstruction`]).

pub(crate) mod checks;
mod spec;
mod state;

use std::ops::Range;

use ndarray::Array3;
use rayspin_core::Error;
use rayspin_run::BatchSize;
use serde::Serialize;

pub use spec::Spec;
pub(crate) use state::Slab;
pub use state::{Certificate, Solve, Solving};

/// Bytes of a real number.
pub(crate) const REAL: u64 = size_of::<f32>() as u64;

/// The error of a step that finds nothing where an earlier one had to leave something.
pub(crate) fn lost(what: &str) -> Error {
    Error::value(what, "from an earlier step", "none")
}

/// How the work is cut to fit a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BatchSizes {
    /// Slices of the volume at a time; all when absent.
    pub slices: Option<usize>,
    /// Views at a time; all when absent.
    pub views: Option<usize>,
}

const SLICES: &str = "slices";
const VIEWS: &str = "views";

impl BatchSizes {
    /// Every size that may be reduced, for `[view, row, column]` projections and `[z, y, x]` voxels. They
    /// save memory of a GPU. Where views arrive as often as they are needed, slices save memory of the host
    /// as well.
    pub fn list(&self, [views, ..]: [usize; 3], [slices, ..]: [usize; 3]) -> Vec<BatchSize> {
        let size = |name, now: Option<usize>, full: usize, describe| {
            let now = now.unwrap_or(full).min(full);
            BatchSize { name, now, least: 1, gpu_only: true, describe }
        };
        vec![
            size(SLICES, self.slices, slices, |n| format!("slices taken {n} at a time")),
            size(VIEWS, self.views, views, |n| format!("views taken {n} at a time")),
        ]
    }

    /// Sets the size called `name`.
    pub fn set(&mut self, name: &str, to: usize) {
        match name {
            SLICES => self.slices = Some(to),
            VIEWS => self.views = Some(to),
            _ => {}
        }
    }
}

/// A volume, and how it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconstruction {
    /// The attenuation `[z, y, x]`, 1/mm.
    pub volume: Array3<f32>,
    /// How the iterations went, for a method that iterates.
    pub solve: Option<Solve>,
    /// What was assumed or changed, for people.
    pub notes: Vec<String>,
    /// What was checked.
    pub certificates: Vec<Certificate>,
}

/// `0..count` in parts of at most `most`.
pub(crate) fn parts(count: usize, most: usize) -> Vec<Range<usize>> {
    (0..count).step_by(most.max(1)).map(|first| first..count.min(first + most.max(1))).collect()
}
