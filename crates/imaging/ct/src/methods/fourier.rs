//! Filtered back-projection of parallel rays through Fourier space: one non-uniform transform for two slices.
//!
//! ```text
//! f(x) = Σ_v Δθ_v Σ_m Q_v(m) exp(i2π m s_v(x)/L),   Q_v = H DFT(w p_v)
//! ```
//!
//! with the symbols of [`FourierBackprojection`].
//!
//! J. D. O'Sullivan, *A fast sinc function gridding algorithm for Fourier inversion in computer tomography*,
//! IEEE Trans Med Imaging 4:200, 1985.

use rayspin_core::{C32, Error, Monitor, Result, voxels};
use rayspin_device::cpu::zeroed;
use rayspin_kernels::nufft::{self, Nufft};
use rayspin_kernels::variant::Work;
use rayspin_run::{About, Bytes, Cost, Effort, Memory, Param, Step, Value, params};

use super::{Method, analytic};
use crate::analytic::{
    Extend, Filter, FilteredBackprojection, FourierBackprojection, Window, extension_note,
};
use crate::solving::{REAL, Solving, Spec, checks, parts};

/// Slices between two looks at the monitor.
const SLICES: usize = 16;

const ACCURACY: Param = Param::new("Filter", "Relative error of the non-uniform transform")
    .title("accuracy of the transform")
    .expects("1e-6 to 0.1", |value| match value {
        Value::Number(accuracy) => (1e-6..=0.1).contains(accuracy),
        _ => false,
    });

params! {
    /// Filtered back-projection of parallel rays through Fourier space.
    pub struct Fourier {
        /// The window of the ramp filter.
        window: Window = Window::RamLak => analytic::WINDOW,
        /// The frequency at which the window ends, as a part of the highest frequency.
        cutoff: f64 = 1.0 => analytic::CUTOFF,
        /// How rows go on beyond the detector.
        extend: Extend = Extend::Auto => analytic::EXTEND,
        /// The relative error of the non-uniform transform.
        accuracy: f64 = 1e-4 => ACCURACY,
    }
}

impl Method for Fourier {
    fn about(&self) -> About {
        About {
            name: "fourier",
            help: "Filtered back-projection of parallel rays through Fourier space: the fastest for several slices",
        }
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        if !spec.geometry().is_parallel() {
            return Err(Error::value(
                "rays for fourier",
                "parallel rays",
                "a fan or a cone (`--method fbp` or `fdk`)",
            ));
        }
        let filter = Filter { window: self.window, cutoff: self.cutoff, extend: self.extend };
        let accuracy = self.accuracy;
        let rows = FilteredBackprojection::new(&spec.device().host(), spec.geometry(), spec.grid(), filter)?;
        let (length, [extensions, _]) = (rows.length(), rows.extension_bytes(spec.geometry().views().len()));
        let run = move |state: &mut Solving<'a>, monitor: &Monitor<'_>| {
            let (geometry, grid) = (spec.geometry(), spec.grid());
            let method = FourierBackprojection::new(spec.device(), geometry, grid, filter, accuracy)?;
            method.notes().iter().for_each(|note| state.note(note.clone()));
            let seen = checks::note_of_seen(grid, method.seen_radius_mm())?;
            seen.into_iter().for_each(|note| state.note(note));
            let mut volume = zeroed("volume", voxels(&grid.shape_zyx())?)?;
            let slice = volume.len() / grid.shape_zyx()[0];
            let watched = state.drawn(volume.len());
            let mut exact = vec![0.0; watched.len()];
            let views = geometry.views().len();
            let lines = state.lines(0..views)?;
            let ends = method.ends(&lines)?;
            for planes in parts(grid.shape_zyx()[0], SLICES) {
                let inside = |voxel: usize| planes.contains(&(voxel / slice));
                let mine: Vec<usize> = watched.iter().copied().filter(|&voxel| inside(voxel)).collect();
                let (slices, sums) = method.watched_slices(&lines, planes.clone(), &mine, &ends)?;
                volume[planes.start * slice..planes.end * slice].copy_from_slice(&slices);
                let places = watched.iter().enumerate().filter(|(_, voxel)| inside(**voxel));
                places.zip(sums).for_each(|((place, _), sum)| exact[place] = sum);
                monitor.step(&format!("slices {} to {}", planes.start, planes.end - 1))?;
            }
            drop(lines);
            extension_note(filter.extend, ends.count(), views).into_iter().for_each(|note| state.note(note));
            state.certify_sums("Fourier sums", &watched, &exact, &volume, nufft::BOUND * accuracy);
            state.finish(volume);
            Ok(())
        };
        let steps = spec.grid().shape_zyx()[0].div_ceil(SLICES);
        Ok(vec![
            Step::new("Fourier sums", run)
                .progress(steps)
                .needs(move || needs(spec, length, accuracy, extensions)),
        ])
    }
}

fn needs(spec: &Spec<'_>, length: usize, accuracy: f64, extensions: u64) -> Result<Cost> {
    let (geometry, [slices, ny, nx]) = (spec.geometry(), spec.grid().shape_zyx().map(|n| n as u64));
    let points = FourierBackprojection::points(geometry, spec.grid(), length)?;
    let options = nufft::Options::tolerance(accuracy);
    let nufft = Nufft::<f32>::needs(spec.device(), &points, &[ny as usize, nx as usize], &options)?;
    let complex = size_of::<C32>() as u64;
    let (samples, slice) = (points.samples() as u64, ny * nx);
    let volume = REAL * spec.voxels()?;
    let some = REAL * slice * slices.min(SLICES as u64);
    let weights = REAL * (geometry.views().len() * geometry.detector().columns) as u64;
    // Two f64 a point; then factors. While it runs rows and samples, one pair of slices at a time.
    let made = 2 * complex * samples + complex * samples + nufft.planning;
    let runs = nufft.plan + nufft.workspace + complex * (3 * samples + slice);
    let on_host = weights + volume + some + extensions;
    let memory = match spec.on_gpu() {
        // Rows are packed, and images read, on the host.
        true => Bytes { host: on_host + 2 * complex * samples.max(slice), gpu: made.max(runs) },
        false => Bytes::host(on_host + made.max(runs)),
    };
    let pairs = slices.div_ceil(2);
    let transform = Work {
        flops: nufft.transform.flops + 5.0 * samples as f64 * (length as f64).log2(),
        bytes: nufft.transform.bytes + 6.0 * (complex * samples) as f64,
    };
    Ok(Cost::of(Memory::temporary(memory).holding(Bytes::host(volume)))
        .and(Effort::transforms(pairs, transform)))
}
