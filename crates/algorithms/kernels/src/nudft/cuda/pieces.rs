//! The variants whose samples go through constant memory: as many as it holds are copied there, and launches
//! sum a few of them each.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::Array;
use rayspin_device::cuda::{Argument, Define, Launch};
use rayspin_tune::Config;

use super::variants::{CONSTANT, FIXED_POINT, SFU, TUNED};
use super::{CudaVariant, Work, int, over};
use crate::cuda::define;
use crate::nudft::grid::Grid;
use crate::nudft::tune::value;

/// The tuned parameters.
struct Form {
    threads: u32,
    /// Samples of a launch.
    points: usize,
    /// How often the loop over samples is unrolled.
    unroll: u32,
    /// Voxels of a row that a thread has.
    voxels: u32,
}

impl Form {
    /// `compiled` gives the parameters that become macros (`unroll`, `voxels`), `config` the others.
    fn of(variant: CudaVariant, config: &Config, compiled: &Config) -> Result<Self> {
        let default = variant.space::<f32>().default_config();
        let plain = |config: &Config, name| value(config, name, default.find(name).unwrap_or(1));
        Ok(Self {
            threads: plain(config, "threads")?,
            points: plain(config, "points")?.max(1) as usize,
            unroll: plain(compiled, "unroll")?,
            voxels: plain(compiled, "voxels")?.max(1),
        })
    }

    fn macros<R: Real>(&self, variant: CudaVariant) -> Vec<Define> {
        [vec![define::<R>()], defines(variant, self.unroll, self.voxels)].concat()
    }
}

/// The macros of the form by default, and of that with the most registers.
pub(super) fn forms(variant: CudaVariant) -> [Vec<Define>; 2] {
    let space = variant.space::<f32>();
    let macros = |config: &Config| {
        let [unroll, voxels] = ["unroll", "voxels"].map(|name| config.find(name).unwrap_or(1));
        defines(variant, unroll, voxels)
    };
    [macros(&space.default_config()), macros(&space.configs().pop().unwrap_or_default())]
}

/// The macros of a form.
fn defines(variant: CudaVariant, unroll: impl ToString, voxels: impl ToString) -> Vec<Define> {
    let mut defines = vec![("UNROLL", unroll.to_string())];
    if variant == CudaVariant::Tuned {
        defines.push(("VOXELS", voxels.to_string()));
    }
    defines
}

/// Samples that constant memory holds, and bytes of one, as the programs have them.
fn capacity<R: Real>(variant: CudaVariant) -> (usize, usize) {
    match (variant, size_of::<R>()) {
        (CudaVariant::Constant, 4) => (2048, 32),
        (CudaVariant::Constant, _) => (1024, 48),
        _ => (2048, 24),
    }
}

impl Work<'_> {
    pub(super) fn pieces<R: Real>(
        &self,
        variant: CudaVariant,
        config: &Config,
        grid: &Grid,
        samples: &Array<Complex<R>>,
        image: &mut Array<Complex<R>>,
    ) -> Result<()> {
        let source = match variant {
            CudaVariant::Constant => &CONSTANT,
            CudaVariant::Fixed => &FIXED_POINT,
            CudaVariant::Sfu => &SFU,
            _ => &TUNED,
        };
        let exact = Form::of(variant, config, config)?;
        let general = Form::of(variant, config, &variant.space::<f32>().default_config())?;
        let exact = (exact.macros::<R>(variant), exact);
        let general = (general.macros::<R>(variant), general);
        let (macros, form) = if self.cuda.offers(source, &exact.0) { exact } else { general };
        let adjoint = self.cuda.kernel(source, &macros, "adjoint")?;
        let table = self.cuda.kernel(source, &macros, "table")?;
        let (capacity, bytes) = capacity::<R>(variant);
        if form.points > capacity {
            return Err(Error::value(
                format!("samples of a launch of {}", variant.name()),
                format!("at most {capacity}, the {bytes} bytes each that constant memory holds"),
                form.points,
            ));
        }
        let launch = self.launch(grid, &form)?;
        let words = bytes / size_of::<u32>();
        let mut packed = Array::<u32>::zeros(self.device, &[self.samples * words])?;
        let points = grid.points();
        let missing = |b: usize| Error::value("NUDFT image", "an image a batch entry", b);
        for b in 0..image.len() / points {
            let own = samples.cuda().part(b * self.samples, self.samples).ok_or_else(|| missing(b))?;
            let mut arguments = vec![
                self.k.cuda().into(),
                int(self.dims)?,
                int(self.samples)?,
                own.into(),
                packed.cuda_mut().into(),
            ];
            arguments.extend(grid.axes.map(|axis| Argument::from(axis.n as i32)));
            // SAFETY: every sample of this batch entry is there, and room for what is packed of it.
            unsafe { table.launch(over(self.samples, 1, 1)?, &mut arguments) }?;
            for first in (0..self.samples).step_by(capacity) {
                let held = (self.samples - first).min(capacity);
                let part = packed.cuda().part(first * words, held * words).ok_or_else(|| missing(b))?;
                self.cuda.fill_variable(source, &macros, "piece", part)?;
                for from in (0..held).step_by(form.points) {
                    let to = (from + form.points).min(held);
                    let mut whole = image.cuda_mut();
                    let own = whole.part(b * points, points).ok_or_else(|| missing(b))?;
                    let add = i32::from(first + from > 0);
                    let mut arguments: Vec<Argument<'_>> = vec![int(from)?, int(to)?, add.into(), own.into()];
                    arguments.extend(grid.axes.map(|axis| Argument::from(axis.count as i32)));
                    arguments.extend(grid.axes.map(|axis| Argument::from(axis.first as i32)));
                    // SAFETY: the samples are among those that constant memory holds; a thread takes voxels
                    // of the image.
                    unsafe { adjoint.launch(launch, &mut arguments) }?;
                }
            }
        }
        Ok(())
    }

    fn launch(&self, grid: &Grid, form: &Form) -> Result<Launch> {
        let [cz, cy, cx] = grid.axes.map(|axis| axis.count);
        let threads = cz * cy * cx.div_ceil(form.voxels as usize);
        let blocks = threads.div_ceil(form.threads.max(1) as usize);
        let blocks = u32::try_from(blocks)
            .map_err(|_| Error::value("NUDFT size", "a number of blocks of at most 32 bits", blocks))?;
        Ok(Launch::linear(blocks, form.threads))
    }
}
