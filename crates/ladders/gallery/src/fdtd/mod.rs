//! Maxwell's equations in time (FDTD): Yee's grid in a box of perfect conductor, in two dimensions (TM) and
//! three.

mod cpu;
mod cuda;
pub mod reference;
#[cfg(test)]
mod tests;
mod variants;

use std::fmt;

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{
    About, Algorithm, Call, Case, Counts, PublishedApplication, Row, Signature, Unit, input, tuned,
};

use crate::cone::Cells;

/// c Δt / Δx: stable up to 1/√3 in three dimensions.
pub const COURANT: f32 = 0.5;

/// Cells and steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Cells along z, y, x; one along z is a problem in two dimensions.
    pub shape: [usize; 3],
    /// Steps, at least 1.
    pub steps: usize,
}

impl Problem {
    fn cells(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether nothing varies along z: then Ez, Hx and Hy are all.
    fn flat(&self) -> bool {
        self.shape[0] == 1
    }

    fn fields(&self) -> usize {
        if self.flat() { 3 } else { 6 }
    }

    /// Which of the arrays holds a component (Ex, Ey, Ez, Hx, Hy, Hz), if any.
    fn field(&self, component: usize) -> Option<usize> {
        match (self.flat(), component) {
            (false, component) => Some(component),
            (true, 2..5) => Some(component - 2),
            _ => None,
        }
    }

    /// Errors: no cells, no steps, more cells than kernels count.
    fn checked(self) -> Result<Self> {
        let [nz, ny, nx] = self.shape;
        if self.steps == 0 || self.shape.contains(&0) || self.shape.iter().any(|&n| n >= 1 << 30) {
            let expected = "cells from 1 to 2^30 - 1 along each axis, and at least one step";
            return Err(Error::value("size of fdtd", expected, self));
        }
        voxels(&[nz, ny, nx, 2 * self.fields(), size_of::<f32>()])?;
        Ok(self)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [nz, ny, nx] = self.shape;
        write!(f, "{nz} x {ny} x {nx} cells, {} steps", self.steps)
    }
}

/// The fields after `steps` steps from `start`: `[6, z, y, x]` (Ex, Ey, Ez, Hx, Hy, Hz) or in two dimensions
/// `[3, y, x]` (Ez, Hx, Hy).
///
/// ∂H/∂t = −∇ × E, ∂E/∂t = ∇ × H, where H is times the impedance of free space and a step is c Δt =
/// [`COURANT`] Δx. Cell (z, y, x) holds the components at its Yee places: Ex at (x + ½, y, z), Hx at (x, y +
/// ½, z + ½), and so on. H is half a step behind E. The box is a perfect conductor: components of E in its
/// faces are 0, and must be in `start` where x, y or z is 0; at the far faces none are stored.
///
/// Errors: other shapes, arrays on different devices, no steps, memory.
pub fn advance(steps: usize, start: &Array<f32>, out: &mut Array<f32>) -> Result<()> {
    let shape = match *start.shape() {
        [3, ny, nx] => [1, ny, nx],
        [6, nz, ny, nx] if nz > 1 => [nz, ny, nx],
        _ => return Err(Error::shape("fields", &[6, 0, 0, 0], start.shape())),
    };
    expect_shape("fields", start.shape(), out.shape())?;
    let device = start.device().clone();
    if !device.same_as(out.device()) {
        return Err(Error::value("fields", "arrays on one device", out.device().describe()));
    }
    let problem = Problem { shape, steps }.checked()?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            cpu::rows(cpu.level(), Some(cpu), &problem, start.cpu(), out.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let config = tuned(&Fdtd, &problem, &variants::gpu_blocked(), &device);
            let mut room = Array::zeros(&device, start.shape())?;
            let fields = cuda::Fields { start, room: &mut room, out };
            cuda::blocked(cuda, &config, &problem, fields)
        }
    }
}

/// Start, result and room for one problem.
pub struct Data {
    problem: Problem,
    start: Array<f32>,
    /// The same for the oracle.
    host: Vec<f32>,
    room: Array<f32>,
    out: Array<f32>,
    seed: u64,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Fdtd;

/// Calls a kernel of a user's own for every step.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, start, room, out, .. } = data;
    let device = start.device().clone();
    let [nz, ny, nx] = problem.shape.map(|n| Argument::from(n as i32));
    for step in 0..problem.steps {
        // The last step writes the result.
        let [before, after] = match (problem.steps - step).is_multiple_of(2) {
            true => [out.cuda().into(), room.cuda_mut().into()],
            false => [room.cuda().into(), out.cuda_mut().into()],
        };
        let before = if step == 0 { start.cuda().into() } else { before };
        call(&device, &mut [before, after, nx, ny, nz])?;
    }
    Ok(())
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// One step of Maxwell's equations on Yee's grid: `after` from `before`. Rayspin calls the kernel for each
// step. Arrays have the components Ex, Ey, Ez, Hx, Hy, Hz: number c of them in cell (z, y, x) lies at ((c *
// nz + z) * ny + y) * nx + x. Where nz is 1 the components are Ez, Hx and Hy alone; the others are 0. First
// H of every cell, with E of the cells ahead, 0 beyond the last cell of an axis:
//   Hx -= 0.5 * ((Ez(y + 1) - Ez) - (Ey(z + 1) - Ey)), Hy -= 0.5 * ((Ex(z + 1) - Ex) - (Ez(x + 1) - Ez)),
//   Hz -= 0.5 * ((Ey(x + 1) - Ey) - (Ex(y + 1) - Ex)).
// Then E, with the new H, also of the cells behind:
//   Ex += 0.5 * ((Hz - Hz(y - 1)) - (Hy - Hy(z - 1))) where y > 0 and z > 0,
//   Ey += 0.5 * ((Hx - Hx(z - 1)) - (Hz - Hz(x - 1))) where x > 0 and z > 0,
//   Ez += 0.5 * ((Hy - Hy(x - 1)) - (Hx - Hx(y - 1))) where x > 0 and y > 0. Elsewhere they stay.
extern \"C\" __global__ void fdtd(const float* before, float* after, int nx, int ny, int nz)";

impl Algorithm for Fdtd {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "fdtd",
            title: "Maxwell's equations in time on Yee's grid",
            readme: include_str!("README.md"),
            unit: Unit::Items("updates"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, shape, steps| Case { name, summary, problem: Problem { shape, steps } };
        vec![
            case("256", "256 x 256 x 256 cells, all six components", [256; 3], 20),
            case("tm-2048", "2048 x 2048 cells in two dimensions: Ez, Hx, Hy", [1, 2048, 2048], 40),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [([1, 1, 1], 1), ([1, 5, 7], 2), ([3, 1, 4], 3), ([3, 4, 5], 5), ([1, 40, 70], 7), ([7, 35, 29], 6)]
            .map(|(shape, steps)| Problem { shape, steps })
            .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let (shape, steps) = match *size {
            [ny, nx] if problem.flat() => ([1, ny, nx], problem.steps),
            [nz, ny, nx] => ([nz, ny, nx], problem.steps),
            [nz, ny, nx, steps] => ([nz, ny, nx], steps),
            _ => {
                let expected = "NZxNYxNX or NZxNYxNXxSTEPS, each at least 1";
                return Err(Error::value("size of fdtd", expected, format!("{size:?}")));
            }
        };
        Problem { shape, steps }.checked()
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { items: problem.cells() as f64 * problem.steps as f64, ..Counts::default() }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("tm-2048", "tm-2048"), ("256", "256")];
        Some(PublishedApplication::of_lecture("FDTD", "global memory bandwidth", 1365, [10.5, 1.2], cases))
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "fdtd",
            declaration: OWN,
            extent: |p| [p.shape[2], p.shape[1], p.shape[0]],
            defines: |_| Vec::new(),
            call: called_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let cells = problem.cells();
        let [_, ny, nx] = problem.shape;
        let tangential = |index: usize| {
            let (field, cell) = (index / cells, index % cells);
            let [z, y, x] = [cell / nx / ny, cell / nx % ny, cell % nx].map(|coordinate| coordinate == 0);
            match (problem.flat(), field) {
                (false, 0) => z || y,
                (false, 1) => z || x,
                (false, 2) | (true, 0) => y || x,
                _ => false,
            }
        };
        let host = input::filled(device.cpu_side(), "fields", problem.fields() * cells, |index| {
            if tangential(index) { 0.0 } else { input::signed_unit(seed, index) }
        })?;
        let shape = [&[problem.fields()][..], &problem.shape].concat();
        Ok(Data {
            problem: *problem,
            start: Array::from_slice(device, &shape, &host)?,
            host,
            room: Array::zeros(device, &shape)?,
            out: Array::zeros(device, &shape)?,
            seed,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.room.fill(f32::NAN)?;
        data.out.fill(f32::NAN)
    }

    /// The largest |error| of a component; at the start they are at most 1.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let (out, cells) = (data.out.read()?, problem.cells());
        let apart = |cell: usize, want: &[f64; 6]| {
            let one = |c: usize| {
                problem.field(c).map_or(0.0, |f| (f64::from(out[f * cells + cell]) - want[c]).abs())
            };
            (0..6).map(one).fold(0.0, |a: f64, b| if b.is_nan() { f64::INFINITY } else { a.max(b) })
        };
        let (shape, steps) = (problem.shape, problem.steps);
        let window = |low, size| reference::window(problem, &data.host, low, size);
        let cpu = data.out.device().cpu_side();
        Ok(Cells { shape, closed: [true; 3], steps }.error(cpu, data.seed, window, apart))
    }
}
