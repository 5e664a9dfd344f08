#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::fmt::Write;

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use crate::plane;

static PLAIN: Source =
    Source { name: "convolution_plain", files: &[("01_plain.cu", include_str!("cuda/01_plain.cu"))] };
static CONSTANT: Source = Source {
    name: "convolution_constant",
    files: &[("02_constant.cu", include_str!("cuda/02_constant.cu"))],
};
static SHARED: Source =
    Source { name: "convolution_shared", files: &[("03_shared.cu", include_str!("cuda/03_shared.cu"))] };
static SLIDING: Source =
    Source { name: "convolution", files: &[("04_sliding.cu", include_str!("cuda/04_sliding.cu"))] };

/// Up to this radius the taps fit the 64 KB of constant memory, and the compiler takes their text well.
pub(super) const CONSTANT_MOST: usize = 128;
/// Up to these radii a thread's sums fit its registers.
pub(super) const SLIDING_MOST: usize = 12;
/// Bytes of shared memory that a block may take without opting in.
const SHARED_MOST: usize = 48 << 10;

pub(super) fn plain_forms() -> Vec<Build> {
    vec![Build::plain(&PLAIN)]
}

pub(super) fn constant_forms() -> Vec<Build> {
    vec![Build::plain(&CONSTANT)]
}

pub(super) fn shared_forms() -> Vec<Build> {
    vec![Build::plain(&SHARED)]
}

pub(super) fn sliding_forms() -> Vec<Build> {
    let form = |(rx, ry)| Build { source: &SLIDING, defines: radius_defines(rx, ry), spill_bytes: 0 };
    [(0, 0), (1, 1), (4, 4), (8, 8), (8, 0), (12, 12)].map(form).into()
}

fn radius_defines(rx: usize, ry: usize) -> Vec<Define> {
    vec![("RX", rx.to_string()), ("RY", ry.to_string())]
}

/// An image, its taps (those along x, then those along y) and where the result goes.
pub(super) struct Job<'a> {
    pub cuda: &'a Cuda,
    pub image: &'a Array<f32>,
    pub taps: &'a Array<f32>,
    pub out: &'a mut Array<f32>,
    pub rows: usize,
    pub columns: usize,
    pub rx: usize,
    pub ry: usize,
    /// Whether nothing is done along y.
    pub line: bool,
}

impl Job<'_> {
    /// That the arrays have the sizes that kernels are given.
    fn check(&self) -> Result<()> {
        let size = [self.rows, self.columns];
        plane::asked("convolution", &size)?;
        let most = super::MOST;
        if self.rx.max(self.ry) > most {
            return Err(Error::value(
                "radius of a convolution",
                format!("at most {most}"),
                self.rx.max(self.ry),
            ));
        }
        expect_len("image", &size, self.image.len())?;
        expect_len("convolution", &size, self.out.len())?;
        expect_len("taps of both axes", &[self.taps()], self.taps.len())
    }

    /// Taps of both axes.
    fn taps(&self) -> usize {
        2 * (self.rx + self.ry + 1)
    }

    /// [`Job::check`], and that `between` holds an image unless this is a line.
    fn check_both(&self, between: &Array<f32>) -> Result<()> {
        self.check()?;
        if self.line {
            Ok(())
        } else {
            expect_len("image between the passes", &[self.rows, self.columns], between.len())
        }
    }

    fn grid(&self, x: u32, y: u32) -> Launch {
        let blocks = [(self.columns as u32).div_ceil(x), (self.rows as u32).div_ceil(y), 1];
        Launch { blocks, threads: [x, y, 1], shared: 0 }
    }

    pub(super) fn naive(&mut self, x: u32, y: u32) -> Result<()> {
        self.check()?;
        let launch = self.grid(x, y);
        let kernel = self.cuda.kernel(&PLAIN, &[], "naive")?;
        let arguments = &mut [
            self.image.cuda().into(),
            self.taps.cuda().into(),
            self.out.cuda_mut().into(),
            (self.rows as i32).into(),
            (self.columns as i32).into(),
            (self.rx as i32).into(),
            (self.ry as i32).into(),
        ];
        // SAFETY: image and output have rows x columns pixels, to which the kernel holds places, and there
        // are taps of both radii.
        unsafe { kernel.launch(launch, arguments) }
    }

    /// Two passes; `between` holds an image unless this is a line.
    pub(super) fn separable(&mut self, x: u32, y: u32, between: &mut Array<f32>) -> Result<()> {
        self.check_both(between)?;
        let launch = self.grid(x, y);
        let pass = |name: &str, from: &Array<f32>, to: &mut Array<f32>| {
            let kernel = self.cuda.kernel(&PLAIN, &[], name)?;
            let arguments = &mut [
                from.cuda().into(),
                self.taps.cuda().into(),
                to.cuda_mut().into(),
                (self.rows as i32).into(),
                (self.columns as i32).into(),
                (self.rx as i32).into(),
                (self.ry as i32).into(),
            ];
            // SAFETY: both images have rows x columns pixels, to which the kernel holds places, and there are
            // taps of both radii.
            unsafe { kernel.launch(launch, arguments) }
        };
        if self.line {
            return pass("along_rows", self.image, self.out);
        }
        pass("along_rows", self.image, between)?;
        pass("along_columns", between, self.out)
    }

    /// The same with the taps `values` in constant memory.
    pub(super) fn constant(
        &mut self,
        x: u32,
        y: u32,
        unrolled: bool,
        values: &[f32],
        between: &mut Array<f32>,
    ) -> Result<()> {
        self.check_both(between)?;
        expect_len("values of taps", &[self.taps()], values.len())?;
        let launch = self.grid(x, y);
        let mut text = String::new();
        for (index, value) in values.iter().enumerate() {
            // Nine digits name every f32.
            let _ = write!(text, "{}{value:.9e}f", if index > 0 { "," } else { "" });
        }
        let mut defines = radius_defines(self.rx, self.ry);
        defines.push(("TAPS", text));
        let names =
            if unrolled { ["rows_unrolled", "columns_unrolled"] } else { ["rows_looped", "columns_looped"] };
        let pass = |name: &str, from: &Array<f32>, to: &mut Array<f32>| {
            let kernel = self.cuda.kernel(&CONSTANT, &defines, name)?;
            let arguments = &mut [
                from.cuda().into(),
                to.cuda_mut().into(),
                (self.rows as i32).into(),
                (self.columns as i32).into(),
            ];
            // SAFETY: both images have rows x columns pixels, to which the kernel holds places; the program
            // holds the taps of both radii.
            unsafe { kernel.launch(launch, arguments) }
        };
        if self.line {
            return pass(names[0], self.image, self.out);
        }
        pass(names[0], self.image, between)?;
        pass(names[1], between, self.out)
    }

    pub(super) fn shared(&mut self, x: u32, y: u32, height: usize) -> Result<()> {
        self.check()?;
        let blocks = [(self.columns as u32).div_ceil(x), self.rows.div_ceil(height) as u32, 1];
        let launch = Launch { blocks, threads: [x, y, 1], shared: 0 }
            .with_shared(shared_bytes(x as usize, height, self.rx, self.ry));
        let kernel = self.cuda.kernel(&SHARED, &[], "tile")?;
        let arguments = &mut [
            self.image.cuda().into(),
            self.taps.cuda().into(),
            self.out.cuda_mut().into(),
            (self.rows as i32).into(),
            (self.columns as i32).into(),
            (self.rx as i32).into(),
            (self.ry as i32).into(),
            (height as i32).into(),
        ];
        // SAFETY: image and output have rows x columns pixels, to which the kernel holds places; there are
        // taps of both radii, and shared memory for them and for both tiles.
        unsafe { kernel.launch(launch, arguments) }
    }

    pub(super) fn sliding(&mut self, threads: u32, each: usize) -> Result<()> {
        self.check()?;
        let across = self.columns.div_ceil(4).div_ceil(threads as usize);
        let blocks = across.checked_mul(self.rows.div_ceil(each)).filter(|&n| n <= i32::MAX as usize);
        let blocks = blocks.ok_or_else(|| {
            Error::value("convolution", "at most 2147483647 blocks", format!("{} rows", self.rows))
        })?;
        let kernel = self.cuda.kernel(&SLIDING, &radius_defines(self.rx, self.ry), "sliding")?;
        let shape = Launch::linear(blocks as u32, threads);
        let arguments = &mut [
            self.image.cuda().into(),
            self.taps.cuda().into(),
            self.out.cuda_mut().into(),
            (self.rows as i32).into(),
            (self.columns as i32).into(),
            (each as i32).into(),
            (across as i32).into(),
        ];
        // SAFETY: image and output have rows x columns pixels, to which the kernel holds places, and there
        // are taps of both radii.
        unsafe { kernel.launch(shape, arguments) }
    }
}

fn shared_bytes(width: usize, height: usize, rx: usize, ry: usize) -> usize {
    let (wide, high) = (width + 2 * rx, height + 2 * ry);
    let pixels = high.saturating_mul(wide + width);
    pixels.saturating_add(2 * (rx + ry + 1)).saturating_mul(4)
}

/// Whether a tile fits a block's shared memory.
pub(super) fn fits(width: usize, height: usize, rx: usize, ry: usize) -> bool {
    shared_bytes(width, height, rx, ry) <= SHARED_MOST
}
