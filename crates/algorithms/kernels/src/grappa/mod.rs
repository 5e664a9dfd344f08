//! Missing lines of k-space as weighted sums of measured ones (Griswold et al., *Generalized autocalibrating
//! partially parallel acquisitions (GRAPPA)*, Magn Reson Med 47:1202, 2002).

mod cpu;
mod cuda;
mod reference;
mod variants;

use rayspin_core::{C32, Error, Result, format_shape};
use rayspin_device::{Array, Backend};

pub(crate) use cuda::builds;
pub use reference::fill as reference_fill;
use variants::on_host;
pub use variants::{Implementation, VARIANTS};

/// Lines that are filled in with the same weights.
#[derive(Debug, Clone, Default)]
pub struct Interpolation {
    /// The offsets of the sources from the target: steps along z, y, x.
    pub sources: Vec<[isize; 3]>,
    /// `[target coil, source, source coil]`.
    pub weights: Vec<C32>,
    /// The lines, as z and y.
    pub lines: Vec<[usize; 2]>,
}

/// The sizes of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Number of coils.
    pub coils: usize,
    /// Shape of k-space.
    pub shape_zyx: [usize; 3],
}

/// Number of lines that [`fill`] computes before it writes them. Their copies stay small beside k-space.
fn lines_at_once(coils: usize, nx: usize) -> usize {
    (1 << 22) / (coils * nx).max(1) + 1
}

/// Bytes that [`fill`] takes for `lines` lines of k-space of `shape` with `coils` coils.
pub fn fill_bytes(coils: usize, shape: &[usize], lines: usize) -> u64 {
    let (nx, batch) =
        (shape.last().copied().unwrap_or(1), lines_at_once(coils, shape.last().copied().unwrap_or(1)));
    let before = if lines > batch { coils * shape.iter().product::<usize>() } else { 0 };
    ((before + lines.min(batch) * coils * nx) * size_of::<C32>()) as u64
}

/// s_i(k) = Σ_{r,j} w_{i,r,j} s_j(k + r) on the lines of `interpolation`, in place, for every position along
/// x. Samples beyond the grid count as 0. `kspace` is `[coil, z, y, x]` or `[coil, y, x]`. All lines are
/// computed from the values that `kspace` held before the call.
///
/// Errors: another rank, weights that do not fit the sources, or lines beyond the grid.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::grappa::{Interpolation, fill};
///
/// let device = Device::cpu()?;
/// let kspace = [2.0, 4.0, 0.0, 0.0, 6.0, 8.0].map(C32::from).to_vec(); // line 1 is missing
/// let mut kspace = Array::from_vec(&device, &[1, 3, 2], kspace)?; // [coil, y, x]
/// let mean_of_neighbours = Interpolation {
///     sources: vec![[0, -1, 0], [0, 1, 0]],
///     weights: vec![C32::from(0.5); 2],
///     lines: vec![[0, 1]],
/// };
/// fill(&mut kspace, &mean_of_neighbours)?;
/// assert_eq!(kspace.to_vec()?[2..4], [4.0, 6.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn fill(kspace: &mut Array<C32>, interpolation: &Interpolation) -> Result<()> {
    let (coils, shape_zyx) = match *kspace.shape() {
        [coils, y, x] => (coils, [1, y, x]),
        [coils, z, y, x] => (coils, [z, y, x]),
        ref shape => {
            return Err(Error::Shape {
                what: "k-space".into(),
                expected: "[coil, y, x] or [coil, z, y, x]".into(),
                found: format_shape(shape),
            });
        }
    };
    let [nz, ny, nx] = shape_zyx;
    let weights = [coils, coils, interpolation.sources.len()];
    rayspin_core::expect_len("GRAPPA weights", &weights, interpolation.weights.len())?;
    if let Some([z, y]) = interpolation.lines.iter().find(|[z, y]| *z >= nz || *y >= ny) {
        return Err(Error::value("GRAPPA lines", format!("within {nz} x {ny}"), format!("{z}, {y}")));
    }
    let problem = Problem { coils, shape_zyx };
    let batch = lines_at_once(coils, nx);
    let device = kspace.device().clone();
    let before = if interpolation.lines.len() > batch { Some(kspace.try_clone()?) } else { None };
    for lines in interpolation.lines.chunks(batch) {
        let part = Interpolation { lines: lines.to_vec(), ..interpolation.clone() };
        let mut out = Array::zeros(&device, &[lines.len(), coils, nx])?;
        let from = before.as_ref().unwrap_or(kspace);
        match device.backend() {
            Backend::Cpu(_) => {
                on_host(&problem, &part, from, &mut out)?;
                let values = kspace.cpu_mut();
                for ([z, y], line) in lines.iter().zip(out.cpu().chunks_exact((coils * nx).max(1))) {
                    for (coil, line) in line.chunks_exact(nx).enumerate() {
                        values[((coil * nz + z) * ny + y) * nx..][..nx].copy_from_slice(line);
                    }
                }
            }
            Backend::Cuda(cuda) => {
                cuda::lines(cuda, &problem, &part, from, &mut out)?;
                cuda::place(cuda, &problem, &part, &out, kspace)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "helpers of tests")]

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_core::C64;
    use rayspin_device::Device;
    use rayspin_emu::Coverage;

    use super::*;

    fn random(len: usize, seed: u64) -> Vec<C32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..len).map(|_| C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
    }

    fn problems() -> Vec<(Problem, Interpolation)> {
        let make = |coils, shape_zyx, sources: Vec<[isize; 3]>, lines: Vec<[usize; 2]>| {
            let weights = random(coils * coils * sources.len(), 9);
            (Problem { coils, shape_zyx }, Interpolation { sources, weights, lines })
        };
        vec![
            make(1, [1, 1, 1], vec![[0, 0, 0]], vec![[0, 0]]),
            make(3, [1, 7, 13], vec![[0, -1, -2], [0, 1, 0], [0, 1, 2]], vec![[0, 0], [0, 3], [0, 6]]),
            make(2, [4, 5, 3], vec![[-1, 2, 5], [1, 0, -1], [0, -1, 1]], vec![[3, 4], [0, 0], [2, 2]]),
            make(8, [1, 6, 40], vec![[0, -1, -9], [0, 1, 9]], vec![[0, 2]]),
            make(5, [2, 3, 131], vec![[0, -1, -140], [1, 0, 1], [0, 1, 0]], vec![[0, 1], [1, 2]]),
        ]
    }

    fn agrees(
        device: &Device,
        problem: &Problem,
        interpolation: &Interpolation,
        seed: u64,
        coverage: &mut Coverage,
    ) {
        let [nz, ny, nx] = problem.shape_zyx;
        let kspace = random(problem.coils * nz * ny * nx, seed);
        let wanted = reference_fill(problem, interpolation, &kspace);
        let mut array = Array::from_slice(device, &[problem.coils, nz, ny, nx], &kspace).unwrap();
        for variant in VARIANTS.iter().filter(|v| v.backend == device.kind()) {
            let mut found = Array::zeros(device, &[interpolation.lines.len(), problem.coils, nx]).unwrap();
            found.fill(C32::new(f32::NAN, f32::NAN)).unwrap();
            (variant.implementation)(problem, interpolation, &array, &mut found).unwrap();
            let norm: f64 = wanted.iter().map(|v| v.norm_sqr()).sum();
            let error: f64 = wanted
                .iter()
                .zip(found.to_vec().unwrap())
                .map(|(w, f)| (w - C64::new(f.re.into(), f.im.into())).norm_sqr())
                .sum();
            let relative = (error / norm.max(1e-60)).sqrt();
            coverage.compared(device, variant.name, relative, variant.tolerance);
            assert!(relative <= variant.tolerance, "{} {problem:?}: {relative:e}", variant.name);
        }
        fill(&mut array, interpolation).unwrap();
        for (at, (after, before)) in array.to_vec().unwrap().iter().zip(&kspace).enumerate() {
            let (x, line) = (at % nx, [at / nx / ny % nz, at / nx % ny]);
            match interpolation.lines.iter().position(|l| *l == line) {
                None => assert_eq!(after, before),
                Some(index) => {
                    let coil = at / (nx * ny * nz);
                    let w = wanted[(index * problem.coils + coil) * nx + x];
                    assert!((w - C64::new(after.re.into(), after.im.into())).norm() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn every_variant_agrees_with_the_oracle_and_fill_writes_its_lines_alone() {
        let mut coverage = Coverage::default();
        for device in rayspin_emu::devices().unwrap() {
            for (seed, (problem, interpolation)) in problems().iter().enumerate() {
                agrees(&device, problem, interpolation, seed as u64, &mut coverage);
            }
            let rows = VARIANTS.iter().filter(|v| v.backend == device.kind()).map(|v| v.name);
            assert_eq!(coverage.left_out(&device, rows), [""; 0]);
        }
        println!("GRAPPA:\n{coverage}");
        let device = Device::cpu_with_threads(1).unwrap();
        let mut small = Array::zeros(&device, &[2, 3, 4]).unwrap();
        let wrong = Interpolation { lines: vec![[0, 3]], ..Interpolation::default() };
        assert!(fill(&mut small, &wrong).is_err());
        let wrong = Interpolation { sources: vec![[0; 3]], weights: vec![C32::ONE], lines: vec![] };
        assert!(fill(&mut small, &wrong).is_err());
    }
}
