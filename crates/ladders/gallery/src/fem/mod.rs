//! Poisson's equation −∇·(κ ∇u) = f by finite elements: trilinear cubes, conjugate gradients.

mod cpu;
mod cuda;
pub mod reference;
mod sparse;
#[cfg(test)]
mod tests;
mod variants;

use std::fmt;
use std::sync::OnceLock;

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{
    About, Algorithm, Call, Case, Counts, PublishedApplication, Row, Signature, Unit, input, tuned,
};

/// Elements and steps of conjugate gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Elements along z, y, x.
    pub shape: [usize; 3],
    /// Steps.
    pub iterations: usize,
}

impl Problem {
    /// Nodes along z, y, x.
    fn grid(&self) -> [usize; 3] {
        self.shape.map(|n| n + 1)
    }

    fn nodes(&self) -> usize {
        self.grid().iter().product()
    }

    fn index(&self, [z, y, x]: [usize; 3]) -> usize {
        let [_, my, mx] = self.grid();
        (z * my + y) * mx + x
    }

    fn place(&self, node: usize) -> [usize; 3] {
        let [_, my, mx] = self.grid();
        [node / mx / my, node / mx % my, node % mx]
    }

    /// Whether a node has an unknown: u is 0 on the boundary.
    fn inner(&self, node: [usize; 3]) -> bool {
        node.iter().zip(self.shape).all(|(&coordinate, n)| coordinate > 0 && coordinate < n)
    }

    /// Errors: no elements, no steps, more nodes than kernels count.
    fn checked(self) -> Result<Self> {
        let too_many =
            self.shape.iter().any(|&n| n >= 1 << 20) || self.shape.iter().product::<usize>() > 1 << 30;
        if self.iterations == 0 || self.shape.contains(&0) || too_many {
            let expected = "NZxNYxNX elements, at most 2^30 of them, and at least one step";
            return Err(Error::value("size of fem", expected, self));
        }
        voxels(&self.grid())?;
        Ok(self)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [nz, ny, nx] = self.shape;
        write!(f, "{nz} x {ny} x {nx} elements, {} steps", self.iterations)
    }
}

/// u\[z, y, x\] on the nodes after `iterations` steps of conjugate gradients from 0, for −∇·(κ ∇u) = f with u
/// = 0 on the boundary.
///
/// κ `[nz, ny, nx]` is positive, one number an element; elements are cubes of side h. `b` `[nz + 1, ny + 1,
/// nx + 1]` is h² f at the nodes, which stands for ∫ f φ / h; on the boundary it is not read. Errors of u are
/// O(h²) once the steps have converged.
///
/// Errors: other shapes, arrays on different devices, no steps, memory.
pub fn solve(kappa: &Array<f32>, b: &Array<f32>, iterations: usize, u: &mut Array<f32>) -> Result<()> {
    let &[nz, ny, nx] = kappa.shape() else {
        return Err(Error::shape("coefficients of elements", &[0, 0, 0], kappa.shape()));
    };
    let problem = Problem { shape: [nz, ny, nx], iterations }.checked()?;
    expect_shape("right-hand side on nodes", &problem.grid(), b.shape())?;
    expect_shape("solution on nodes", &problem.grid(), u.shape())?;
    let device = kappa.device().clone();
    for other in [b.device(), u.device()] {
        if !device.same_as(other) {
            return Err(Error::value("finite elements", "arrays on one device", other.describe()));
        }
    }
    let mut room = Room::new(&problem, &device)?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            let vectors = room.vectors(b, u);
            cpu::fused(cpu.level(), Some(cpu), &problem, kappa.cpu(), vectors);
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let config = tuned(&Fem, &problem, &variants::gpu_fused(), &device);
            let equations = cuda::Equations { problem: &problem, kappa, b, matrix: None };
            cuda::fused(cuda, &config, equations, &mut room, u)
        }
    }
}

/// Vectors of a solver.
struct Room {
    r: Array<f32>,
    d: Array<f32>,
    /// Directions of every second step, where a step reads the last direction while it writes the next.
    other: Array<f32>,
    q: Array<f32>,
    /// Sums of blocks: r·r of two steps, and d·q.
    squares: [Array<f64>; 2],
    curvature: Array<f64>,
}

/// The most blocks whose sums there is room for.
const MOST_SUMS: usize = 1 << 15;

impl Room {
    fn new(p: &Problem, device: &Device) -> Result<Self> {
        let vector = || Array::zeros(device, &p.grid());
        let sums = || Array::zeros(device, &[MOST_SUMS]);
        Ok(Self {
            r: vector()?,
            d: vector()?,
            other: vector()?,
            q: vector()?,
            squares: [sums()?, sums()?],
            curvature: sums()?,
        })
    }

    fn vectors<'a>(&'a mut self, b: &'a Array<f32>, u: &'a mut Array<f32>) -> cpu::Vectors<'a> {
        let Self { r, d, q, .. } = self;
        cpu::Vectors { b: b.cpu(), u: u.cpu_mut(), r: r.cpu_mut(), d: d.cpu_mut(), q: q.cpu_mut() }
    }
}

/// One problem.
pub struct Data {
    problem: Problem,
    kappa: Array<f32>,
    b: Array<f32>,
    u: Array<f32>,
    room: Room,
    /// Where the problem is small enough for it.
    matrix: Option<sparse::Matrix>,
    /// The inputs for the oracle, and what it found.
    host: [Vec<f32>; 2],
    wanted: OnceLock<Vec<f64>>,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Fem;

/// Calls a kernel of a user's own for every step.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, kappa, b, u, room, .. } = data;
    let device = kappa.device().clone();
    let Room { r, d, q, curvature, .. } = room;
    let [nz, ny, nx] = problem.shape.map(|n| Argument::from(n as i32));
    for step in 0..problem.iterations {
        let arrays = [kappa.cuda().into(), b.cuda().into(), u.cuda_mut().into(), r.cuda_mut().into()];
        let rest = [d.cuda_mut().into(), q.cuda_mut().into(), curvature.cuda_mut().into()];
        call(&device, &mut [&arrays[..], &rest, &[nx, ny, nz, (step as i32).into()]].concat())?;
    }
    Ok(())
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// One step of conjugate gradients for A u = b. Rayspin calls the kernel for step = 0, 1, ...; after every
// step u is the solution of that many steps from 0. r, d and q have as many numbers as u, and sums has
// 32768. They are for the kernel, and keep what it writes.
// nx, ny and nz are numbers of elements. Nodes are one more along each axis: node (z, y, x) lies at
// (z * (ny + 1) + y) * (nx + 1) + x of b and u, element (z, y, x) at (z * ny + y) * nx + x of kappa. Its
// corners are the nodes from (z, y, x) to (z + 1, y + 1, x + 1). Only nodes inside count: b, u and all else
// is 0 at the nodes of the boundary, whatever b holds there.
// (A x)(i) = the sum over the eight elements at node i of kappa times the sum over their corners j of
// s * x(j). s is 4/12, 0, -1/12 or -1/12 where i and j differ along 0, 1, 2 or 3 axes.
// Before step 0, u = 0 and r = d = b. A step: q = A d, alpha = r.r / d.q, u += alpha d, r -= alpha q,
// beta = r.r with the new r / r.r with the old, d = r + beta d. Quotients by 0 are 0. Sums of products are
// over all nodes: add up in double. Blocks need each other's results: a list of launches has several
// kernels.
extern \"C\" __global__ void fem(const float* kappa, const float* b, float* u, float* r, float* d, float* q, double* sums, int nx, int ny, int nz, int step)";

impl Algorithm for Fem {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "fem",
            title: "Poisson's equation by finite elements and conjugate gradients",
            readme: include_str!("README.md"),
            unit: Unit::Items("node steps"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, shape| Case { name, summary, problem: Problem { shape, iterations: 20 } };
        vec![
            case("128", "128 x 128 x 128 elements", [128; 3]),
            case("256", "256 x 256 x 256 elements, more than caches hold", [256; 3]),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [([1, 1, 1], 1), ([2, 2, 2], 2), ([2, 5, 3], 4), ([7, 3, 35], 5), ([5, 18, 40], 6)]
            .map(|(shape, iterations)| Problem { shape, iterations })
            .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let (shape, iterations) = match *size {
            [n] => ([n; 3], problem.iterations),
            [nz, ny, nx] => ([nz, ny, nx], problem.iterations),
            [nz, ny, nx, iterations] => ([nz, ny, nx], iterations),
            _ => {
                let expected = "N, NZxNYxNX or NZxNYxNXxSTEPS, each at least 1";
                return Err(Error::value("size of fem", expected, format!("{size:?}")));
            }
        };
        Problem { shape, iterations }.checked()
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { items: problem.nodes() as f64 * problem.iterations as f64, ..Counts::default() }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("128", "128")];
        Some(PublishedApplication::of_lecture("FEM", "global memory bandwidth", 4096, [11.0, 10.1], cases))
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "fem",
            declaration: OWN,
            extent: |p| [p.shape[2] + 1, p.shape[1] + 1, p.shape[0] + 1],
            defines: |_| Vec::new(),
            call: called_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let (cpu, [nz, ny, nx]) = (device.cpu_side(), problem.shape);
        let kappa = input::filled(cpu, "coefficients", nz * ny * nx, |index| {
            1.0 + 0.5 * input::signed_unit(seed, index)
        })?;
        let b = input::uniform(cpu, seed ^ 0xfe, problem.nodes())?;
        let matrix = match sparse::refuses(problem) {
            None => Some(sparse::Matrix::new(problem, &kappa, device)?),
            Some(_) => None,
        };
        Ok(Data {
            problem: *problem,
            kappa: Array::from_slice(device, &problem.shape, &kappa)?,
            b: Array::from_slice(device, &problem.grid(), &b)?,
            u: Array::zeros(device, &problem.grid())?,
            room: Room::new(problem, device)?,
            matrix,
            host: [kappa, b],
            wanted: OnceLock::new(),
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        let Room { r, d, other, q, squares, curvature } = &mut data.room;
        for vector in [&mut data.u, r, d, other, q] {
            vector.fill(f32::NAN)?;
        }
        let [one, two] = squares;
        [one, two, curvature].into_iter().try_for_each(|sums| sums.fill(f64::NAN))
    }

    /// ‖u − u of the oracle‖ / ‖u of the oracle‖.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let u = data.u.read()?;
        let cpu = data.u.device().cpu_side();
        let [kappa, b] = &data.host;
        let wanted = data.wanted.get_or_init(|| cpu.run(|| reference::solve(problem, kappa, b)));
        let (mut apart, mut size) = (0.0, 0.0);
        for (&value, want) in u.iter().zip(wanted) {
            apart += (f64::from(value) - want).powi(2);
            size += want.powi(2);
        }
        let error = (apart / size.max(f64::MIN_POSITIVE)).sqrt();
        Ok(if error.is_nan() { f64::INFINITY } else { error })
    }
}
