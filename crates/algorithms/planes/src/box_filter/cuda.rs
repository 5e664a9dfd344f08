#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::{Pixel, check_radius};
use crate::plane;
use rayspin_tune::blocks::whole_warps;

static SOURCE: Source = Source { name: "box_filter", files: &[("box.cu", include_str!("cuda/box.cu"))] };

/// Columns of a thread: the only number for some kernels, the largest for the others.
pub(super) const WIDEST: u32 = 8;

/// Up to this radius 32 bits are enough for the rounding.
const SMALL: usize = 40;

fn form(large: u32, v: u32) -> Build {
    Build { source: &SOURCE, defines: defines(large, v), spill_bytes: 0 }
}

/// Forms of the kernels whose threads always have the same number of columns.
pub(super) fn forms() -> Vec<Build> {
    vec![form(0, WIDEST), form(1, WIDEST)]
}

pub(super) fn fused_forms() -> Vec<Build> {
    vec![form(0, 4), form(1, 4), form(0, WIDEST), form(1, WIDEST)]
}

fn defines(large: u32, v: u32) -> Vec<Define> {
    vec![("LARGE", large.to_string()), ("V", v.to_string())]
}

/// An image and where its means go.
pub(super) struct Job<'a, T: Pixel> {
    pub cuda: &'a Cuda,
    pub image: &'a Array<T>,
    pub out: &'a mut Array<T>,
    pub rows: usize,
    pub columns: usize,
    pub radius: usize,
}

/// Columns at either end of a warp's strip that only serve the others.
fn margins(radius: usize, v: u32) -> (usize, usize) {
    let v = v as usize;
    ((radius + 1).next_multiple_of(v), radius.next_multiple_of(v))
}

/// Why a warp's strip is too narrow for a radius.
pub(super) fn fused_refuses(radius: usize, v: u32) -> Option<String> {
    let (left, right) = margins(radius, v);
    // At least a quarter of what is read must be of use.
    (left + right > 24 * v as usize).then(|| {
        format!(
            "radius {radius}: a warp's strip has {} columns, of which a quarter must not be margins",
            32 * v
        )
    })
}

impl<T: Pixel> Job<'_, T> {
    fn inverse(&self) -> f64 {
        (2.0 * self.radius as f64 + 1.0).powi(-2)
    }

    fn kernel(&self, name: &str, v: u32) -> Result<rayspin_device::cuda::Kernel> {
        let large = u32::from(self.radius > SMALL);
        self.cuda.kernel(&SOURCE, &defines(large, v), &format!("{name}_{}", T::NAME))
    }

    fn grid(&self, x: u32, y: u32) -> Launch {
        let blocks = [(self.columns as u32).div_ceil(x), (self.rows as u32).div_ceil(y), 1];
        Launch { blocks, threads: [x, y, 1], shared: 0 }
    }

    /// Rows and columns, which image and output have, and the radius.
    fn sizes(&self) -> Result<[i32; 3]> {
        let size = [self.rows, self.columns];
        plane::asked("box filter", &size)?;
        check_radius(self.radius)?;
        expect_len("image", &size, self.image.len())?;
        expect_len("means", &size, self.out.len())?;
        Ok([self.rows as i32, self.columns as i32, self.radius as i32])
    }

    /// [`Job::sizes`], which `sums` have too.
    fn sizes_with(&self, sums: &Array<T::OnGpu>) -> Result<[i32; 3]> {
        expect_len("sums along columns", &[self.rows, self.columns], sums.len())?;
        self.sizes()
    }

    pub(super) fn naive(&mut self, x: u32, y: u32) -> Result<()> {
        let ([rows, columns, radius], inverse) = (self.sizes()?, self.inverse());
        let shape = self.grid(x, y);
        let kernel = self.kernel("naive", 8)?;
        let arguments = &mut [
            self.image.cuda().into(),
            self.out.cuda_mut().into(),
            rows.into(),
            columns.into(),
            radius.into(),
            inverse.into(),
        ];
        // SAFETY: image and output have rows x columns pixels, to which the kernel holds places.
        unsafe { kernel.launch(shape, arguments) }
    }

    pub(super) fn separable(&mut self, x: u32, y: u32, sums: &mut Array<T::OnGpu>) -> Result<()> {
        let ([rows, columns, radius], inverse) = (self.sizes_with(sums)?, self.inverse());
        let launch = self.grid(x, y);
        let kernel = self.kernel("columns_direct", 8)?;
        let arguments = &mut [
            self.image.cuda().into(),
            sums.cuda_mut().into(),
            rows.into(),
            columns.into(),
            radius.into(),
        ];
        // SAFETY: image and sums have rows x columns elements, to which the kernel holds places.
        unsafe { kernel.launch(launch, arguments) }?;
        let kernel = self.kernel("rows_direct", 8)?;
        let arguments = &mut [
            sums.cuda().into(),
            self.out.cuda_mut().into(),
            rows.into(),
            columns.into(),
            radius.into(),
            inverse.into(),
        ];
        // SAFETY: sums and output have rows x columns elements, to which the kernel holds places.
        unsafe { kernel.launch(launch, arguments) }
    }

    fn running_columns(&self, threads: u32, each: usize, sums: &mut Array<T::OnGpu>) -> Result<()> {
        let [rows, columns, radius] = self.sizes_with(sums)?;
        let across = self.columns.div_ceil(threads as usize);
        let blocks = blocks(across, self.rows.div_ceil(each))?;
        let shape = Launch::linear(blocks, threads);
        let kernel = self.kernel("columns_running", 8)?;
        let arguments = &mut [
            self.image.cuda().into(),
            sums.cuda_mut().into(),
            rows.into(),
            columns.into(),
            radius.into(),
            (each as i32).into(),
            (across as i32).into(),
        ];
        // SAFETY: image and sums have rows x columns elements, to which the kernel holds places.
        unsafe { kernel.launch(shape, arguments) }
    }

    pub(super) fn running(&mut self, threads: u32, sums: &mut Array<T::OnGpu>) -> Result<()> {
        self.running_columns(threads, self.rows, sums)?;
        let ([rows, columns, radius], inverse) = (self.sizes_with(sums)?, self.inverse());
        let shape = Launch::covering(self.rows, threads);
        let kernel = self.kernel("rows_running", 8)?;
        let arguments = &mut [
            sums.cuda().into(),
            self.out.cuda_mut().into(),
            rows.into(),
            columns.into(),
            radius.into(),
            inverse.into(),
        ];
        // SAFETY: sums and output have rows x columns elements, to which the kernel holds places.
        unsafe { kernel.launch(shape, arguments) }
    }

    pub(super) fn scanned(&mut self, threads: u32, each: usize, sums: &mut Array<T::OnGpu>) -> Result<()> {
        whole_warps(threads)?;
        self.running_columns(threads, each, sums)?;
        let ([_, columns, radius], inverse) = (self.sizes_with(sums)?, self.inverse());
        let shape = Launch::linear(self.rows as u32, threads);
        let kernel = self.kernel("rows_scanned", 8)?;
        let arguments = &mut [
            sums.cuda().into(),
            self.out.cuda_mut().into(),
            columns.into(),
            radius.into(),
            inverse.into(),
        ];
        // SAFETY: sums and output have a row for each block, and blocks are whole warps.
        unsafe { kernel.launch(shape, arguments) }
    }

    pub(super) fn fused(&mut self, v: u32, threads: u32, each: usize) -> Result<()> {
        let ([rows, columns, radius], inverse) = (self.sizes()?, self.inverse());
        whole_warps(threads)?;
        if !matches!(v, 4 | WIDEST) {
            return Err(Error::value("columns of a thread", format!("4 or {WIDEST}"), v));
        }
        if let Some(reason) = fused_refuses(self.radius, v) {
            return Err(Error::value(
                "radius of the box filter",
                "one whose margins leave room in a strip",
                reason,
            ));
        }
        let (left, right) = margins(self.radius, v);
        let useful = 32 * v as usize - left - right;
        let across = self.columns.div_ceil(useful).div_ceil(threads as usize / 32);
        // Totals of 8 bytes at most.
        let shared = threads as usize * v as usize * 8;
        let launch = Launch::linear(blocks(across, self.rows.div_ceil(each))?, threads).with_shared(shared);
        let kernel = self.kernel("fused", v)?;
        let arguments = &mut [
            self.image.cuda().into(),
            self.out.cuda_mut().into(),
            rows.into(),
            columns.into(),
            radius.into(),
            (each as i32).into(),
            (across as i32).into(),
            (left as i32).into(),
            (right as i32).into(),
            inverse.into(),
        ];
        // SAFETY: image and output have rows x columns pixels, to which the kernel holds places; each warp
        // has V totals a lane in shared memory, and a window reaches no farther than the margins.
        unsafe { kernel.launch(launch, arguments) }
    }
}

fn blocks(across: usize, down: usize) -> Result<u32> {
    let blocks = across.checked_mul(down).filter(|&n| n <= i32::MAX as usize);
    blocks
        .map(|n| n as u32)
        .ok_or_else(|| Error::value("blocks of a grid", "at most 2147483647", format!("{across} x {down}")))
}
