//! Flow by the lattice Boltzmann method: D3Q19, one relaxation time (BGK), walls by halfway bounce-back.

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

/// Steps (x, y, z) of the populations: rest, then nine pairs of opposites, 2k + 1 and 2k + 2.
pub(crate) const DIRECTIONS: [[i32; 3]; 19] = [
    [0, 0, 0],
    [1, 0, 0],
    [-1, 0, 0],
    [0, 1, 0],
    [0, -1, 0],
    [0, 0, 1],
    [0, 0, -1],
    [1, 1, 0],
    [-1, -1, 0],
    [1, 0, 1],
    [-1, 0, -1],
    [0, 1, 1],
    [0, -1, -1],
    [1, -1, 0],
    [-1, 1, 0],
    [1, 0, -1],
    [-1, 0, 1],
    [0, 1, -1],
    [0, -1, 1],
];

const fn opposite(i: usize) -> usize {
    if i == 0 { 0 } else { ((i - 1) ^ 1) + 1 }
}

fn weight(i: usize) -> f64 {
    [1.0 / 3.0, 1.0 / 18.0, 1.0 / 36.0][i.div_ceil(6).min(2)]
}

/// A flow in a box, in lattice units: a cell is 1 long, a step 1 long, density about 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// `cavity` or `channel`.
    pub name: &'static str,
    /// Whether walls end the box along z, y, x. Otherwise it is periodic.
    pub walls: [bool; 3],
    /// Relaxation ω; the viscosity is (1/ω − 1/2) / 3.
    pub omega: f32,
    /// Velocity along x of the wall above the last y.
    pub lid: f32,
    /// Momentum along x that every cell gains in a step.
    pub force: f32,
}

impl Flow {
    /// A closed box whose upper wall moves. Along axes of one cell it is periodic: such a flow has fewer
    /// dimensions.
    pub fn cavity(shape: [usize; 3], omega: f32, lid: f32) -> Self {
        Self { name: "cavity", walls: shape.map(|n| n > 1), omega, lid, force: 0.0 }
    }

    /// Between two walls across y, driven by a force.
    pub fn channel(omega: f32, force: f32) -> Self {
        Self { name: "channel", walls: [false, true, false], omega, lid: 0.0, force }
    }
}

/// A flow, its cells and steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Cells along z, y, x.
    pub shape: [usize; 3],
    /// Steps, at least 1.
    pub steps: usize,
    /// Walls and what drives it.
    pub flow: Flow,
}

impl Problem {
    fn cells(&self) -> usize {
        self.shape.iter().product()
    }

    /// Errors: no cells or no steps, more cells than kernels count.
    fn checked(self) -> Result<Self> {
        let [nz, ny, nx] = self.shape;
        if self.steps == 0 || self.shape.contains(&0) || self.shape.iter().any(|&n| n >= 1 << 30) {
            let expected = "NZxNYxNX cells, each from 1 to 2^30 - 1, and at least one step";
            return Err(Error::value("size of lbm", expected, self));
        }
        voxels(&[nz, ny, nx, 2 * 19])?;
        Ok(self)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [nz, ny, nx] = self.shape;
        write!(f, "{nz} x {ny} x {nx} cells {}, {} steps", self.flow.name, self.steps)
    }
}

/// Density less 1 and velocity (x, y, z), `[4, z, y, x]`, after `steps` steps from an equilibrium with the
/// density and velocity `start`, in lattice units ([`Flow`]).
///
/// ∂f/∂t + c·∇f = ω (f_eq − f) on 19 velocities; at low speeds its moments obey the equations of Navier and
/// Stokes. Populations are f32. Sound needs |u| ≲ 0.1.
///
/// Errors: shapes other than `[4, z, y, x]`, arrays on different devices, no steps, memory for the
/// populations.
pub fn advance(flow: &Flow, steps: usize, start: &Array<f32>, out: &mut Array<f32>) -> Result<()> {
    let &[4, nz, ny, nx] = start.shape() else {
        return Err(Error::shape("density and velocity", &[4, 0, 0, 0], start.shape()));
    };
    expect_shape("density and velocity", start.shape(), out.shape())?;
    let device = start.device().clone();
    if !device.same_as(out.device()) {
        return Err(Error::value("flow", "arrays on one device", out.device().describe()));
    }
    let problem = Problem { shape: [nz, ny, nx], steps, flow: *flow }.checked()?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            let mut f = room(&problem, &device, 2)?;
            cpu::vectors(cpu.level(), Some(cpu), &problem, start.cpu(), f.cpu_mut(), out.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let config = tuned(&Lbm, &problem, &variants::gpu_in_place(), &device);
            let mut f = room(&problem, &device, 1)?;
            let arrays = cuda::Arrays { start, f: &mut f, out };
            cuda::run(cuda, cuda::Form::in_place(false), &config, &problem, arrays)
        }
    }
}

/// Room for populations, twice where a step reads one array and writes the other. Errors: memory.
fn room(problem: &Problem, device: &Device, arrays: usize) -> Result<Array<f32>> {
    Array::zeros(device, &[arrays, 19, problem.cells()])
}

/// Start, result and populations of one problem.
pub struct Data {
    problem: Problem,
    start: Array<f32>,
    /// The same for the oracle.
    host: Vec<f32>,
    f: Array<f32>,
    out: Array<f32>,
    /// Populations of every second step, once a kernel of a user's own was called.
    other: Option<Array<f32>>,
    seed: u64,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Lbm;

/// Calls a kernel of a user's own for every step.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, start, f, out, other, .. } = data;
    let device = start.device().clone();
    let other = match other {
        Some(other) => other,
        None => other.insert(room(problem, &device, 1)?),
    };
    let [nz, ny, nx] = problem.shape.map(|n| Argument::from(n as i32));
    let Flow { walls, omega, lid, force, .. } = problem.flow;
    let [z, y, x] = walls.map(i32::from);
    let walls = x | y << 1 | z << 2;
    for step in 0..problem.steps {
        let [before, after] = match step.is_multiple_of(2) {
            true => [other.cuda().into(), f.cuda_mut().into()],
            false => [f.cuda().into(), other.cuda_mut().into()],
        };
        let numbers = [step, problem.steps].map(|n| Argument::from(n as i32));
        let flow = [walls.into(), omega.into(), lid.into(), force.into()];
        let arrays = [start.cuda().into(), before, after, out.cuda_mut().into()];
        call(&device, &mut [&arrays[..], &[nx, ny, nz], &numbers, &flow].concat())?;
    }
    Ok(())
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// One step of a flow by the lattice Boltzmann method. Rayspin calls the kernel for step = 0 to steps - 1. A
// cell (z, y, x) has the number (z * ny + y) * nx + x; there are `cells` = nx * ny * nz. Number f of a cell
// lies at f * cells + cell of an array: 4 numbers in start and out, the density less 1 and the velocity
// along x, y and z, and 19 populations g in before and after.
// Directions (x, y, z) and weights of the populations: 0 is (0, 0, 0), weight 1/3. 1 to 6 are (1, 0, 0),
// (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1), weight 1/18. 7 to 18 are (1, 1, 0), (-1, -1, 0),
// (1, 0, 1), (-1, 0, -1), (0, 1, 1), (0, -1, -1), (1, -1, 0), (-1, 1, 0), (1, 0, -1), (-1, 0, 1), (0, 1, -1),
// (0, -1, 1), weight 1/36. So 2 i - 1 and 2 i are opposite.
// In equilibrium g_i = w_i (D + (1 + D) (3 c.u + 4.5 (c.u)^2 - 1.5 u.u)) for density less 1 D, velocity u and
// direction c. Of populations, D is the sum of g_i, and u the sum of c g_i over 1 + D.
// Populations before step 0 are the equilibrium of `start`; afterwards `before` holds what the step before
// wrote to `after`. A step: from every cell leaves h_i = g_i + omega (equilibrium_i - g_i) + 3 w_i c_x
// force, with D and u of the cell's g. It arrives as g_i of the cell one step along c. An axis without a
// wall is a ring. Where c leads through a wall (bits 0, 1 and 2 of `walls`: 1 where both ends of the axis x,
// y, z are walls), h_i arrives as the opposite population of the cell that it leaves. There it is 6 w_i c_x
// lid less where c leads through the wall beyond y = ny - 1.
// After the last step `out` is D and u of the populations in `after`, where u_x gets 0.5 force / (1 + D)
// more.
extern \"C\" __global__ void lbm(const float* start, const float* before, float* after, float* out, int nx, int ny, int nz, int step, int steps, int walls, float omega, float lid, float force)";

impl Algorithm for Lbm {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "lbm",
            title: "Flow by the lattice Boltzmann method (D3Q19)",
            readme: include_str!("README.md"),
            unit: Unit::Items("updates"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let cavity = |shape| Problem { shape, steps: 20, flow: Flow::cavity(shape, 1.95, 0.05) };
        let channel = Flow::channel(1.95, 1e-6);
        vec![
            Case {
                name: "cavity",
                summary: "the lid-driven cavity of the Parboil suite, omega 1.95",
                problem: cavity([150, 120, 120]),
            },
            Case { name: "256", summary: "a cavity of 256 x 256 x 256", problem: cavity([256; 3]) },
            Case {
                name: "channel",
                summary: "periodic along x and z, driven by a force",
                problem: Problem { shape: [128, 128, 256], steps: 20, flow: channel },
            },
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        let cavity = |shape, steps| Problem { shape, steps, flow: Flow::cavity(shape, 1.95, 0.05) };
        let channel = |shape, steps| Problem { shape, steps, flow: Flow::channel(1.7, 1e-4) };
        vec![
            cavity([1, 1, 1], 1),
            cavity([1, 5, 7], 2),
            channel([3, 4, 2], 5),
            cavity([2, 3, 67], 4),
            channel([2, 5, 33], 3),
            channel([3, 2, 36], 4),
            cavity([5, 7, 36], 5),
        ]
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let (shape, steps) = match *size {
            [nz, ny, nx] => ([nz, ny, nx], problem.steps),
            [nz, ny, nx, steps] => ([nz, ny, nx], steps),
            _ => {
                let expected = "NZxNYxNX or NZxNYxNXxSTEPS, each at least 1";
                return Err(Error::value("size of lbm", expected, format!("{size:?}")));
            }
        };
        let Flow { name, omega, lid, .. } = problem.flow;
        let flow = if name == "cavity" { Flow::cavity(shape, omega, lid) } else { problem.flow };
        Problem { shape, steps, flow }.checked()
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { items: problem.cells() as f64 * problem.steps as f64, ..Counts::default() }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("cavity", "cavity"), ("256", "cavity")];
        Some(PublishedApplication::of_lecture("LBM", "shared memory capacity", 3200, [12.5, 12.3], cases))
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "lbm",
            declaration: OWN,
            extent: |p| [p.shape[2], p.shape[1], p.shape[0]],
            defines: |_| Vec::new(),
            call: called_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let cells = problem.cells();
        let size = |index: usize| if index < cells { 0.01 } else { 0.03 };
        let host = input::filled(device.cpu_side(), "density and velocity", 4 * cells, |index| {
            size(index) * input::signed_unit(seed, index)
        })?;
        let [nz, ny, nx] = problem.shape;
        Ok(Data {
            problem: *problem,
            start: Array::from_slice(device, &[4, nz, ny, nx], &host)?,
            host,
            f: room(problem, device, 2)?,
            out: Array::zeros(device, &[4, nz, ny, nx])?,
            other: None,
            seed,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.f.fill(f32::NAN)?;
        data.out.fill(f32::NAN)
    }

    /// The largest |error| of a density or velocity over 0.05, the size of velocities.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let (out, cells) = (data.out.read()?, problem.cells());
        let apart = |cell: usize, want: &[f64; 4]| {
            let one = |f: usize| (f64::from(out[f * cells + cell]) - want[f]).abs() / 0.05;
            (0..4).map(one).fold(0.0, |a: f64, b| if b.is_nan() { f64::INFINITY } else { a.max(b) })
        };
        let (shape, steps) = (problem.shape, problem.steps);
        let window = |low, size| reference::window(problem, &data.host, low, size);
        let cpu = data.out.device().cpu_side();
        Ok(Cells { shape, closed: problem.flow.walls, steps }.error(cpu, data.seed, window, apart))
    }
}
