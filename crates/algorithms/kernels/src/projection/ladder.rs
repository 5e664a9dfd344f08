//! The projectors as ladders, in f32.

use std::fmt;

use rayspin_core::{Detector, Error, Orbit, ProjectionGeometry, Result, View, VolumeGrid, voxels};
use rayspin_device::cpu::expect_memory;
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::input::{bits, filled, signed_unit};
use rayspin_tune::{About, Algorithm, Call, Case, Counts, HostTransfer, Row, Runnable, Signature, Unit};

use super::cuda::Plan;
use super::{Implementation, Operation, Problem, Scan, Weighting, reference, variants};

/// Samples of the whole oracle; of larger problems at random outputs.
const WHOLE: f64 = 3e6;
/// Outputs of a large problem that are compared.
const COMPARED: u64 = 64;

/// Line integrals, their transpose, or voxel-driven back-projection.
#[derive(Debug, Clone, Copy)]
pub struct Projection {
    operation: Operation,
}

impl Projection {
    /// Every ladder.
    pub fn all() -> [Self; 3] {
        [Operation::Forward, Operation::Adjoint, Operation::Backproject].map(|operation| Self { operation })
    }

    fn problem(&self, beam: Beam, size: [usize; 3]) -> Result<Problem> {
        Ok(Problem { operation: self.operation, ..scan(beam, size)? })
    }
}

/// Kinds of scans of the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beam {
    Cone,
    Parallel,
}

/// `views` of p × p pixels of a cube of n voxels along each axis, or of p pixels of a slice of n × n voxels.
fn scan(beam: Beam, [n, views, p]: [usize; 3]) -> Result<Problem> {
    let (rows, slices) = if beam == Beam::Cone { (p, n) } else { (1, 1) };
    voxels(&[n, n, slices])?;
    voxels(&[views, p, rows])?;
    expect_memory("views", (views as u64).saturating_mul(2 * size_of::<View>() as u64))?;
    let size = n as f64;
    // Magnification 2, and a detector twice as wide as the volume.
    let pitch = size / p as f64;
    let (orbit, pitch) = match beam {
        Beam::Cone => {
            let distance = Some(3.0 * size);
            (
                Orbit { source_to_axis_mm: distance, axis_to_detector_mm: 3.0 * size, ..Orbit::default() }
                    .turn(views),
                2.0 * pitch,
            )
        }
        Beam::Parallel => (Orbit::default().arc(0.1, std::f64::consts::PI, views), pitch),
    };
    let detector = Detector { rows, columns: p, pitch_mm: [pitch; 2], radius_mm: None };
    Ok(Problem {
        operation: Operation::Forward,
        geometry: ProjectionGeometry::orbit(detector, &orbit)?,
        grid: VolumeGrid::new([slices, n, n], [1.0; 3], [0.0; 3])?,
    })
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [nz, ny, nx] = self.grid.shape_zyx();
        let [views, rows, columns] = self.geometry.shape();
        let beam = if self.geometry.is_parallel() { "parallel beam" } else { "cone beam" };
        write!(f, "{nz} x {ny} x {nx} voxels, {views} views of {rows} x {columns} pixels, {beam}")
    }
}

/// Arrays of one problem.
pub struct Data {
    problem: Problem,
    plan: Option<Plan>,
    volume: Array<f32>,
    projections: Array<f32>,
}

impl Data {
    fn arrays(&mut self) -> (&mut Array<f32>, &mut Array<f32>) {
        match self.problem.operation {
            Operation::Forward => (&mut self.volume, &mut self.projections),
            Operation::Adjoint | Operation::Backproject => (&mut self.projections, &mut self.volume),
        }
    }
}

/// A kernel of a user's own.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, plan, volume, projections } = data;
    let device = volume.device().clone();
    let Some(plan) = plan else {
        return Err(Error::value("projection by a kernel", "a GPU", device.describe()));
    };
    if problem.operation == Operation::Adjoint {
        // Rays of many pixels add to one voxel.
        volume.fill(0.0)?;
    }
    let mut arguments: Vec<Argument<'_>> = match problem.operation {
        Operation::Forward => {
            let (poses, numbers) = plan.of_rays();
            let arrays = [volume.cuda().into(), poses, projections.cuda_mut().into()];
            arrays.into_iter().chain(numbers).collect()
        }
        Operation::Adjoint => {
            let (poses, numbers) = plan.of_rays();
            let arrays = [projections.cuda().into(), poses, volume.cuda_mut().into()];
            arrays.into_iter().chain(numbers).collect()
        }
        Operation::Backproject => {
            let [matrices, sizes @ ..] = plan.of_matrices()?;
            let arrays = [projections.cuda().into(), matrices, volume.cuda_mut().into()];
            arrays.into_iter().chain(sizes).collect()
        }
    };
    call(&device, &mut arguments)
}

/// Joseph's method, for declarations of a user's own kernels.
macro_rules! joseph {
    ($result:literal, $parameters:literal) => {
        concat!(
            $result,
            "\
// The ray of pixel (view, row, column). The view's pose is p = poses + 15 * view, in mm. The pixel's place is
// e = p[3..6] + (column - (columns - 1) / 2) pitch p[6..9] + (row - (rows - 1) / 2) pitch p[9..12].
// Where parallel is 0 the ray goes from the source p[0..3] to e. Else it is the whole line through e along
// p[0..3]. Voxels are cubes of 1 mm. The centre of voxel (i, j, k) lies at (i - (nx - 1) / 2,
// j - (ny - 1) / 2, k - (nz - 1) / 2), and its place in the volume is (k * ny + j) * nx + i.
// The main axis is the one along which the ray goes farthest. In each plane of voxel centres across that axis
// the ray passes between four voxels. Each has the weight of linear interpolation between the four; beyond
// the volume there is 0. Weights are multiplied by the length of the ray from half a voxel before the plane
// to half a voxel behind it, as far as the ray reaches.
extern \"C\" __global__ void ",
            $parameters,
            ", int views, int rows, int columns, int nx, int ny, int nz, double pitch, int parallel)"
        )
    };
}

const OWN_PROJECT: &str = joseph!(
    "\
// projections[(view * rows + row) * columns + column] = the sum of weight * volume over a ray's voxels.
",
    "project(const float* volume, const double* poses, float* projections"
);
const OWN_ADJOINT: &str = joseph!(
    "\
// volume[...] += weight * projections[(view * rows + row) * columns + column] for the voxels of each ray.
// The volume is 0 before.
",
    "project_adjoint(const float* projections, const double* poses, float* volume"
);
const OWN_BACKPROJECT: &str = "\
// volume[(z * ny + y) * nx + x] = sum over the views of p(view, v / w, u / w) / (w w).
// u, v and w are the rows m[0..4], m[4..8] and m[8..12] of m = matrices + 12 * view, times (x, y, z, 1).
// p(view, row, column) is projections[(view * rows + row) * columns + column], linear between pixels.
// Pixels beyond the detector are 0.
extern \"C\" __global__ void backproject(const float* projections, const double* matrices, float* volume, int views, int rows, int columns, int nx, int ny, int nz)";

impl Algorithm for Projection {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        let (name, title, item) = match self.operation {
            Operation::Forward => ("project", "Line integrals of a volume (Joseph)", "samples"),
            Operation::Adjoint => {
                ("project-adjoint", "Transpose of the line integrals of a volume", "samples")
            }
            Operation::Backproject => ("backproject", "Voxel-driven back-projection", "updates"),
        };
        About { name, title, readme: include_str!("README.md"), unit: Unit::Items(item) }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, beam, size| {
            self.problem(beam, size).ok().map(|problem| Case { name, summary, problem })
        };
        [
            case("cone-64", "a small volume", Beam::Cone, [64, 60, 64]),
            case(
                "cone-256",
                "256 cubed, 360 views: the volume of the published CPU times",
                Beam::Cone,
                [256, 360, 256],
            ),
            case("slice-1024", "1024 x 1024 from 720 parallel views", Beam::Parallel, [1024, 720, 1024]),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn trials(&self) -> Vec<Problem> {
        let sizes = [
            (Beam::Cone, [1, 1, 1]),
            (Beam::Cone, [9, 5, 9]),
            (Beam::Cone, [17, 3, 23]),
            (Beam::Parallel, [13, 4, 13]),
        ];
        sizes.into_iter().filter_map(|(beam, size)| self.problem(beam, size).ok()).collect()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let beam = if problem.geometry.is_parallel() { Beam::Parallel } else { Beam::Cone };
        match *size {
            [n, views] if n > 0 && views > 0 => self.problem(beam, [n, views, n]),
            [n, views, pixels] if n > 0 && views > 0 && pixels > 0 => self.problem(beam, [n, views, pixels]),
            _ => Err(Error::value(
                format!("size of {}", self.about().name),
                "voxels along an axis and views, as in 128x90, or pixels along an axis too, as in 128x90x256, each at least 1",
                format!("{size:?}"),
            )),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        let to_run = |implementation: Implementation<f32>| {
            Runnable::new(move |_, data: &mut Data| {
                let Data { problem, plan, volume, projections } = data;
                let scan = Scan { geometry: &problem.geometry, grid: &problem.grid };
                let device = volume.device().clone();
                let lacks =
                    || Error::value("variant of a projector", "one for this device and operation", "another");
                match (&implementation, device.backend(), plan) {
                    (Implementation::Cpu(implementation), ..) => {
                        let (cpu, v, p) = (device.cpu_side(), volume, projections);
                        match problem.operation {
                            Operation::Forward => (implementation.forward)(cpu, scan, v.cpu(), p.cpu_mut()),
                            Operation::Adjoint => (implementation.adjoint)(cpu, scan, p.cpu(), v.cpu_mut()),
                            Operation::Backproject => {
                                (implementation.backproject)(cpu, scan, WEIGHTING, p.cpu(), v.cpu_mut())
                            }
                        }
                    }
                    (Implementation::Cuda(implementation), Backend::Cuda(cuda), Some(plan)) => {
                        match problem.operation {
                            Operation::Forward => {
                                implementation.forward.ok_or_else(lacks)?(cuda, plan, volume, projections)
                            }
                            Operation::Adjoint => {
                                implementation.adjoint.ok_or_else(lacks)?(cuda, plan, projections, volume)
                            }
                            Operation::Backproject => {
                                (implementation.backproject)(cuda, plan, WEIGHTING, projections, volume)
                            }
                        }
                    }
                    _ => Err(lacks()),
                }
            })
            .host_transfer(|data| {
                let (input, output) = data.arrays();
                Some(HostTransfer { inputs: vec![input], outputs: vec![output] })
            })
        };
        let rows = variants().into_iter().filter(|row| row.implementation.runs(self.operation));
        rows.map(|row| row.run_by(to_run)).collect()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { items: problem.items(), ..Counts::default() }
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        let by_pixels: fn(&Problem) -> [usize; 3] = |p| {
            let [views, rows, columns] = p.geometry.shape();
            [columns, rows, views]
        };
        let by_voxels: fn(&Problem) -> [usize; 3] = |p| p.grid.shape_xyz();
        let (kernel, declaration, extent) = match self.operation {
            Operation::Forward => ("project", OWN_PROJECT, by_pixels),
            Operation::Adjoint => ("project_adjoint", OWN_ADJOINT, by_pixels),
            Operation::Backproject => ("backproject", OWN_BACKPROJECT, by_voxels),
        };
        Some(Signature { kernel, declaration, extent, defines: |_| Vec::new(), call: called_by })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let cpu = device.cpu_side();
        let numbers = |shape: [usize; 3], seed| -> Result<Array<f32>> {
            let values = filled(cpu, "random numbers", voxels(&shape)?, |index| signed_unit(seed, index))?;
            Array::from_vec(device, &shape, values)
        };
        Ok(Data {
            problem: problem.clone(),
            plan: match device.backend() {
                Backend::Cpu(_) => None,
                Backend::Cuda(_) => {
                    Some(Plan::new(device, Scan { geometry: &problem.geometry, grid: &problem.grid })?)
                }
            },
            volume: numbers(problem.grid.shape_zyx(), seed)?,
            projections: numbers(problem.geometry.shape(), seed ^ 1)?,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.arrays().1.fill(f32::NAN)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let Problem { operation, geometry, grid } = problem;
        let (input, output) = match operation {
            Operation::Forward => (&data.volume, &data.projections),
            Operation::Adjoint | Operation::Backproject => (&data.projections, &data.volume),
        };
        let (input, outputs) = (input.read()?, output.read()?);
        let input =
            filled(data.volume.device().cpu_side(), "input", input.len(), |index| f64::from(input[index]))?;
        let whole = problem.items() <= WHOLE;
        let count = if whole { outputs.len() as u64 } else { COMPARED };
        let place = |i: u64| if whole { i } else { bits(5, i) % outputs.len() as u64 } as usize;
        let (mut wrong, mut size) = (0.0, 0.0);
        for index in (0..count).map(place) {
            let wanted = match operation {
                Operation::Forward => reference::pixel(geometry, grid, &input, index),
                Operation::Adjoint => reference::adjoint_at(geometry, grid, &input, index),
                Operation::Backproject => reference::backproject_at(geometry, grid, WEIGHTING, &input, index),
            };
            wrong += (f64::from(outputs[index]) - wanted).powi(2);
            size += wanted * wanted;
        }
        let error = if size > 0.0 { (wrong / size).sqrt() } else { wrong.sqrt() };
        Ok(if error.is_nan() { f64::INFINITY } else { error })
    }
}

const WEIGHTING: Weighting = Weighting::Magnification;
