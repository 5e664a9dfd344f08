//! Tuning spaces of the rungs: what each leaves open, and the configuration that the public functions take.

use std::any::TypeId;
use std::ops::Deref;

use rayspin_core::{Real, Result};
use rayspin_device::{Cpu, Device};
use rayspin_tune::{Config, Space, tuned};

use super::Operation;
use super::ladder::{self, Direct};

/// The parameters that the rung of this name leaves open, in one precision.
///
/// Those of `gpu-constant` and `gpu-sfu` are the published 175: how often the loop over samples is unrolled, threads of a block,
/// samples of a launch.
pub(super) fn space(rung: &str, double: bool) -> Space {
    let f64s_fit: fn(&Config) -> bool = |c| c.find("points").is_some_and(|points| points <= 1024);
    match rung {
        "simd" => Space::none().axis("samples", &[64, 128, 256, 512, 1024], SAMPLES),
        "separable" | "mirrored" => Space::none().axis("samples", &[64, 128, 256, 512], SAMPLES).axis(
            "sums",
            &[4096, 8192, 16384, 32768, 65536],
            SUMS,
        ),
        "gpu-naive" => Space::none().axis("threads", THREADS, 128),
        "gpu-constant" | "gpu-sfu" => {
            let space = Space::none()
                .axis("unroll", &[1, 2, 4, 8, 16], 16)
                .axis("threads", THREADS, 128)
                .axis("points", POINTS, 64);
            // Constant memory has 64 KB, a sample of the one f64 rung 48 bytes.
            if double { space.where_(f64s_fit) } else { space }
        }
        "gpu-tuned" => Space::none()
            .axis("voxels", &[1, 2, 4, 8, 16], 4)
            .axis("unroll", &[1, 2, 4], 2)
            .axis("threads", &[64, 128, 256], 64)
            .axis("points", &[32, 64, 256, 1024, 2048], 256),
        "gpu-separable" => Space::none().axis("table", TABLES, 8192),
        // A warp has two points of a tile: 16 registers' sums a thread leave room for 256 threads a multiprocessor.
        "gpu-double" => Space::none().axis("table", TABLES, 8192).axis("threads", &[64, 128, 256], 128),
        "gpu-tensor" | "gpu-wgmma" => {
            Space::none().axis("table", TABLES, 8192).axis("columns", &[64, 128], 128)
        }
        _ => Space::none(),
    }
}

const THREADS: &[i64] = &[32, 64, 128, 256, 512];
const POINTS: &[i64] = &[32, 64, 128, 256, 512, 1024, 2048];
/// Samples of a table of phases: by default all tables of a 128³ image's Q stay in the second-level cache. Sums of more samples than
/// the most would lose digits of f32.
const TABLES: &[i64] = &[2048, 4096, 8192, 16384];
/// Samples that are summed in working precision before they join a double-precision sum.
const SAMPLES: i64 = 256;
/// Elements of double-precision sums that a task keeps, so that they and a panel stay in its second-level cache.
const SUMS: i64 = 16 * 1024;

/// How the CPU's rungs cut their work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Samples of a panel.
    pub(super) samples: usize,
    /// Elements of double-precision sums of a task.
    pub(super) sums: usize,
}

impl Cut {
    /// The default where a configuration says nothing. Errors: a value that is no number.
    pub(super) fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            samples: value(config, "samples", SAMPLES)? as usize,
            sums: value(config, "sums", SUMS)? as usize,
        })
    }
}

/// The value of `name`, or `default` where the space of the rung has no such axis.
pub(super) fn value(config: &Config, name: &str, default: i64) -> Result<u32> {
    match config.find(name) {
        Some(_) => config.get(name),
        None => Config::of(&[(name, default)]).get(name),
    }
}

/// A CPU, and how work is cut for it.
pub(super) struct Host<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) cut: Cut,
}

impl Deref for Host<'_> {
    type Target = Cpu;

    fn deref(&self) -> &Cpu {
        self.cpu
    }
}

/// The best configuration of a rung that was measured on this device, else its default.
pub(super) fn chosen<R: Real>(
    operation: Operation,
    rung: &'static str,
    (matrix, samples): (&[usize], usize),
    device: &Device,
) -> Config {
    let problem = ladder::problem(operation, matrix, samples);
    if TypeId::of::<R>() == TypeId::of::<f32>() {
        tuned(&Direct::<f32>::new(operation), &problem, rung, device)
    } else {
        tuned(&Direct::<f64>::new(operation), &problem, rung, device)
    }
}
