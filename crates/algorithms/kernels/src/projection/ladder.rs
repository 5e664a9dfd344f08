//! The projectors as ladders, in f32.

use std::fmt;

use rayspin_core::{Detector, Error, Orbit, ProjectionGeometry, Result, View, VolumeGrid, voxels};
use rayspin_device::cpu::expect_memory;
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::input::{bits, filled, signed_unit};
use rayspin_tune::{About, Algorithm, Case, Counts, HostTransfer, Row, Runnable, Signature, Unit};

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
        (self.operation == Operation::Backproject).then_some(Signature {
            kernel: "backproject",
            declaration: "\
// volume[(z * ny + y) * nx + x] = sum over the views of p(view, v / w, u / w) / (w w).
// u, v and w are the rows m[0..4], m[4..8] and m[8..12] of m = matrices + 12 * view, times (x, y, z, 1).
// p(view, row, column) is projections[(view * rows + row) * columns + column], linear between pixels.
// Pixels beyond the detector are 0.
extern \"C\" __global__ void backproject(const float* projections, const double* matrices, float* volume, int views, int rows, int columns, int nx, int ny, int nz)",
            extent: |p: &Problem| p.grid.shape_xyz(),
            defines: |_: &Problem| Vec::new(),
            call: |data: &mut Data, call| {
                let Data { plan, volume, projections, .. } = data;
                let device = volume.device().clone();
                let Some(plan) = plan else {
                    return Err(Error::value("back-projection by a kernel", "a GPU", device.describe()));
                };
                let mut arguments: Vec<Argument<'_>> = vec![projections.cuda().into()];
                let [matrices, sizes @ ..] = plan.of_matrices()?;
                arguments.push(matrices);
                arguments.push(volume.cuda_mut().into());
                arguments.extend(sizes);
                call(&device, &mut arguments)
            },
        })
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
