//! Potential of point charges on a grid: V(r) = Σ_i q_i / |r − r_i|.

mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{About, Algorithm, Case, Counts, Published, Row, Signature, Unit, input, tuned};

/// Where the points are: point i of an axis at origin + i · spacing, rounded once to f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// Points along z, y, x.
    pub shape: [usize; 3],
    /// The first point: x, y, z.
    pub origin: [f32; 3],
    /// Between neighbours, along every axis.
    pub spacing: f32,
}

impl Grid {
    /// Coordinate of point `index` along an axis: 0 for x, 1 for y, 2 for z.
    fn place(&self, axis: usize, index: usize) -> f32 {
        (index as f32).mul_add(self.spacing, self.origin[axis])
    }
}

/// V\[z, y, x\] = Σ_i q_i / |r − r_i| for atoms (x, y, z, q) `[n]`.
///
/// The unit of V is the unit of charge over the unit of length. There is no other factor.
///
/// At a point where an atom is the potential is ±∞, and NaN where charges of both signs, or none, are;
/// distances below 10⁻¹⁸ count as 0. Sums are f32, in any order.
///
/// Errors: V of another shape than the grid's, arrays on different devices, a spacing or origin that is not
/// finite.
pub fn potential(atoms: &Array<[f32; 4]>, grid: &Grid, v: &mut Array<f32>) -> Result<()> {
    expect_shape("potential", &grid.shape, v.shape())?;
    expect_shape("atoms", &[atoms.len()], atoms.shape())?;
    if !atoms.device().same_as(v.device()) {
        return Err(Error::value("potential", "arrays on one device", v.device().describe()));
    }
    if !(grid.spacing.is_finite() && grid.origin.iter().all(|x| x.is_finite())) {
        return Err(Error::value("grid of a potential", "finite coordinates", format!("{grid:?}")));
    }
    if v.is_empty() || atoms.is_empty() {
        return v.fill(0.0);
    }
    match v.device().clone().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, atoms.cpu(), grid, v.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let problem = Problem { atoms: atoms.len(), shape: grid.shape };
            let config = tuned(&Coulomb, &problem, &variants::gpu_points(), v.device());
            cuda::points(cuda, &config, atoms, grid, v)
        }
    }
}

/// How many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Atoms.
    pub atoms: usize,
    /// Points along z, y, x.
    pub shape: [usize; 3],
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [nz, ny, nx] = self.shape;
        write!(f, "{} atoms, {nz} x {ny} x {nx} points", self.atoms)
    }
}

/// The atoms and the potential of one problem.
pub struct Data {
    grid: Grid,
    atoms: Array<[f32; 4]>,
    /// The same for the oracle.
    host: Vec<[f32; 4]>,
    v: Array<f32>,
    seed: u64,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Coulomb;

/// Problems of more pairs than this are checked at random points.
const WHOLE: usize = 1 << 22;

impl Algorithm for Coulomb {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "coulomb",
            title: "Potential of point charges on a grid",
            readme: include_str!("README.md"),
            unit: Unit::Items("pairs"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, atoms, shape| Case { name, summary, problem: Problem { atoms, shape } };
        vec![
            case("slice", "a slice of 512 x 512 points, 40000 atoms", 40_000, [1, 512, 512]),
            case("volume", "128 x 128 x 128 points, 4096 atoms", 4096, [128, 128, 128]),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        // 4100 atoms are more than constant memory holds.
        let sizes = [
            (1, [1, 1, 1]),
            (2, [1, 3, 7]),
            (33, [5, 1, 65]),
            (70, [1, 1, 1100]),
            (4100, [1, 2, 3]),
            (300, [2, 5, 131]),
        ];
        sizes.map(|(atoms, shape)| Problem { atoms, shape }).to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [atoms, nz, ny, nx] if size.iter().all(|&n| n > 0) => {
                voxels(&[nz, ny, nx])?;
                Ok(Problem { atoms: voxels(&[atoms])?, shape: [nz, ny, nx] })
            }
            _ => Err(Error::value("size of coulomb", "ATOMSxNZxNYxNX, each at least 1", format!("{size:?}"))),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { items: pairs(problem), ..Counts::default() }
    }

    /// The lecture states the times, not the sizes.
    fn published(&self) -> &'static [Published] {
        const { &Published::on_processors([180.0, 45.0, 0.28]) }
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "coulomb",
            declaration: "\
// v[(z ny + y) nx + x] = sum over atoms of charge / distance, where atoms[i] is x, y, z and the charge (w),
// and the point (x, y, z) of the grid lies at (ox + x h, oy + y h, oz + z h). No atom lies on a point.
extern \"C\" __global__ void coulomb(const float4* atoms, int count, float* v, int nx, int ny, int nz, float ox, float oy, float oz, float h)",
            extent: |p| [p.shape[2], p.shape[1], p.shape[0]],
            defines: |_| Vec::new(),
            call: |data, call| {
                let Data { grid, atoms, v, .. } = data;
                let place = cuda::place(grid, v)?;
                let mut arguments = vec![atoms.cuda().into(), cuda::atom_count(atoms)?.into(), v.cuda_mut().into()];
                arguments.extend(place);
                call(atoms.device(), &mut arguments)
            },
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let grid = Grid { shape: problem.shape, origin: [-3.0, 0.25, 0.0], spacing: 0.5 };
        let [nz, ny, nx] = problem.shape;
        let unit = |index: usize| (input::bits(seed, index as u64) >> 40) as f32 / (1 << 24) as f32;
        let atom = |i: usize| {
            let along = |axis: usize, n: usize| unit(4 * i + axis) * n as f32 * grid.spacing;
            // Atoms of a slice are in front of it and behind, too.
            let z = along(2, nz.max(64)) - 8.0;
            [along(0, nx) + grid.origin[0], along(1, ny) + grid.origin[1], z, 2.0 * unit(4 * i + 3) - 1.0]
        };
        let mut host = input::filled(device.cpu_side(), "atoms", problem.atoms, atom)?;
        // One is at a point.
        host[0] = [grid.place(0, nx / 2), grid.place(1, ny / 2), grid.place(2, nz / 2), -1.5];
        Ok(Data {
            grid,
            atoms: Array::from_slice(device, &[problem.atoms], &host)?,
            host,
            v: Array::zeros(device, &problem.shape)?,
            seed,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.v.fill(f32::NAN)
    }

    /// The largest |error| over Σ |q_i| / |r − r_i|.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let v = data.v.read()?;
        let [nz, ny, nx] = problem.shape;
        let points = v.len();
        let whole = points.saturating_mul(problem.atoms) <= WHOLE;
        let count = if whole { points } else { (WHOLE * 4 / problem.atoms).clamp(64, points) };
        let error = |turn: usize| {
            let point = match turn {
                _ if whole => turn,
                // Where the atom is, and the last.
                0 => (nz / 2 * ny + ny / 2) * nx + nx / 2,
                1 => points - 1,
                _ => (input::bits(data.seed ^ 0xa70, turn as u64) % points as u64) as usize,
            };
            let place = [point / nx / ny, point / nx % ny, point % nx];
            let (want, size) = reference::potential(&data.host, &data.grid, place);
            let output = f64::from(v[point]);
            match (want.is_finite(), output.is_nan()) {
                (_, true) => f64::INFINITY,
                (false, _) if output == want => 0.0,
                (false, _) => f64::INFINITY,
                _ => (output - want).abs() / size.max(f64::MIN_POSITIVE),
            }
        };
        let cpu = data.v.device().cpu_side();
        Ok(cpu.run(|| (0..count).into_par_iter().map(error).reduce(|| 0.0, f64::max)))
    }
}

fn pairs(problem: &Problem) -> f64 {
    problem.shape.iter().map(|&n| n as f64).product::<f64>() * problem.atoms as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_known_potential_and_refusals() {
        for device in rayspin_emu::devices().unwrap() {
            let atoms = [[0.0, 0.0, 0.0, 2.0], [3.0, 0.0, 0.0, -1.0]];
            let atoms = Array::from_slice(&device, &[2], &atoms).unwrap();
            let grid = Grid { shape: [1, 1, 4], origin: [0.0; 3], spacing: 1.0 };
            let mut v = Array::zeros(&device, &grid.shape).unwrap();
            potential(&atoms, &grid, &mut v).unwrap();
            let found = v.to_vec().unwrap();
            let want = [f32::INFINITY, 1.5, 0.0, f32::NEG_INFINITY];
            assert!(found.iter().zip(want).all(|(f, w)| f == &w || (f - w).abs() < 1e-5), "{found:?}");
            let mut other = Array::zeros(&device, &[4]).unwrap();
            assert!(potential(&atoms, &grid, &mut other).is_err());
            let bad = Grid { spacing: f32::NAN, ..grid };
            assert!(potential(&atoms, &bad, &mut v).is_err());
        }
    }
}
