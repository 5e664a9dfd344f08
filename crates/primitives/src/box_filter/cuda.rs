use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Define, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::Pixel;

pub(super) static SOURCE: Source =
    Source { name: "box_filter", files: &[("box.cu", include_str!("cuda/box.cu"))] };

/// Columns of a thread, of kernels of one form and at most.
pub(super) const WIDEST: u32 = 8;

/// The largest radius of which 32 bits hold what rounding needs.
const SMALL: usize = 40;

pub(crate) fn programs() -> Vec<Build> {
    [(0, 4), (0, 8), (1, 8)]
        .map(|(large, v)| Build { source: &SOURCE, defines: defines(large, v), spill_bytes: 0 })
        .into()
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

    fn sizes(&self) -> [i32; 3] {
        [self.rows as i32, self.columns as i32, self.radius as i32]
    }

    pub(super) fn naive(&mut self, x: u32, y: u32) -> Result<()> {
        let ([rows, columns, radius], inverse) = (self.sizes(), self.inverse());
        self.kernel("naive", 8)?.launch(
            self.grid(x, y),
            &mut [
                self.image.cuda().into(),
                self.out.cuda_mut().into(),
                rows.into(),
                columns.into(),
                radius.into(),
                inverse.into(),
            ],
        )
    }

    pub(super) fn separable(&mut self, x: u32, y: u32, sums: &mut Array<T::OnGpu>) -> Result<()> {
        let ([rows, columns, radius], inverse) = (self.sizes(), self.inverse());
        let launch = self.grid(x, y);
        self.kernel("columns_direct", 8)?.launch(
            launch,
            &mut [
                self.image.cuda().into(),
                sums.cuda_mut().into(),
                rows.into(),
                columns.into(),
                radius.into(),
            ],
        )?;
        self.kernel("rows_direct", 8)?.launch(
            launch,
            &mut [
                sums.cuda().into(),
                self.out.cuda_mut().into(),
                rows.into(),
                columns.into(),
                radius.into(),
                inverse.into(),
            ],
        )
    }

    fn running_columns(&self, threads: u32, each: usize, sums: &mut Array<T::OnGpu>) -> Result<()> {
        let [rows, columns, radius] = self.sizes();
        let across = self.columns.div_ceil(threads as usize);
        let blocks = blocks(across, self.rows.div_ceil(each))?;
        self.kernel("columns_running", 8)?.launch(
            Launch::linear(blocks, threads),
            &mut [
                self.image.cuda().into(),
                sums.cuda_mut().into(),
                rows.into(),
                columns.into(),
                radius.into(),
                (each as i32).into(),
                (across as i32).into(),
            ],
        )
    }

    pub(super) fn running(&mut self, threads: u32, sums: &mut Array<T::OnGpu>) -> Result<()> {
        self.running_columns(threads, self.rows, sums)?;
        let ([rows, columns, radius], inverse) = (self.sizes(), self.inverse());
        self.kernel("rows_running", 8)?.launch(
            Launch::covering(self.rows, threads),
            &mut [
                sums.cuda().into(),
                self.out.cuda_mut().into(),
                rows.into(),
                columns.into(),
                radius.into(),
                inverse.into(),
            ],
        )
    }

    pub(super) fn scanned(&mut self, threads: u32, each: usize, sums: &mut Array<T::OnGpu>) -> Result<()> {
        self.running_columns(threads, each, sums)?;
        let ([_, columns, radius], inverse) = (self.sizes(), self.inverse());
        self.kernel("rows_scanned", 8)?.launch(
            Launch::linear(self.rows as u32, threads),
            &mut [
                sums.cuda().into(),
                self.out.cuda_mut().into(),
                columns.into(),
                radius.into(),
                inverse.into(),
            ],
        )
    }

    pub(super) fn fused(&mut self, v: u32, threads: u32, each: usize) -> Result<()> {
        let ([rows, columns, radius], inverse) = (self.sizes(), self.inverse());
        let (left, right) = margins(self.radius, v);
        let useful = 32 * v as usize - left - right;
        let across = self.columns.div_ceil(useful).div_ceil(threads as usize / 32);
        // Totals of 8 bytes at most.
        let shared = threads as usize * v as usize * 8;
        let launch = Launch::linear(blocks(across, self.rows.div_ceil(each))?, threads).with_shared(shared);
        self.kernel("fused", v)?.launch(
            launch,
            &mut [
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
            ],
        )
    }
}

fn blocks(across: usize, down: usize) -> Result<u32> {
    let blocks = across.checked_mul(down).filter(|&n| n <= i32::MAX as usize);
    blocks
        .map(|n| n as u32)
        .ok_or_else(|| Error::value("blocks of a grid", "at most 2147483647", format!("{across} x {down}")))
}
